"""A checksummed file is read back as it was written, or refused by name."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphsage.checksummed_json import CHECKSUM, read_checksummed, write_checksummed
from graphsage.errors import DataError

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
RECORDS = st.dictionaries(st.text().filter(lambda name: name != CHECKSUM), VALUES, max_size=4)


@given(RECORDS)
def test_what_is_written_is_read_back(tmp_path_factory: pytest.TempPathFactory, record: dict[str, Any]) -> None:
    path = tmp_path_factory.mktemp("checksummed") / "a.json"
    write_checksummed(path, record)
    assert read_checksummed(path) == record


def test_numbers_as_keys_and_tuples_become_what_json_makes_of_them(tmp_path: Path) -> None:
    write_checksummed(tmp_path / "a.json", {"by seed": {10: (1, 2), 9: 0.1}})
    assert read_checksummed(tmp_path / "a.json") == {"by seed": {"10": [1, 2], "9": 0.1}}


@pytest.mark.parametrize("text", ["", "{", "{}", "[1]", "1", "null", '{"sha256": 1}', '{"val": 0.5}'])
def test_what_was_without_a_checksum_is_refused_by_name(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(DataError, match=r"a\.json .*delete it, and it is made again"):
        read_checksummed(tmp_path / "a.json")


@pytest.mark.parametrize("change", [{"val": 0.6}, {"val": "x"}, {"val": float("nan")}, {"more": 1}, {"rows": []}])
def test_any_change_by_hand_is_found(tmp_path: Path, change: dict[str, Any]) -> None:
    path = tmp_path / "a.json"
    write_checksummed(path, {"val": 0.5, "rows": [1]})
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(DataError, match="cannot be trusted"):
        read_checksummed(path)


def test_a_folder_or_other_bytes_in_its_place_are_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "a.json").mkdir()
    (tmp_path / "b.json").write_bytes(b"\xff\xfe")
    for name in ("a", "b"):
        with pytest.raises(DataError, match=rf"{name}\.json (cannot be trusted|is a folder)"):
            read_checksummed(tmp_path / f"{name}.json")

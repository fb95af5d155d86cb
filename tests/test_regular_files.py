"""Files that may have been swapped: only regular files are read, and JSON within bounds."""

import os
import socket
from pathlib import Path

import pytest

from graphsage.errors import BundleError, DataError
from graphsage.regular_files import is_regular, open_regular, parse_json, read_json, read_regular


@pytest.mark.parametrize("what", ["a FIFO", "a socket", "a symbolic link", "a folder", "a device"])
def test_only_regular_files_are_read(tmp_path: Path, what: str) -> None:
    path = Path("/dev/zero") if what == "a device" else tmp_path / "f"
    if what == "a FIFO":
        os.mkfifo(path)
    elif what == "a socket":
        with socket.socket(socket.AF_UNIX) as bound:
            bound.bind(str(path))
    elif what == "a symbolic link":
        (tmp_path / "there").write_text("{}")
        path.symlink_to("there")
    elif what == "a folder":
        path.mkdir()
    for read in (open_regular, read_regular, read_json):
        with pytest.raises(BundleError, match=f"is {what}, and only regular files are read"):
            read(path, BundleError)
    assert not is_regular(path)


def test_a_missing_file_is_told_apart_and_a_large_one_is_not_read(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_regular(tmp_path / "none")
    (tmp_path / "f").write_bytes(b"12345")
    assert read_regular(tmp_path / "f", most=5) == b"12345"
    with pytest.raises(DataError, match="has 5 bytes, and at most 4 are read"):
        read_regular(tmp_path / "f", most=4)


@pytest.mark.parametrize("text", ["[" * 100_000, "[" * 500 + "]" * 500, '{"a":' * 99_999, "", b"\xff", "{"])
def test_json_that_cannot_be_trusted_is_a_value_error(text: str | bytes) -> None:
    with pytest.raises(ValueError, match=r"nested too deeply|line 1 column|codec can't"):
        parse_json(text)
    assert parse_json('{"a": [1, {"b": null}]}') == {"a": [1, {"b": None}]}

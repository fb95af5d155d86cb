import csv
import lzma
from pathlib import Path

import pytest

from graphsage.datasets.debian import Release, build_debian, paragraphs, plain, targets
from graphsage.errors import DataError

OLD = """Package: editor
Section: contrib/editors
Installed-Size: 120
Depends: libc6 (>= 2.36), toolkit | other-toolkit:any, ghost
Recommends: manual
Suggests: editor
Tag: role::program, uitoolkit::gtk,
 works-with::text
Description: edits text
Description-md5: aaa

Package: libc6
Section: libs
Installed-Size: 9000
Description: the library
Description-md5: bbb
"""
NEW = """Package: editor
Section: misc
Depends: libc6, toolkit
Description: says something else now
Description-md5: ccc

Package: toolkit
Section: libs
Pre-Depends: libc6
Description: windows

Package: manual
Section: doc
Description: how to
"""
TRANSLATION = """Package: editor
Description-md5: aaa
Description-en: edits text
 It edits text of any length.
 .
 And it saves it.
"""


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.fixture
def releases(tmp_path: Path) -> list[Release]:
    (tmp_path / "old.xz").write_bytes(lzma.compress(OLD.encode()))
    (tmp_path / "new").write_text(NEW)
    (tmp_path / "long").write_text(TRANSLATION)
    return [Release("old", tmp_path / "old.xz", tmp_path / "long"), Release("new", tmp_path / "new")]


def test_a_package_belongs_to_its_first_release_and_is_described_as_it_was_there(
    releases: list[Release], tmp_path: Path
) -> None:
    assert build_debian(releases, tmp_path / "out") == (4, 4)
    nodes = {row["id"]: row for row in rows(tmp_path / "out" / "nodes.csv")}
    assert {name: row["release"] for name, row in nodes.items()} == {
        "editor": "old",
        "libc6": "old",
        "toolkit": "new",
        "manual": "new",
    }
    assert nodes["editor"] == {
        "id": "editor",
        "release": "old",
        "section": "editors",
        "installed_kb": "120",
        "tags": "role::program;uitoolkit::gtk;works-with::text",
        "description": "edits text It edits text of any length. And it saves it.",
    }
    assert nodes["toolkit"]["installed_kb"] == ""


def test_relations_are_kept_with_their_first_release_and_lead_to_known_packages_only(
    releases: list[Release], tmp_path: Path
) -> None:
    build_debian(releases, tmp_path / "out")
    found = {tuple(row.values()) for row in rows(tmp_path / "out" / "edges.csv")}
    assert found == {
        ("editor", "libc6", "depends", "old"),
        ("editor", "toolkit", "depends", "old"),
        ("editor", "manual", "recommends", "old"),
        ("toolkit", "libc6", "depends", "new"),
    }


def test_names_are_read_out_of_relations() -> None:
    assert list(targets("a (>= 1:2.3~), b | c:any, libstdc++6 [amd64], , g++-12")) == [
        "a",
        "b",
        "c",
        "libstdc++6",
        "g++-12",
    ]


def test_descriptions_become_one_line() -> None:
    assert plain("short\n first\n .\n second") == "short first second"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("no colon here\n", "line 1: expected `Field: value`"),
        (" starts inside\n", "line 1: a continuation without a field"),
        ("Version: 1\n", "without a Package field"),
    ],
)
def test_a_file_that_is_no_package_index_is_named(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "index").write_text(text)
    with pytest.raises(DataError, match=message):
        build_debian([Release("x", tmp_path / "index")], tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_missing_and_damaged_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="does not exist"):
        list(paragraphs(tmp_path / "nothing"))
    (tmp_path / "broken.xz").write_bytes(lzma.compress(OLD.encode())[:40])
    with pytest.raises(DataError, match=r"broken.xz cannot be read after line 0 .*fetch it again"):
        list(paragraphs(tmp_path / "broken.xz"))
    with pytest.raises(DataError, match="at least one release"):
        build_debian([], tmp_path / "out")

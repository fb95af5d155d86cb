"""A file or folder appears whole or not at all, and nothing is left behind."""

import errno
import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from graphsage.atomic import atomic_file, atomic_folder
from graphsage.errors import GraphSageError, OutputError

Writer = Callable[[Path], AbstractContextManager[Path]]


def put(place: Path, text: str) -> None:
    """Write `text` into what atomic_file or atomic_folder yields."""
    (place / "part" if place.is_dir() else place).write_text(text)


def got(path: Path) -> str:
    return (path / "part" if path.is_dir() else path).read_text()


@pytest.fixture(params=[atomic_file, atomic_folder], ids=["file", "folder"])
def writer(request: pytest.FixtureRequest) -> Writer:
    chosen: Writer = request.param
    return chosen


def test_what_is_written_appears_when_the_block_ends(writer: Writer, tmp_path: Path) -> None:
    target = tmp_path / "new" / "deep" / "result.txt"
    with writer(target) as place:
        put(place, "whole")
        assert not target.exists()
        assert place.parent == target.parent
    assert got(target) == "whole"
    assert list(target.parent.iterdir()) == [target]


def test_the_new_takes_the_place_of_the_old(writer: Writer, tmp_path: Path) -> None:
    target = tmp_path / "result"
    for text in ("old", "new"):
        with writer(target) as place:
            put(place, text)
    assert got(target) == "new"
    assert list(tmp_path.iterdir()) == [target]


def test_nothing_of_an_old_folder_stays_in_the_new_one(tmp_path: Path) -> None:
    target = tmp_path / "result"
    for name in ("a", "b"):
        with atomic_folder(target) as place:
            (place / "sub").mkdir()
            (place / "sub" / name).write_text(name)
    assert [p.name for p in (target / "sub").iterdir()] == ["b"]


@pytest.mark.parametrize("error", [RuntimeError("stop"), KeyboardInterrupt(), SystemExit(1)])
@pytest.mark.parametrize("before", [True, False], ids=["over an old one", "first"])
def test_an_exception_leaves_the_old_and_no_litter(
    writer: Writer, tmp_path: Path, error: BaseException, before: bool
) -> None:
    target = tmp_path / "result"
    if before:
        with writer(target) as place:
            put(place, "old")

    def stop_half_way() -> None:
        with writer(target) as place:
            put(place, "half")
            raise error

    with pytest.raises(type(error)):
        stop_half_way()
    assert [p.name for p in tmp_path.iterdir()] == (["result"] if before else [])
    assert not before or got(target) == "old"


def test_a_full_disk_is_an_output_error_and_the_old_stays(writer: Writer, tmp_path: Path) -> None:
    target = tmp_path / "result"
    with writer(target) as place:
        put(place, "old")

    def write_to_a_full_disk() -> None:
        with writer(target) as place:
            put(place, "half")
            with Path("/dev/full").open("w") as full:
                full.write("too much")

    with pytest.raises(OutputError, match=f"cannot write {target}: No space left on device"):
        write_to_a_full_disk()
    assert got(target) == "old"
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize("fails_at", [1, 2])
def test_a_rename_that_fails_leaves_the_old_and_no_litter(
    writer: Writer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails_at: int
) -> None:
    target, calls = tmp_path / "result", 0
    with writer(target) as place:
        put(place, "old")

    def failing(real: Callable[[Path, Path], Path]) -> Callable[[Path, Path], Path]:
        def rename(source: Path, to: Path) -> Path:
            nonlocal calls
            calls += 1
            if calls == fails_at or (writer is atomic_file and calls < fails_at):
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            return real(source, to)

        return rename

    monkeypatch.setattr(Path, "rename", failing(Path.rename))
    monkeypatch.setattr(Path, "replace", failing(Path.replace))
    with pytest.raises(OutputError, match="Input/output error"), writer(target) as place:
        put(place, "new")
    assert got(target) == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_a_place_that_cannot_be_written_is_named(writer: Writer, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    for impossible in (tmp_path / "file" / "result", Path("/proc/result")):
        with pytest.raises(OutputError, match=f"cannot write {impossible}"), writer(impossible):
            pass
    assert (tmp_path / "file").read_text() == "in the way"


def test_a_file_does_not_take_the_place_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "result").mkdir()
    (tmp_path / "result" / "kept").write_text("kept")
    with pytest.raises(OutputError, match="cannot write"), atomic_file(tmp_path / "result") as place:
        place.write_text("new")
    assert (tmp_path / "result" / "kept").read_text() == "kept"
    assert [p.name for p in tmp_path.iterdir()] == ["result"]


def test_an_output_error_inside_keeps_its_own_words(writer: Writer, tmp_path: Path) -> None:
    with pytest.raises(OutputError, match=r"^mine$"), writer(tmp_path / "result"):
        raise OutputError("mine")
    assert issubclass(OutputError, GraphSageError)
    assert issubclass(OutputError, OSError)


def test_the_suffix_stays_so_that_writers_know_the_format(tmp_path: Path) -> None:
    with atomic_file(tmp_path / "z.npy") as place:
        assert place.suffix == ".npy"
        place.touch()
    assert (tmp_path / "z.npy").stat().st_mode & 0o777 == 0o644


def test_a_folder_that_is_not_ours_stays(tmp_path: Path) -> None:
    target = tmp_path / "there"
    target.mkdir()
    with atomic_folder(target, lambda path: False) as place:  # empty: nothing can be lost
        (place / "mine").touch()
    with pytest.raises(OutputError, match="not ours to replace"), atomic_folder(target, lambda path: False):
        raise AssertionError("begun")
    assert [path.name for path in target.iterdir()] == ["mine"]
    with atomic_folder(target, lambda path: (path / "mine").exists()) as place:
        (place / "other").touch()
    assert [path.name for path in target.iterdir()] == ["other"]


def test_what_a_killed_process_left_is_removed_after_a_day(tmp_path: Path) -> None:
    left = [tmp_path / name for name in (".z.npy.abc.part.npy", ".z.npy.new.part.npy", ".other.npy.abc.part.npy")]
    for path in left:
        path.write_text("half")
    for path in (left[0], left[2]):
        os.utime(path, (0, 0))
    with atomic_file(tmp_path / "z.npy") as place:
        put(place, "whole")
    assert [path.exists() for path in left] == [False, True, True]

"""The C form of the kernels is made once, kept, and never needed."""

import logging
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from graphsage.kernels import backend
from graphsage.kernels.compiled import library as made

needs_compiler = pytest.mark.skipif(made._compiler() is None, reason="there is no compiler")


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPHSAGE_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("GRAPHSAGE_COMPILE", raising=False)


def fresh() -> object:
    return made.library.__wrapped__()


@needs_compiler
def test_it_is_compiled_once_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert fresh() is not None
    (kept,) = (tmp_path / "cache" / "kernels").iterdir()
    monkeypatch.setattr(made, "_compile", lambda *_: pytest.fail("compiled again"))
    assert fresh() is not None
    assert kept.suffix == ".so"


@needs_compiler
def test_a_damaged_file_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert fresh() is not None
    (kept,) = (tmp_path / "cache" / "kernels").iterdir()
    size = kept.stat().st_size
    kept.unlink()
    kept.write_bytes(b"not a library")

    def load(path: str) -> object:  # the system's own would answer with what it loaded under this name
        if Path(path).stat().st_size != size:
            raise OSError("file too short")
        return path

    monkeypatch.setattr(made.ctypes, "CDLL", load)
    assert fresh() == str(kept)


@needs_compiler
@pytest.mark.parametrize("which", ["file", "folder"])
def test_what_others_could_have_written_is_not_loaded(tmp_path: Path, which: str) -> None:
    assert fresh() is not None
    (kept,) = (tmp_path / "cache" / "kernels").iterdir()
    kept.unlink()
    kept.write_bytes(b"somebody else's code")
    place = kept if which == "file" else kept.parent
    place.chmod(stat.S_IRWXU | stat.S_IWOTH)
    assert fresh() is not None


@needs_compiler
def test_a_cache_that_cannot_be_written_is_done_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("GRAPHSAGE_CACHE", str(tmp_path / "file"))
    assert fresh() is not None


@needs_compiler
def test_the_folder_is_closed_to_others_whatever_the_umask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Group-writable folders are usual where every user has a group; kernels must still be compiled once alone."""
    before = os.umask(0)
    try:
        assert fresh() is not None
    finally:
        os.umask(before)
    monkeypatch.setattr(made, "_compile", lambda *_: pytest.fail("compiled again"))
    assert fresh() is not None


@needs_compiler
def test_a_cache_from_which_nothing_may_be_run_is_done_without(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a file system mounted with noexec."""
    load = made.ctypes.CDLL

    def refuse(path: str) -> object:
        if "cache" in path:
            raise OSError("failed to map segment from shared object")
        return load(path)

    monkeypatch.setattr(made.ctypes, "CDLL", refuse)
    assert fresh() is not None


@needs_compiler
def test_processes_may_compile_at_the_same_time(tmp_path: Path) -> None:
    code = "from graphsage.kernels.compiled.library import library; assert library() is not None"
    both = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(2)]
    assert [process.wait() for process in both] == [0, 0]
    (kept,) = (tmp_path / "cache" / "kernels").iterdir()
    assert kept.suffix == ".so"


@needs_compiler
def test_a_compiler_may_have_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "cc -g -DONE='a b'")
    assert fresh() is not None


@needs_compiler
@pytest.mark.parametrize("name", ["no-such-compiler -m64", "cc 'a", " "])
def test_a_name_that_is_none_is_passed_over(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv("CC", name)
    assert made._compiler() in (["cc"], ["gcc"], ["clang"])


def test_without_a_compiler_kernels_run_in_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(made.shutil, "which", lambda _: None)
    assert fresh() is None
    monkeypatch.setattr(backend, "library", lambda: None)
    assert not backend.on_compiled(torch.zeros(2, 2))


def test_it_can_be_turned_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPHSAGE_COMPILE", "0")
    assert fresh() is None


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("sys.exit('no such flag')", "no such flag"),
        ("sys.stderr.buffer.write(b'Fl\\xe4che'); sys.exit(1)", "che"),  # of no encoding that we know
        ("sys.exit(0 if '-E' in sys.argv else 'out of memory')", "out of memory"),
        ("", "No such file"),  # says that all is well, and writes nothing
        ("sys.exit(sys.stdin.read() or 'was asked')", "was asked"),
    ],
)
def test_a_compiler_that_fails_is_named_and_done_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, program: str, said: str
) -> None:
    broken = tmp_path / "broken"
    broken.write_text(f"#!{sys.executable}\nimport sys\n{program}\n")
    broken.chmod(0o755)
    monkeypatch.setenv("CC", str(broken))
    with caplog.at_level(logging.WARNING):
        assert fresh() is None
    (record,) = caplog.records
    assert said in record.getMessage()
    assert str(broken) in record.getMessage()
    assert "b'" not in record.getMessage()


def test_a_compiler_that_hangs_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    slow = tmp_path / "slow"
    slow.write_text("#!/bin/sh\nsleep 5 & wait\n")  # what it started goes on, and holds its output open
    slow.chmod(0o755)
    monkeypatch.setenv("CC", str(slow))
    monkeypatch.setattr(made, "PATIENCE", 0.2)
    with caplog.at_level(logging.WARNING):
        assert fresh() is None
    (record,) = caplog.records
    assert "timed out" in record.getMessage()


def test_kernels_in_c_are_for_plain_float32_on_a_cpu() -> None:
    if made.library() is None or backend.interpreted():
        pytest.skip("there is no compiler, or Triton runs")
    x = torch.zeros(4, 4)
    assert backend.on_compiled(x, torch.arange(4))
    for other in (x.double(), x.t()[:, 1:], x.half()):
        assert not backend.on_compiled(x, other)

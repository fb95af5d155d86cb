"""The C form of the kernels is made once, kept, and never needed."""

import logging
import stat
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


def test_without_a_compiler_kernels_run_in_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(made.shutil, "which", lambda _: None)
    assert fresh() is None
    monkeypatch.setattr(backend, "library", lambda: None)
    assert not backend.on_compiled(torch.zeros(2, 2))


def test_it_can_be_turned_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPHSAGE_COMPILE", "0")
    assert fresh() is None


def test_a_compiler_that_fails_is_named_and_done_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    broken = tmp_path / "broken"
    broken.write_text(f"#!{sys.executable}\nimport sys\nsys.exit('no such flag')\n")
    broken.chmod(0o755)
    monkeypatch.setenv("CC", str(broken))
    with caplog.at_level(logging.WARNING):
        assert fresh() is None
    assert "no such flag" in caplog.text
    assert str(broken) in caplog.text


def test_kernels_in_c_are_for_plain_float32_on_a_cpu() -> None:
    if made.library() is None or backend.interpreted():
        pytest.skip("there is no compiler, or Triton runs")
    x = torch.zeros(4, 4)
    assert backend.on_compiled(x, torch.arange(4))
    for other in (x.double(), x.t()[:, 1:], x.half()):
        assert not backend.on_compiled(x, other)

"""Files and folders are written atomically: under a temporary name in the same folder, then renamed."""

import glob
import logging
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from graphsage.errors import OutputError

_log = logging.getLogger("graphsage")
_warned: set[Path] = set()
ABANDONED = 24 * 3600.0  # seconds since the last change of a temporary file after which its process counts as killed


@contextmanager
def atomic_file(path: str | Path, mode: int = 0o644) -> Iterator[Path]:
    """Yield a temporary path in the same folder; it replaces `path` when the block ends without an error. Until then
    only its owner can read it. A killed process leaves its temporary file; the next one to write `path` removes those
    older than a day."""
    path = Path(path)
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        _remove_abandoned(path)
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=f".part{path.suffix}", dir=path.parent)
        os.close(handle)
        temporary = Path(name)
        try:
            yield temporary
            _sync(temporary)
            temporary.chmod(mode)
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)


@contextmanager
def atomic_folder(path: str | Path, replaces: Callable[[Path], bool] | None = None) -> Iterator[Path]:
    """Yield an empty temporary folder, which takes the place of `path` after the block.
    If `replaces` refuses the present `path`, it stays, with an OutputError."""
    path = Path(path)
    if replaces is not None and not is_free(path) and not replaces(path):
        raise OutputError(f"{path} is already there and holds what is not ours to replace; choose another place")
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent))
        try:
            yield temporary
            for file in temporary.rglob("*"):
                if file.is_file():
                    _sync(file)
            temporary.chmod(0o755)
            if path.exists():
                _swap(temporary, path)
            else:
                temporary.rename(path)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)


def is_free(path: Path) -> bool:
    """Whether nothing is at `path`, or an empty folder."""
    return not path.exists() or (path.is_dir() and not any(path.iterdir()))


def make_folder(path: str | Path) -> None:
    """A folder in which files can be written, or an OutputError now rather than at the first file."""
    path = Path(path)
    with writing(path):
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            pass


def _remove_abandoned(path: Path) -> None:
    for left in path.parent.glob(f".{glob.escape(path.name)}.*.part{glob.escape(path.suffix)}"):
        with suppress(OSError):  # another process may have removed it
            if left.is_file() and time.time() - left.stat().st_mtime > ABANDONED:
                left.unlink()


def _swap(new: Path, path: Path) -> None:
    """Put folder `new` where `path` is; a failure half way puts the old one back."""
    aside = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=".old", dir=path.parent))
    old = aside / "was"
    try:
        path.rename(old)
        new.rename(path)
    except BaseException:
        if old.exists():
            old.rename(path)
        aside.rmdir()
        raise
    shutil.rmtree(aside, ignore_errors=True)


def _sync(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Within the block, trouble with the disk is an OutputError that names `path`."""
    try:
        yield
    except OutputError:
        raise
    except OSError as error:
        reason = error.strerror or str(error)
        raise OutputError(
            f"cannot write {path}: {reason}; nothing was left behind, choose a folder with space that you may write to"
        ) from error


@contextmanager
def caching(path: Path) -> Iterator[None]:
    """Within the block, trouble with the disk is a warning, once per `path`: a cache only saves time."""
    try:
        yield
    except OSError as error:
        if path not in _warned:
            _warned.add(path)
            _log.warning("%s is not kept, and is computed again next time: %s", path, error)

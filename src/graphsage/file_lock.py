"""A lock that is a file, held by at most one process on all machines that see the folder. The system releases it when
that process ends, however it ends."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from graphsage.errors import GraphSageError


class FileLock:
    """`with FileLock(path):` waits until the lock is free; `acquire(wait=False)` returns False if it is not."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: IO[bytes] | None = None

    def acquire(self, wait: bool = True) -> bool:
        file = self.path.open("ab")
        try:
            fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            return False
        except BaseException:
            file.close()
            raise
        self._file = file
        return True

    def release(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def __enter__(self) -> "FileLock":
        if self._file is None:
            self.acquire()
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def lock_folder(folder: Path, error: type[GraphSageError], advice: str) -> FileLock:
    """The lock of `folder`, acquired. If another process holds it: an `error` with its process id and `advice`."""
    lock = FileLock(folder / "lock")
    if lock.path.is_symlink() or (lock.path.exists() and not lock.path.is_file()):  # opening a FIFO may wait for ever
        raise error(f"{lock.path} is a link, FIFO or device, and only regular files are read; delete it")
    if not lock.acquire(wait=False):
        owner = lock.path.read_text(encoding="utf-8")[:20] or "another"
        raise error(f"{folder} is in use by process {owner}; {advice}")
    lock.path.write_text(str(os.getpid()), encoding="utf-8")
    return lock


@contextmanager
def shared_lock(folder: Path, error: type[GraphSageError], advice: str) -> Iterator[None]:
    """Keep `lock_folder` from acquiring a lock meanwhile. Nothing is written, so the folder may be read-only."""
    path, handle = folder / "lock", None
    try:
        if path.is_symlink() or (path.exists() and not path.is_file()):
            raise error(f"{path} is a link, FIFO or device, and only regular files are read; delete it")
        if path.exists():  # otherwise it was never locked
            handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                owner = os.pread(handle, 20, 0).decode() or "another"
                raise error(f"{folder} is in use by process {owner}; {advice}") from None
        yield
    finally:
        if handle is not None:
            os.close(handle)

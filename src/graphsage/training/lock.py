"""A lock that is a file: held by one process on any machine that sees the folder, let go when that process dies."""

import fcntl
from pathlib import Path
from types import TracebackType
from typing import IO


class FileLock:
    """`with FileLock(path):` waits for its turn; `acquire(wait=False)` only tries."""

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
        self.acquire()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

"""The mark: number and check of the last change that was made durable, in a file of its own beside the journal.

SQLite ignores a damaged end of its WAL, because a crash may leave one. The mark tells that apart from a lost end: a
journal that ends before it has lost changes. Two records are written in turn, so that a torn write spoils only one. A
process that is killed loses nothing of it. The file is synced once a second, so after a power failure it may be that
much behind the journal, never ahead of it.
"""

import os
import struct
import time
from hashlib import blake2b
from pathlib import Path

from graphsage.atomic import atomic_file
from graphsage.errors import StoreError
from graphsage.regular_files import is_regular, read_regular

NAME = "journal.mark"
_RECORD, _SLOT, _SYNC = struct.Struct("<Q16s"), 64, 1.0


class Mark:
    def __init__(self, folder: Path, sequence: int, check: bytes) -> None:
        """Write a new mark, and go on writing it."""
        self._path = folder / NAME
        if not is_regular(self._path) or self._path.stat().st_size != 2 * _SLOT:
            with atomic_file(self._path) as temporary:
                temporary.write_bytes(_record(sequence, check) * 2)
        self._handle = os.open(self._path, os.O_WRONLY | os.O_CLOEXEC)
        self._slot, self._synced = 0, time.monotonic()
        for _ in range(2):  # in place, so that a store opens on a full disk
            self.write(sequence, check)

    def write(self, sequence: int, check: bytes) -> None:
        """Note a change that is durable in the journal."""
        os.pwrite(self._handle, _record(sequence, check), self._slot * _SLOT)
        self._slot = 1 - self._slot
        if time.monotonic() - self._synced > _SYNC:
            os.fdatasync(self._handle)
            self._synced = time.monotonic()

    def close(self) -> None:
        os.fdatasync(self._handle)
        os.close(self._handle)


def read_mark(folder: Path) -> tuple[int, bytes]:
    """Number and check of the last durable change."""
    path = folder / NAME
    try:
        content = read_regular(path, StoreError, 2 * _SLOT)
    except FileNotFoundError:
        raise StoreError(f"{path} is missing") from None
    records = [content[start : start + _SLOT] for start in (0, _SLOT)]
    good = [_RECORD.unpack_from(each) for each in records if _is_whole(each)]
    if not good:
        raise StoreError(f"{path} is damaged")
    sequence, check = max(good)
    return sequence, check


def _record(sequence: int, check: bytes) -> bytes:
    fields = _RECORD.pack(sequence, check)
    return fields + blake2b(fields, digest_size=_SLOT - len(fields)).digest()


def _is_whole(record: bytes) -> bool:
    return len(record) == _SLOT and record == _record(*_RECORD.unpack_from(record))

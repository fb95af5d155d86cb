"""Checksums of the blocks of a file, so that damage is found before the first use of a block and named.

A block is 64 KiB and its checksum a CRC-32, which finds every flipped bit; checking takes 0.7 s per GB. A file that is
mapped or read in parts is checked part by part, by reads of its own: a disk error or a cut is an error of the read,
where a mapping would end the process.
"""

import os
import threading
import weakref
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from graphsage.errors import DataError, GraphSageError
from graphsage.regular_files import open_regular

BLOCK = 1 << 16  # bytes: a request that reads 200 rows of features checks at most 13 MB


@dataclass(frozen=True)
class FileSums:
    """Size of a file, and the CRC-32 of each of its blocks."""

    size: int
    sums: tuple[int, ...]

    def as_json(self) -> dict[str, Any]:
        return {"bytes": self.size, "crc32": "".join(f"{value:08x}" for value in self.sums)}

    @staticmethod
    def from_json(value: Any) -> "FileSums":
        """ValueError if `value` is not what `as_json` returns."""
        if not (isinstance(value, dict) and type(value.get("bytes")) is int and isinstance(value.get("crc32"), str)):
            raise ValueError("checksums of a file must be its bytes and crc32")
        size, text = value["bytes"], value["crc32"]
        if size < 0 or len(text) != 8 * -(-size // BLOCK):
            raise ValueError("there must be one checksum for each block of a file")
        return FileSums(size, tuple(np.frombuffer(bytes.fromhex(text), ">u4").tolist()))


def sums_of(path: Path, error: type[GraphSageError] = DataError) -> FileSums:
    """Read a file once."""
    sums, size = [], 0
    with open_regular(path, error) as file:
        while piece := file.read(BLOCK):
            sums.append(zlib.crc32(piece))
            size += len(piece)
    return FileSums(size, tuple(sums))


@dataclass(eq=False)
class CheckedFile:
    """A file with known checksums. `check` verifies the blocks that a read touches, each once."""

    path: Path
    known: FileSums
    error: type[GraphSageError] = DataError
    advice: str = "write it again"
    done: npt.NDArray[np.bool_] = field(init=False, repr=False)
    whole: bool = field(init=False, default=False)
    """Whether all blocks are verified, so that reads need not look."""
    damaged: bool = field(init=False, default=False)
    """Whether damage was found when a block was last verified."""

    def __post_init__(self) -> None:
        self.done = np.zeros(len(self.known.sums), bool)
        self._guard = threading.Lock()
        try:
            with open_regular(self.path, self.error) as file:
                self._handle = os.dup(file.fileno())
        except FileNotFoundError:
            raise self.error(f"{self.path} is missing; {self.advice}") from None
        weakref.finalize(self, os.close, self._handle)
        self.check_size()

    def check_size(self) -> None:
        """Refuse a file that has been cut or has grown. Reading a cut part of a mapped file would end the process."""
        size = os.lseek(self._handle, 0, os.SEEK_END)  # takes a fifth of the time of fstat
        if size != self.known.size:
            raise self.error(f"{self.path} has {size:,} bytes, and {self.known.size:,} were written; {self.advice}")

    def check(self, start: int = 0, stop: int | None = None) -> None:
        """Verify the blocks of bytes start..stop that have not been verified yet."""
        if self.whole:
            return
        stop = self.known.size if stop is None else stop
        first, last = start // BLOCK, -(-stop // BLOCK)
        if last - first == 1 and self.done[first]:
            return  # most reads are of one block
        for block in (first + np.flatnonzero(~self.done[first:last])).tolist():
            self.verify(block)

    def check_rows(self, rows: npt.NDArray[np.int64], start: int, row_bytes: int) -> None:
        """Verify the blocks of `rows` of an array whose row 0 begins at byte `start`."""
        if self.whole or not len(rows) or not row_bytes:
            return
        places = start + rows * row_bytes
        first, last = places // BLOCK, (places + row_bytes - 1) // BLOCK
        for extra in range(int((last - first).max()) + 1):
            wanted = np.minimum(first + extra, last)
            missing = wanted[~self.done[wanted]]
            if not len(missing):
                continue
            for block in np.unique(missing).tolist():
                self.verify(block)

    def verify(self, block: int) -> bytes:
        """Read and verify a block, whether or not it was verified before; a damaged one is refused from now on."""
        start = block * BLOCK
        wanted = min(BLOCK, self.known.size - start)
        try:
            found = os.pread(self._handle, wanted, start)
            trouble = "it is not as it was written"
        except OSError as problem:
            found, trouble = b"", str(problem.strerror)
        if len(found) != wanted or zlib.crc32(found) != self.known.sums[block]:
            with self._guard:
                self.done[block] = self.whole = False
                self.damaged = True
            raise self.error(
                f"{self.path} is damaged between bytes {start:,} and {start + wanted:,}: {trouble}; {self.advice}"
            )
        if not self.done[block]:
            with self._guard:
                self.done[block] = True
                self.whole = bool(self.done.all())
                self.damaged = self.damaged and not self.whole
        return found

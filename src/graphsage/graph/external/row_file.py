"""Rows of `.npy` files by plain reads and writes: only what is asked for is in memory, and nothing stays mapped."""

import os
import zlib
from pathlib import Path
from tokenize import TokenError
from typing import Any

import numpy as np
import numpy.typing as npt

from graphsage.checksummed_blocks import CheckedFile
from graphsage.errors import DataError

Array = npt.NDArray[Any]
_CHUNK = 1 << 24  # bytes
# What NumPy raises for a damaged header, which it parses as Python.
HEADER_ERRORS = (
    ValueError,
    EOFError,
    OSError,
    SyntaxError,
    TypeError,
    KeyError,
    TokenError,
    RecursionError,
    MemoryError,
)


class RowFile:
    """The rows (first axis) of an `.npy` file. With `checked`, blocks are verified before they are first read."""

    def __init__(self, path: Path, checked: CheckedFile | None = None) -> None:
        self.path, self._checked = path, checked
        if path.exists() and not path.is_file():
            raise DataError(f"{path} is no file")  # a FIFO would block
        self.shape: tuple[int, ...]
        self.dtype: np.dtype[Any]
        try:
            with path.open("rb") as file:
                version = np.lib.format.read_magic(file)
                read: Any = getattr(np.lib.format, f"read_array_header_{1 if version == (1, 0) else 2}_0")
                self.shape, fortran, self.dtype = read(file)
                self._start = file.tell()
        except FileNotFoundError:
            raise DataError(f"{path} does not exist") from None
        except HEADER_ERRORS as error:
            raise DataError(f"{path} is not a whole .npy file ({error}); write it again") from error
        if self.dtype.hasobject or not self.shape or (fortran and len(self.shape) > 1):
            raise DataError(f"{path} holds {self.dtype} of shape {self.shape}, which cannot be read row by row")
        self.row_bytes = int(np.prod(self.shape[1:], dtype=np.int64)) * self.dtype.itemsize
        missing = self._start + len(self) * self.row_bytes - path.stat().st_size
        if missing > 0:
            raise DataError(f"{path} is not a whole .npy file ({missing} bytes are missing); write it again")

    def __len__(self) -> int:
        return int(self.shape[0])

    def read(self, start: int, stop: int) -> Array:
        """Rows start..stop, fresh memory."""
        rows = np.empty((stop - start, *self.shape[1:]), self.dtype)
        view = _bytes(rows)
        done, place = 0, self._start + start * self.row_bytes
        if self._checked is not None:
            self._checked.check(place, place + len(view))
        with self.path.open("rb", buffering=0) as file:
            while done < len(view):
                count = os.preadv(file.fileno(), [view[done:]], place + done)
                if not count:
                    raise DataError(f"{self.path} ends too early; it was changed while it was read")
                done += count
        return rows

    def checksum(self) -> int:
        """CRC-32 of all rows, read in pieces."""
        step, value = max(1, _CHUNK // max(self.row_bytes, 1)), 0
        for start in range(0, len(self), step):
            rows = self.read(start, min(start + step, len(self)))
            value = zlib.crc32(_bytes(rows), value)
        return value


class RowWriter:
    """An `.npy` file written in parts, with the bytes of `numpy.save`; its header is completed at the end."""

    def __init__(self, path: Path, dtype: npt.DTypeLike, row_shape: tuple[int, ...] = ()) -> None:
        self.dtype, self.row_shape, self.count, self.checksum = np.dtype(dtype), row_shape, 0, 0
        self._file = path.open("w+b")
        self._header()

    def _header(self) -> None:
        # NumPy pads headers so that a longer first axis fits in the same bytes.
        about = {"descr": self.dtype.str, "fortran_order": False, "shape": (self.count, *self.row_shape)}
        np.lib.format.write_array_header_1_0(self._file, about)

    def write(self, rows: Array) -> None:
        array = np.ascontiguousarray(rows, dtype=self.dtype)
        assert array.shape[1:] == self.row_shape
        data = _bytes(array)
        self.checksum = zlib.crc32(data, self.checksum)
        self._file.write(data)
        self.count += len(array)

    def finish(self) -> None:
        """Complete the header, and close."""
        self._file.seek(0)
        self._header()
        self.close()

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> "RowWriter":
        return self

    def __exit__(self, error: object, *_: object) -> None:
        if error is None:
            self.finish()
        else:
            self.close()


def _bytes(array: Array) -> memoryview:
    """What a contiguous array holds, without a copy."""
    flat: Any = array.reshape(-1).view(np.uint8) if array.size else b""
    return memoryview(flat)

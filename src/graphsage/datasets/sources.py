"""What the builders of data sets share: lines of packed text files, and the largest connected component."""

import bz2
import gzip
import io
import lzma
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
import numpy.typing as npt

from graphsage.errors import DataError

Array = npt.NDArray[Any]
PACKED = (".zst", ".gz", ".bz2", ".xz")


def lines(path: Path) -> Iterator[str]:
    """Lines without their ends. What cannot be read is an error that names the file and the line."""
    number = 0
    try:
        with io.TextIOWrapper(_opened(path), encoding="utf-8") as file:
            for line in file:
                number += 1
                yield line.rstrip("\n")
    except FileNotFoundError:
        raise DataError(f"{path} does not exist") from None
    except (OSError, EOFError, lzma.LZMAError, UnicodeDecodeError) as error:
        hint = ""
        if path.suffix == ".zst":
            hint = "; if it was packed with a long window, unpack it first: zstd -d --long=31"
        elif number == 0 and path.is_file():
            packed = f"{', '.join(PACKED)}, or none of them for plain text"
            hint = f"; its name must end as it was packed ({packed}); if it does, fetch it again"
        raise DataError(f"{path} cannot be read after line {number} ({error}){hint}") from error


def _opened(path: Path) -> IO[bytes]:
    if path.suffix != ".zst":
        openers: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
        return cast(IO[bytes], openers.get(path.suffix, open)(path, "rb"))
    import pyarrow as pa

    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder")
    if not path.is_file():
        raise FileNotFoundError(path)
    return cast(IO[bytes], io.BufferedReader(_Stream(pa.CompressedInputStream(pa.OSFile(str(path)), "zstd"))))


class _Stream(io.RawIOBase):
    """A pyarrow stream with the methods that `io.BufferedReader` calls."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._stream.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        if not self.closed:
            self._stream.close()
        super().close()


def largest_component(num_nodes: int, edges: Array) -> tuple[Array, Array]:
    """Ascending rows of the largest component (of equals, the one with the smallest row), and its edges in new rows."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    pairs = np.asarray(edges, np.int64).reshape(-1, 2)
    ones = np.ones(len(pairs), np.int8)
    _, part = connected_components(coo_array((ones, (pairs[:, 0], pairs[:, 1])), (num_nodes, num_nodes)), False)
    rows = np.flatnonzero(part == np.bincount(part).argmax())
    place = np.full(num_nodes, -1)
    place[rows] = np.arange(len(rows))
    kept = place[pairs]
    return rows, kept[(kept >= 0).all(axis=1)]

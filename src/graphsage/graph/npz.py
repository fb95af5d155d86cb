"""`.npz` archives of other people's making: arrays read one at a time, never pickled, never larger than they can be.

NumPy's own reader believes the header of each array and unpacks whatever is packed. Here the header must agree with the
size that the archive's directory states, and an array that is stored without compression is mapped, not read.
"""

import math
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from graphsage.errors import DataError

_MAX_UNPACKED = 1 << 35  # bytes of one compressed array: 32 GiB; stored arrays are mapped, and may be larger
_MAX_RATIO = 1100  # deflate packs at most 1032 to 1
_LOCAL_HEADER = 30  # bytes before the name of a zip member
Array = npt.NDArray[Any]


class Archive:
    """The arrays of an `.npz` file by name."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        try:
            with zipfile.ZipFile(self.path) as file:
                self._members = {info.filename.removesuffix(".npy"): info for info in file.infolist()}
        except FileNotFoundError:
            raise DataError(f"{self.path} does not exist") from None
        except (zipfile.BadZipFile, OSError, ValueError) as error:
            raise DataError(f"{self.path} is not a whole .npz file ({error}); fetch or write it again") from error

    def __contains__(self, name: str) -> bool:
        return name in self._members

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._members)

    def dtype(self, name: str) -> np.dtype[Any]:
        """The type of an array, also of one that cannot be read since it holds objects."""
        with self._opened(name) as (_, member):
            return _read_header(member)[2]

    def array(self, name: str) -> Array:
        """One array, without a copy in memory where the file allows that."""
        with self._opened(name) as (info, member):
            shape, fortran, dtype = self._header(member, info)
            if info.compress_type == zipfile.ZIP_STORED and 0 not in shape:
                return self._mapped(info, member.tell(), shape, fortran, dtype)
            flat = np.empty(math.prod(shape), dtype)
            view = flat.view(np.uint8).reshape(-1)
            done = 0
            while done < len(view):
                chunk = member.read(min(1 << 24, len(view) - done))
                if not chunk:
                    raise DataError(f"{self.path}: {name} is cut short; fetch or write it again")
                view[done : done + len(chunk)] = np.frombuffer(chunk, np.uint8)
                done += len(chunk)
            if member.read(1):  # also makes zipfile compare the checksum
                raise DataError(f"{self.path}: {name} is longer than it says; fetch or write it again")
        return _native(flat.reshape(shape, order="F" if fortran else "C"))

    @contextmanager
    def _opened(self, name: str) -> Iterator[tuple[zipfile.ZipInfo, IO[bytes]]]:
        if name not in self:
            raise DataError(f"{self.path} lacks the array {name!r}; it has {', '.join(self.names) or 'none'}")
        info = self._members[name]
        try:
            with zipfile.ZipFile(self.path) as file, file.open(info) as member:
                yield info, member
        except DataError:
            raise
        except (zipfile.BadZipFile, zlib.error, OSError, EOFError, ValueError, RuntimeError, MemoryError) as error:
            raise DataError(f"{self.path}: {name} cannot be read ({error}); fetch or write it again") from error

    def _header(self, member: Any, info: zipfile.ZipInfo) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
        shape, fortran, dtype = _read_header(member)
        where = f"{self.path}: {info.filename}"
        if dtype.hasobject:
            raise DataError(f"{where} holds Python objects, which only pickle can read; that may execute code")
        if dtype.names is not None or member.tell() + math.prod(shape) * dtype.itemsize != info.file_size:
            raise DataError(f"{where} says that it holds {dtype} {shape}, but has {info.file_size} bytes")
        packed = info.compress_type != zipfile.ZIP_STORED
        if packed and info.file_size > min(_MAX_UNPACKED, _MAX_RATIO * info.compress_size + 4096):
            raise DataError(f"{where} would unpack to {info.file_size} bytes, which is too much to be true")
        return shape, fortran, dtype

    def _mapped(
        self, info: zipfile.ZipInfo, start: int, shape: tuple[int, ...], fortran: bool, dtype: np.dtype[Any]
    ) -> Array:
        with self.path.open("rb") as file:
            file.seek(info.header_offset)
            header = file.read(_LOCAL_HEADER)
        skipped = int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:30], "little")
        offset = info.header_offset + _LOCAL_HEADER + skipped + start
        mapped = np.memmap(self.path, dtype, "r", offset, shape, "F" if fortran else "C")
        # Zip puts arrays at any byte; torch wants numbers where they belong.
        return _native(np.asarray(mapped) if mapped.flags.aligned else np.array(mapped))


def read_sparse(archive: Archive, prefix: str = "") -> Any:
    """A SciPy matrix from arrays named as by scipy.sparse.save_npz, after `prefix`; CSR if `format` is missing."""
    from scipy import sparse

    kind = "csr"
    if f"{prefix}format" in archive:
        value = archive.array(f"{prefix}format").item()
        kind = value.decode("ascii", "replace") if isinstance(value, bytes) else str(value)
    shape = archive.array(f"{prefix}shape")
    if shape.shape != (2,) or shape.dtype.kind not in "iu":
        raise DataError(f"{archive.path}: {prefix}shape must be two integers; got {shape.dtype} {shape.shape}")
    size = int(shape[0]), int(shape[1])
    values = archive.array(f"{prefix}data")
    try:
        if kind == "coo":
            rows, columns = archive.array(f"{prefix}row"), archive.array(f"{prefix}col")
            return sparse.coo_matrix((values, (rows, columns)), shape=size)
        if kind not in ("csr", "csc"):
            raise DataError(f"{archive.path}: sparse format {kind!r} is not read; write it as csr, csc or coo")
        make = sparse.csr_matrix if kind == "csr" else sparse.csc_matrix
        indices, indptr = archive.array(f"{prefix}indices"), archive.array(f"{prefix}indptr")
        matrix = make((values, indices, indptr), shape=size)
        matrix.check_format(full_check=True)
    except (ValueError, TypeError, IndexError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{archive.path}: the sparse matrix {prefix or 'in it'} is damaged ({error})") from error
    return matrix


def _read_header(member: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    version = np.lib.format.read_magic(member)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    return read(member)


def _native(array: Array) -> Array:
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))

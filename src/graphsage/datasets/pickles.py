"""Pickled NumPy arrays, SciPy matrices and dictionaries of lists, read without running what the pickle asks for.

A pickle is a small program. Here each name in it is looked up in a table of stand-ins that only remember what they were
given; a name outside the table, or an instruction that those files do not need, is an error. Arrays are then made from
what was remembered, after checking it. docs/design/0007-planetoid-pickles.md says why.
"""

import io
import math
import pickle
import pickletools
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from graphsage.errors import DataError

_MAX_BYTES = 1 << 31
_INSTRUCTIONS = frozenset(
    """PROTO FRAME STOP MARK POP NONE NEWTRUE NEWFALSE INT BININT BININT1 BININT2 LONG LONG1 FLOAT BINFLOAT STRING
    BINSTRING SHORT_BINSTRING UNICODE BINUNICODE SHORT_BINUNICODE BINBYTES SHORT_BINBYTES EMPTY_LIST APPEND APPENDS LIST
    EMPTY_TUPLE TUPLE TUPLE1 TUPLE2 TUPLE3 EMPTY_DICT DICT SETITEM SETITEMS GET BINGET LONG_BINGET PUT BINPUT
    LONG_BINPUT MEMOIZE GLOBAL STACK_GLOBAL REDUCE BUILD NEWOBJ""".split()  # noqa: SIM905
)
_TYPE = re.compile(r"[fiu][1248]|b1")


class _Remembered:
    """Stands for an array, its type or a matrix: keeps what it was made of, does nothing."""

    def __init__(self, *made_of: object) -> None:
        self.made_of = made_of
        self.state: Any = None

    def __setstate__(self, state: object) -> None:
        self.state = state


class _Array(_Remembered):
    pass


class _Type(_Remembered):
    pass


class _Matrix(_Remembered):
    def __init__(self) -> None:
        super().__init__()


def _new_array(*_: object) -> _Array:
    return _Array()


def _new_matrix(kind: object, *_: object) -> _Matrix:
    if kind is not _Matrix:
        raise pickle.UnpicklingError("only a csr_matrix is made this way")
    return _Matrix()


def _new_dict(*_: object) -> dict[Any, Any]:
    return {}


def _bytes(text: object = "", *_: object) -> bytes:
    return str(text).encode("latin1")


class _Name:
    """Stands for a built-in that is mentioned and never called."""


# Python 2 and 3, old and new NumPy and SciPy write different names for the same things.
_NAMES: dict[tuple[str, str], Callable[..., object] | _Name] = {
    ("numpy", "ndarray"): _Array,
    ("numpy", "dtype"): _Type,
    ("numpy.core.multiarray", "_reconstruct"): _new_array,
    ("numpy._core.multiarray", "_reconstruct"): _new_array,
    ("scipy.sparse.csr", "csr_matrix"): _Matrix,
    ("scipy.sparse._csr", "csr_matrix"): _Matrix,
    ("copy_reg", "_reconstructor"): _new_matrix,
    ("copyreg", "_reconstructor"): _new_matrix,
    ("collections", "defaultdict"): _new_dict,
    ("_codecs", "encode"): _bytes,
    ("__builtin__", "bytes"): _bytes,
    ("builtins", "bytes"): _bytes,
    **{(module, name): _Name() for module in ("__builtin__", "builtins") for name in ("list", "object", "int")},
}


class _Reader(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        try:
            return _NAMES[module, name]
        except KeyError:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}") from None


def read_pickle(path: Path) -> Any:
    """What a pickle of plain data holds: a NumPy array, a SciPy csr_matrix or a dictionary of lists of integers."""
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise DataError(f"{path} is larger than {_MAX_BYTES} bytes; that is no file of this format")
        content = path.read_bytes()
    except FileNotFoundError:
        raise DataError(f"{path} does not exist") from None
    except OSError as error:
        raise DataError(f"{path} cannot be read ({error.strerror})") from error
    try:
        _check_instructions(content)
        value = _Reader(io.BytesIO(content), encoding="latin1").load()
        return _made(value, len(content))
    except DataError as error:
        raise DataError(f"{path} {error}") from error
    except Exception as error:  # a stream of instructions can fail in any way
        raise DataError(f"{path} is not a pickle of plain arrays ({error}); it is not read any further") from error


def _check_instructions(content: bytes) -> None:
    for instruction, argument, _ in pickletools.genops(content):
        if instruction.name not in _INSTRUCTIONS:
            raise DataError(f"uses the pickle instruction {instruction.name}, which plain arrays do not need; refused")
        if "PUT" in instruction.name and int(argument or 0) > len(content):
            raise DataError("numbers its parts beyond its length; refused")


def _made(value: object, size: int) -> Any:
    if type(value) is _Array:
        return _array(value)
    if type(value) is _Matrix:
        return _matrix(value)
    if type(value) is dict:
        return _lists(value, size)
    raise DataError(f"holds a {type(value).__name__}; expected an array, a csr_matrix or a dictionary of lists")


def _array(value: _Array) -> Any:
    _, shape, kind, fortran, raw = value.state
    if type(kind) is not _Type or not isinstance(raw, str | bytes):
        raise DataError("holds an array of objects; only numbers are read")
    code = str(kind.made_of[0])
    order = str(kind.state[1]) if kind.state is not None else "|"
    if not _TYPE.fullmatch(code) or order not in "<>|=":
        raise DataError(f"holds an array of type {order}{code}; only plain numbers are read")
    data = raw.encode("latin1") if isinstance(raw, str) else raw
    dtype = np.dtype(order + code)
    shape = tuple(int(length) for length in shape)
    if min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize != len(data):
        raise DataError(f"holds an array of shape {shape} with {len(data)} bytes, which do not belong together")
    array = np.frombuffer(data, dtype).reshape(shape, order="F" if fortran else "C")
    return array.astype(dtype.newbyteorder("="))


def _matrix(value: _Matrix) -> Any:
    from scipy import sparse

    state = value.state
    parts = [_array(state[name]) for name in ("data", "indices", "indptr")]
    rows, columns = (int(length) for length in state["_shape"])
    matrix = sparse.csr_matrix((parts[0], parts[1], parts[2]), shape=(rows, columns))
    matrix.check_format(full_check=True)
    return matrix


def _lists(value: dict[Any, Any], size: int) -> dict[int, list[int]]:
    total = 0
    for node, others in value.items():
        if type(node) is not int or type(others) is not list or not all(type(other) is int for other in others):
            raise DataError(f"must map each node to a list of nodes; {str(node)[:40]!r} has something else")
        total += len(others)
        if total > size:  # each number takes a byte at least: lists that are repeated by reference are a trap
            raise DataError("holds more neighbors than its length allows; refused")
    return value

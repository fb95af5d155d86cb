"""JSON and `.npy` files of other formats, read with errors that name the file and the row."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from graphsage.errors import DataError
from graphsage.graph.convert.scipy import from_scipy
from graphsage.graph.graph import UNKNOWN, Graph
from graphsage.graph.npz import Archive, read_sparse
from graphsage.graph.storage import load_array
from graphsage.tables.messages import shown

_CHUNK_NUMBERS = 1 << 22
_MAX_CLASSES = 1 << 31
_MOST = 1 << 32  # numbers of a dense matrix: 16 GiB


def read_json(path: Path) -> dict[str, Any]:
    """A JSON file whose top level is an object."""
    try:
        content = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise DataError(f"{path} does not exist") from None
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path} is not whole JSON ({error}); fetch or write it again") from error
    except OSError as error:
        raise DataError(f"{path} cannot be read ({error.strerror})") from error
    if not isinstance(content, dict):
        raise DataError(f"{path} must hold a JSON object {{...}}; got a {type(content).__name__}")
    return content


def read_list(content: dict[str, Any], names: tuple[str, ...], path: Path) -> list[dict[str, Any]]:
    """The first of `names` in a JSON object: a list of objects."""
    for name in names:
        if name in content:
            break
    else:
        raise DataError(f"{path} lacks {names[0]!r}; it must be a graph in node-link form")
    rows = content[name]
    if not isinstance(rows, list):
        raise DataError(f"{path}: {name!r} must be a list; got a {type(rows).__name__}")
    for row, value in enumerate(rows, 1):
        if not isinstance(value, dict):
            raise DataError(f"{path}: {name} row {row} must be an object; got {value!r}")
    return rows


def read_column(rows: list[dict[str, Any]], key: str, path: Path, of: str) -> list[Any]:
    """`key` of each row; a row without it is an error."""
    try:
        return [row[key] for row in rows]
    except KeyError:
        row = next(i for i, value in enumerate(rows, 1) if key not in value)
        raise DataError(f"{path}: {of} row {row} lacks {key!r}") from None


def read_classes(path: Path, ids: Sequence[Any], needed: npt.NDArray[np.bool_]) -> npt.NDArray[Any]:
    """Classes (N,) or labels (N, C) from a JSON object by id. Only `needed` nodes must be labeled."""
    class_map = read_json(path)
    values = [class_map.get(str(value)) for value in ids]
    sample = next((value for value in values if value is not None), None)
    width = len(sample) if isinstance(sample, list) else None
    for row, (name, value) in enumerate(zip(ids, values, strict=True)):
        if value is None:
            if needed[row]:
                raise DataError(f"{path} has no entry for node {name!r}; every node of the split needs one")
            values[row] = -1 if width is None else [UNKNOWN] * width
        elif width is None:
            if type(value) is not int or not -1 <= value < _MAX_CLASSES:
                raise DataError(f"{path}: the class of node {name!r} must be a number from 0 on; got {shown(value)}")
        elif not isinstance(value, list) or len(value) != width or any(mark not in (0, 1) for mark in value):
            raise DataError(f"{path}: node {name!r} must have {width} labels of 0 and 1; got {shown(value)}")
    return np.array(values, np.int64 if width is None else np.uint8)


def read_features(path: Path, rows: npt.NDArray[np.int64] | None = None) -> npt.NDArray[np.float32]:
    """A table of numbers (M, D) as float32, in the order of `rows` where given; NaN and infinity are errors."""
    table = read_table(path)
    order = np.arange(len(table)) if rows is None else rows
    features = np.empty((len(order), table.shape[1]), np.float32)
    step = max(1, _CHUNK_NUMBERS // max(1, table.shape[1]))
    for start in range(0, len(order), step):
        chosen = order[start : start + step]
        with np.errstate(over="ignore"):  # beyond float32: reported as infinity
            features[start : start + step] = table[chosen]
        finite = np.isfinite(features[start : start + step]).all(axis=1)
        if not finite.all():
            raise DataError(
                f"{path} row {chosen[~finite][0] + 1} holds NaN or infinity (as float32); fill or drop it first"
            )
    return features


def read_vector_file(path: Path) -> npt.NDArray[np.float32]:
    """The matrix (N, D), dense."""
    return _dense(path) if path.suffix == ".npz" else read_features(path)


def _dense(path: Path) -> npt.NDArray[np.float32]:
    matrix = read_sparse(Archive(path))
    rows, columns = matrix.shape
    if rows * columns > _MOST:
        raise DataError(f"{path} has shape {(rows, columns)}; as a dense matrix it may have at most {_MOST} numbers")
    if matrix.dtype.kind not in "fiub":
        raise DataError(f"{path} must hold numbers; got {matrix.dtype}")
    if not np.isfinite(matrix.data).all():
        raise DataError(f"{path} holds NaN or infinity; fill or drop it first")
    return np.asarray(matrix.toarray(), dtype=np.float32)


def read_table(path: Path, dimensions: int = 2) -> Any:
    """A numeric `.npy` array of the given number of dimensions, mapped."""
    table = load_array(path)
    if table.dtype.kind not in "fiub" or table.ndim != dimensions:
        shape = "(rows, columns)" if dimensions == 2 else "(rows,)"
        raise DataError(f"{path} must hold numbers of shape {shape}; got {table.dtype} {table.shape}")
    return table


def check_count(path: Path, got: int, wanted: int, than: str) -> None:
    """Files that describe the same nodes must agree on how many there are."""
    if got != wanted:
        raise DataError(f"{path} has {got} rows, but {than} has {wanted} nodes; the files do not belong together")


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Add the name of the file to an error about rows and edges."""
    try:
        yield
    except DataError as error:
        if str(path) in str(error):
            raise
        raise DataError(f"{path}: {error}") from error


def undirected(adjacency: Any, **attributes: Any) -> Graph:
    """An undirected graph of a matrix that usually has both directions: then no entry is doubled on the way."""
    graph = from_scipy(adjacency, **attributes)
    return from_scipy(adjacency, directed=False, **attributes) if graph.directed else graph

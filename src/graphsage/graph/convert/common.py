"""What all converters share: names they look for, labels in any form, split masks, edges in both directions or one."""

import warnings
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from graphsage.errors import ConfigError, DataError, DataWarning
from graphsage.graph.build import from_edges
from graphsage.graph.graph import UNKNOWN, Graph
from graphsage.graph.split import Split
from graphsage.tables.spec import MERGED

FEATURES = ("x", "feature", "features", "feat")
LABELS = ("y", "label", "labels")
TIMES = ("time",)
Array = npt.NDArray[Any]


def from_entries(
    sources: Any,
    targets: Any,
    num_nodes: int,
    /,
    *,
    directed: bool | None,
    direction: str | None = None,
    **attributes: Any,
) -> Graph:
    """A graph of entries source -> target. `directed=None`: undirected where each entry has its reverse. `direction` is
    that of `from_edges`."""
    edges = torch.stack([_ends(sources), _ends(targets)], dim=1)
    if directed or direction not in (None, MERGED):
        return from_edges(edges, num_nodes, directed=bool(directed), direction=direction, **attributes)
    merge = directed is False or direction == MERGED
    if not merge or attributes.get("edge_weight") is not None:
        graph = from_edges(edges, num_nodes, directed=True, **attributes)
        if is_symmetric(graph):  # both entries of an undirected edge are there: their weights must not add up
            undirected = graph.with_relations(lambda each: each.replace(direction=MERGED))
            return undirected.replace(direction=MERGED)
        if not merge:
            return graph
    return from_edges(edges, num_nodes, **attributes)


def is_symmetric(graph: Graph) -> bool:
    """Whether each stored entry of each type has its reverse, with the same time and weight if entries have them."""
    from scipy.sparse import csr_array

    if graph.relations:
        return all(is_symmetric(each) for each in graph.relations.values())
    n, indptr, indices = graph.num_nodes, plain(graph.indptr), plain(graph.indices)
    known = [plain(each) for each in (graph.edge_time, graph.edge_weight) if each is not None]
    for ours in known or [np.ones(len(indices), np.int8)]:
        turned = csr_array((ours, indices, indptr), shape=(n, n)).tocsc()  # linear: no sorting
        pairs = (turned.indptr, indptr), (turned.indices, indices), (turned.data, ours)
        if not all(np.array_equal(theirs, own) for theirs, own in pairs):
            return False
    return True


def labels_from(values: Any) -> tuple[Array, tuple[str, ...] | None]:
    """Labels in any usual form -> classes (N,) or many labels (N, C), and class names where they were names.

    A column (N, 1) is squeezed unless it is of bytes or booleans, which hold marks and not classes. None and NaN are
    unknown, also in place of a row of marks. Names become classes in sorted order. Numbers with a fraction are no
    classes: an error.
    """
    try:
        array = plain(values) if isinstance(values, Tensor | np.ndarray) else _listed(_marks(list(values)))
    except ValueError as error:
        raise DataError(f"labels must be one value a node, or lists of one length ({error})") from error
    if array.ndim == 2 and array.shape[1] == 1 and array.dtype.kind != "b" and array.dtype != np.uint8:
        array = array[:, 0]
    if array.ndim != 1:
        return array, None
    if array.dtype.kind == "O":
        array = _of_objects(array)
    if array.dtype.kind in "OUT":
        known = sorted({str(value) for value in array if value is not None})
        number = {name: i for i, name in enumerate(known)}
        return np.array([-1 if value is None else number[str(value)] for value in array], np.int64), tuple(known)
    if array.dtype.kind == "f":
        return _whole(array), None
    if array.dtype.kind not in "biu":
        raise DataError(f"labels must be classes (integers or names) or rows of 0 and 1; got {array.dtype}")
    return array.astype(np.int64), None


def answers_from(values: Any) -> dict[str, Any]:
    """What `from_edges` takes: labels and class names, or targets where numbers have a fraction."""
    numbers = _numbers(values)
    if numbers is not None and bool((np.isfinite(numbers) & (numbers != np.rint(numbers))).any()):
        return {"targets": numbers}
    labels, names = labels_from(values)
    return {"labels": labels, "class_names": names}


def _numbers(values: Any) -> Array | None:
    """Values (N,) or (N, T) as float64, with NaN for None; None if they are not all floats."""
    try:
        array = plain(values) if isinstance(values, Tensor | np.ndarray) else _listed(_marks(list(values)))
        array = _of_objects(array) if array.dtype.kind == "O" and array.ndim == 1 else array
    except (ValueError, DataError):  # `labels_from` says why
        return None
    return array.astype(np.float64) if array.dtype.kind == "f" and array.ndim in (1, 2) else None


def _marks(values: list[Any]) -> list[Any]:
    """Rows of marks with None for unknown ones -> NaN (or UNKNOWN, for bytes) in each place of those."""
    rows = [value for value in values if isinstance(value, list | tuple | np.ndarray | Tensor)]
    if not rows or len(rows) == len(values):
        return values
    unknown: Array = np.full(len(rows[0]), np.nan)
    if getattr(rows[0], "dtype", None) == np.uint8:
        unknown = np.full(len(rows[0]), UNKNOWN, np.uint8)
    return [unknown if value is None or value is np.nan else value for value in values]


def features_from(rows: Iterable[Any]) -> Array:
    """One vector (or number) a node -> (N, D)."""
    try:
        table = np.stack([plain(row) if isinstance(row, Tensor) else np.asarray(row) for row in rows])
    except ValueError as error:
        raise DataError(f"features must be vectors of one length, one per node ({error})") from error
    return table[:, None] if table.ndim == 1 else table


def splits_from(masks: Mapping[str, Any]) -> dict[str, Split]:
    """`train_mask`, `val_mask`, `test_mask` -> the split `given`; columns of two-dimensional masks -> given-0, ..."""
    parts = {
        part: np.asarray(plain(mask))
        for part in ("train", "val", "test")
        if (mask := masks.get(f"{part}_mask")) is not None
    }
    if "train" not in parts:
        return {}
    columns = max((mask.shape[1] for mask in parts.values() if mask.ndim == 2), default=0)
    if not columns:
        return {"given": Split.masks(**parts)}
    short = [part for part, mask in parts.items() if mask.ndim == 2 and mask.shape[1] != columns]
    if short:
        raise DataError(f"{short[0]}_mask has {parts[short[0]].shape[1]} columns, another mask has {columns}")
    return {
        f"given-{i}": Split.masks(**{part: mask[:, i] if mask.ndim == 2 else mask for part, mask in parts.items()})
        for i in range(columns)
    }


def plain(tensor: Any) -> Array:
    """A tensor from any device, or an array, as NumPy sees it; what NumPy has no type for becomes float32."""
    if not isinstance(tensor, Tensor):
        return np.asarray(tensor)
    tensor = tensor.detach().cpu()
    if tensor.layout != torch.strided:
        tensor = tensor.to_dense()
    array: Array = (tensor.float() if tensor.dtype == torch.bfloat16 else tensor).numpy()
    return array


def first_of(names: Iterable[str], there: Any) -> str | None:
    return next((name for name in names if name in there), None)


def note_dropped(what: str, names: Iterable[str], hint: str = "") -> None:
    """Say what an object has that a Graph cannot hold."""
    listed = sorted(map(str, names))
    if listed:
        shown = ", ".join(listed[:5]) + (", ..." if len(listed) > 5 else "")
        warnings.warn(f"{what} not carried over: {shown}{hint}", DataWarning, stacklevel=4)


def missing(library: str, method: str) -> ConfigError:
    return ConfigError(f"{method} needs {library}, which is not installed; install it: pip install {library}")


def _ends(values: Any) -> Tensor:
    if isinstance(values, Tensor):
        return values.detach().cpu()
    array = np.asarray(values)
    return torch.from_numpy(array if array.flags.writeable and array.dtype.kind == "i" else array.astype(np.int64))


def _listed(values: list[Any]) -> Array:
    """NumPy would make text of numbers that stand among names."""
    if any(value is None or isinstance(value, str) for value in values):
        array = np.empty(len(values), object)
        array[:] = values
        return array
    return np.asarray(values)


def _of_objects(array: Array) -> Array:
    """Objects -> all names, or all numbers; NaN and NA count as None."""
    values = [None if value is None or value != value else value for value in array.tolist()]
    if all(value is None or isinstance(value, str) for value in values):
        return np.array(values, object)
    if all(value is None or isinstance(value, int | float) for value in values):
        return np.array([np.nan if value is None else value for value in values], float)
    odd = next(value for value in values if value is not None and not isinstance(value, str))
    raise DataError(f"labels must be all names or all integers; got {odd!r} among them")


def _whole(array: Array) -> npt.NDArray[np.int64]:
    unknown = np.isnan(array)
    filled = np.where(unknown, -1, array)
    odd = np.flatnonzero((filled != np.floor(filled)) | (np.abs(filled) > 2**53))
    if len(odd):
        raise DataError(f"classes must be integers; node {odd[0]} has {array[odd[0]]}")
    return filled.astype(np.int64)

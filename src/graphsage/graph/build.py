"""From edge arrays to a Graph, with checks that name the offending row."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from graphsage.errors import GraphError, one_of, setting
from graphsage.graph.graph import UNKNOWN, Graph
from graphsage.graph.ids import NodeIds
from graphsage.kernels.csr import lists_of_codes, neighbor_lists
from graphsage.tables.messages import listed
from graphsage.tables.spec import BOTH, DIRECTIONS, MERGED
from graphsage.tables.values import LARGEST_TARGET

_MAX_CLASSES = 1_000_000  # a larger number is an id, and would ask for a matrix of that height
LARGEST_WEIGHT = 1e15  # sums of squares of larger ones would overflow float32
_CHECK_ROWS = 1 << 16  # rows of features checked at once: bounds memory on mapped tables
_MAX_DENSE = 1 << 34  # numbers of a sparse table made dense: 64 GiB
_MAX_NODES = 3_000_000_000  # so that row * n + column fits in 63 bits


def from_edges(
    edges: Any,
    num_nodes: int | None = None,
    *,
    features: Any = None,
    labels: Any = None,
    targets: Any = None,
    class_names: Sequence[str] | None = None,
    ids: Iterable[str] | Iterable[int] | NodeIds | None = None,
    time: Any = None,
    graph_number: Any = None,
    edge_time: Any = None,
    edge_type: Any = None,
    edge_types: Sequence[str] | None = None,
    edge_weight: Any = None,
    direction: str | None = None,
    directed: bool = False,
    self_loops: bool = True,
) -> Graph:
    """Edges (E, 2) of row numbers, (from, to) -> Graph.

    `direction` says which neighbors of a node it aggregates. 'merged', the default: both ends of each edge list the
    other. 'in': N(v) = {u : (u, v) in E}, as in the paper; `directed=True` says the same. 'out': those that v points
    at. 'both': two relations, in and out, which a model weights separately. `edge_type` (E,), names or numbers, makes
    each type a relation, or two with 'both'; `edge_types` are the types that there may be, also of no edge, in order.

    A repeated edge of a type is merged (the earliest `edge_time` stays). `self_loops=False` drops self loops.
    `edge_weight` (E,) are finite numbers >= 0: the weights of repeated edges add up, and 0 means that there is no edge.

    `features` may be a sparse matrix of SciPy or torch, which becomes dense. `labels` may be names of classes, with
    None for unknown; they are numbered in sorted order, or as in `class_names`. `targets` are numbers to predict, (N,)
    or (N, T) with NaN for unknown, in place of labels; `class_names` then names the columns. Without `num_nodes` the
    number of rows of features, labels or ids decides, and without these the largest row in an edge.
    """
    pairs = _edge_array(edges)
    ids = None if ids is None else NodeIds.of(ids)
    if labels is not None and targets is not None:
        raise GraphError("give labels or targets, not both: a graph has one kind of them")
    answers = labels if targets is None else targets
    n = _count_nodes(num_nodes, pairs, features=features, labels=answers, ids=ids, time=time, graph_number=graph_number)
    if n < 1:
        raise GraphError(f"a graph needs at least one node; got {n}; pass num_nodes for a graph without edges")
    if n > _MAX_NODES:
        raise GraphError(f"a graph has at most {_MAX_NODES} nodes; got {n}")
    if ids is not None and len(ids) != n:
        raise GraphError(f"ids must hold one id for each of the {n} nodes; got {len(ids)}")
    table = None if features is None else _features(features, n)
    if labels is not None and _kind_of(labels) in "OUS":
        labels, class_names = _numbered(labels, class_names)
    label_tensor = None if labels is None else _labels(labels, n)
    label_tensor = label_tensor if targets is None else as_targets(targets, n)
    _check_edges(pairs, n)  # after the rows: too few of them would make good edges look bad
    when = None if edge_time is None else _vector(edge_time, len(pairs), "edge_time", "edges")
    weight = None if edge_weight is None else _weights(edge_weight, len(pairs))
    kinds, types = (None, ()) if edge_type is None else _types(edge_type, len(pairs), edge_types)
    made = Edges(_shared(pairs.astype(np.int64, copy=False)), kinds, types, when, weight)
    if directed and direction not in (None, "in"):
        raise GraphError(f"directed=True is direction 'in'; got direction={direction!r} too, leave one of them out")
    lists = _lists(made, n, direction or ("in" if directed else MERGED), self_loops, ids)
    graph = lists.replace(
        features=table,
        labels=label_tensor,
        class_names=None if class_names is None else tuple(str(c) for c in class_names),
        ids=ids,
        time=None if time is None else _vector(time, n, "time", "nodes"),
        graph_number=None if graph_number is None else _vector(graph_number, n, "graph_number", "nodes"),
    )
    _check_class_names(graph)
    return graph


def with_nodes(
    graph: Graph,
    *,
    features: Any = None,
    edges: Any,
    ids: Iterable[str] | Iterable[int] | None = None,
    edge_type: Any = None,
    edge_weight: Any = None,
    edge_time: Any = None,
) -> Graph:
    """`graph` with new, unlabeled nodes after its own, joined by `edges` (new row numbers), without times of nodes. It
    has edge times if old and new edges have."""
    pairs = _edge_array(edges)
    new_ids = None if ids is None else list(ids)
    if features is not None:
        added = len(features)
    elif new_ids is not None:
        added = len(new_ids)
    else:
        added = max(0, _count_nodes(None, pairs) - graph.num_nodes)
    n = graph.num_nodes + added
    if graph.features is not None and features is None and added:
        raise GraphError(
            f"the graph has {graph.num_features} features per node; pass features for the {added} new nodes"
        )
    _check_edges(pairs, n)
    old = edges_of(graph)
    if (edge_type is None) != (old.kinds is None) and len(pairs):
        raise GraphError(
            f"the new edges must have types if the graph's edges have, and only then; pass {setting('edge_type')}"
        )
    if (edge_weight is None) != (old.weight is None) and len(pairs):
        raise GraphError(
            f"the new edges must have weights if the graph's edges have, and only then; pass {setting('edge_weight')}"
        )
    kinds = old.kinds
    if kinds is not None:
        kinds = torch.cat([kinds, _types([] if edge_type is None else edge_type, len(pairs), old.types)[0]])
    all_ids: NodeIds | None = None
    if graph.ids is not None:
        if new_ids is None and added:
            raise GraphError(f"the graph has outside ids; pass ids for the {added} new nodes")
        all_ids = graph.ids.followed_by(new_ids or [])  # type: ignore[arg-type]
    table = None
    if graph.features is not None:
        new = _features(features, added) if added else graph.features[:0]
        if new.shape[1] != graph.num_features:
            raise GraphError(f"new nodes must have {graph.num_features} features like the graph; got {new.shape[1]}")
        table = torch.cat([graph.features, new.to(graph.features)])
    labels = None
    if graph.labels is not None:
        unknown = graph.labels.new_full((added, *graph.labels.shape[1:]), unknown_label(graph))
        labels = torch.cat([graph.labels, unknown])
    times = None
    if old.time is not None and (edge_time is not None or not len(pairs)):
        times = torch.cat([old.time, _vector([] if edge_time is None else edge_time, len(pairs), "edge_time", "edges")])
    weights = old.weight
    if weights is not None:
        weights = torch.cat([weights.double(), _weights([] if edge_weight is None else edge_weight, len(pairs))])
    made = from_edges(
        torch.cat([old.pairs, _shared(pairs.astype(np.int64, copy=False))]),
        n,
        features=table,
        class_names=graph.class_names,
        ids=all_ids,
        edge_type=kinds,
        edge_types=old.types or None,
        edge_weight=weights,
        edge_time=times,
        direction=direction_of(graph),
    )
    return made.replace(labels=labels)


MOST_TYPES = 100  # more values are no types: each gets weights of its own


@dataclass(frozen=True, eq=False)
class Edges:
    """Edges (from, to), and what is known of each: its type as a number of `types`, its time and its weight."""

    pairs: Tensor
    kinds: Tensor | None = None
    types: tuple[str, ...] = ()
    time: Tensor | None = None
    weight: Tensor | None = None

    def some(self, keep: Tensor) -> "Edges":
        parts = (None if each is None else each[keep] for each in (self.kinds, self.time, self.weight))
        kinds, time, weight = parts
        return Edges(self.pairs[keep], kinds, self.types, time, weight)


def edges_of(graph: Graph, both_ways: bool = False) -> Edges:
    """The edges that the neighbor lists of a graph came from; an undirected one once, or `both_ways`."""
    lists, types = graph.edge_lists, types_of(graph)
    parts = []
    for number, each in enumerate(lists):
        listed, owners = each.indices.long(), each.edge_rows
        pairs = torch.stack([owners, listed] if each.direction == "out" else [listed, owners], dim=1)
        kinds = torch.full_like(listed, number) if types else None
        found = Edges(pairs, kinds, types, each.edge_time, each.edge_weight)
        parts.append(found if each.directed or both_ways else found.some(listed <= owners))

    def joined(name: str) -> Tensor | None:
        values = [getattr(part, name) for part in parts]
        return None if values[0] is None else torch.cat(values)

    return Edges(torch.cat([part.pairs for part in parts]), joined("kinds"), types, joined("time"), joined("weight"))


def types_of(graph: Graph) -> tuple[str, ...]:
    """The edge types of a graph; none if its edges have no type."""
    both = reads_both(graph)
    names = [name for name, each in graph.relations.items() if not both or each.direction == "in"]
    names = [name.removesuffix("in").removesuffix(" ") if both else name for name in names]
    return () if names in ([], [""]) else tuple(names)


def reads_both(graph: Graph) -> bool:
    return {each.direction for each in graph.relations.values()} == {"in", "out"}


def direction_of(graph: Graph) -> str:
    """The direction in which the edges of a graph are read."""
    return BOTH if reads_both(graph) else graph.edge_lists[0].direction


def relation_names(types: Sequence[str], direction: str) -> list[tuple[str, str]]:
    """The name and direction of each relation; none for a single one without a type."""
    ways = ("in", "out") if direction == BOTH else (direction,)
    if not types:
        return [(way, way) for way in ways] if direction == BOTH else []
    return [(f"{each} {way}" if direction == BOTH else each, way) for each in types for way in ways]


def rows_of(graph: Graph, ids: Sequence[str | int]) -> Tensor:
    """Rows of outside ids; without outside ids the ids are row numbers."""
    if graph.ids is not None:
        return torch.from_numpy(graph.ids.rows(ids))
    rows = []
    for value in ids:
        try:
            row = int(value)
        except ValueError:
            row = -1
        if not 0 <= row < graph.num_nodes:
            raise GraphError(f"unknown node {value!r}; rows of this graph are 0 to {graph.num_nodes - 1}")
        rows.append(row)
    return torch.tensor(rows, dtype=torch.int64)


def _edge_array(edges: Any) -> np.ndarray[Any, Any]:
    array = edges.numpy() if isinstance(edges, Tensor) else np.asarray(edges)
    if array.size == 0:
        return np.zeros((0, 2), np.int64)
    if array.ndim != 2 or array.shape[1] != 2:
        raise GraphError(f"edges must be an (E, 2) array of row numbers; got shape {array.shape}")
    if array.dtype.kind not in "iu":
        raise GraphError(f"edges must hold integers; got {array.dtype}; map outside ids with NodeIds.rows() first")
    return array


def _count_nodes(num_nodes: int | None, pairs: np.ndarray[Any, Any], **columns: Any) -> int:
    if num_nodes is not None:
        return num_nodes
    for column in columns.values():
        if column is not None:
            return int(column.shape[0]) if hasattr(column, "shape") else len(column)
    _check_edges(pairs, _MAX_NODES)
    return int(pairs.max()) + 1 if len(pairs) else 0


def _check_edges(pairs: np.ndarray[Any, Any], n: int) -> None:
    bad = (pairs < 0) | (pairs >= n)
    if bad.any():
        row = int(np.flatnonzero(bad.any(axis=1))[0])
        node = int(pairs[row][bad[row]][0])
        raise GraphError(
            f"edge {row} points at node {node}, but the graph {'can have' if n == _MAX_NODES else 'has'} {n} nodes "
            f"(0 to {n - 1}); "
            "map outside ids with NodeIds.rows() first"
        )


def _lists(edges: Edges, n: int, direction: str, self_loops: bool, ids: NodeIds | None) -> Graph:
    """A graph of neighbor lists alone."""
    one_of("direction", direction, DIRECTIONS)
    if not self_loops:
        edges = edges.some(edges.pairs[:, 0] != edges.pairs[:, 1])
    if edges.weight is not None:
        edges = edges.some(edges.weight > 0)

    def read(some: Edges, how: str) -> Graph:
        indptr, indices, times, weights = _csr(some, n, how)
        return Graph(indptr, indices, ids=ids, edge_time=times, edge_weight=weights, direction=how)

    relations = {}
    for number, (name, how) in enumerate(relation_names(edges.types, direction)):
        kind = number // 2 if direction == BOTH else number
        relations[name] = read(edges if edges.kinds is None else edges.some(edges.kinds == kind), how)
    return read(edges, MERGED if direction == BOTH else direction).replace(relations=relations)


def _csr(edges: Edges, n: int, direction: str) -> tuple[Tensor, Tensor, Tensor | None, Tensor | None]:
    when, weight = edges.time, edges.weight
    target, source = edges.pairs[:, 0], edges.pairs[:, 1]  # row v lists the u of its edges (u, v)
    if direction == "out":
        target, source = source, target
    if direction == MERGED:
        forward = source != target
        source, target = torch.cat([source, target[forward]]), torch.cat([target, source[forward]])
        when = None if when is None else torch.cat([when, when[forward]])
        weight = None if weight is None else torch.cat([weight, weight[forward]])
    if when is None and weight is None:
        return (*neighbor_lists(source, target, n), None, None)
    code = source * n + target
    order = torch.arange(len(code)) if when is None else torch.argsort(when, stable=True)
    order = order[torch.argsort(code[order], stable=True)]  # by edge, the earliest first
    code, when = code[order], None if when is None else when[order]
    first = torch.ones_like(code, dtype=torch.bool)
    first[1:] = code[1:] != code[:-1]
    if weight is not None:
        if when is not None:  # weights of different times do not add up: the later ones are not known at the earlier
            first[1:] |= when[1:] != when[:-1]
        total = torch.zeros(int(first.sum()), dtype=torch.float64)
        weight = total.index_add(0, first.cumsum(0) - 1, weight[order].double()).float()
    return (*lists_of_codes(code[first], n), None if when is None else when[first], weight)


def _weights(values: Any, n: int) -> Tensor:
    tensor = _numbers(values, "edge_weight").double()
    if tensor.dim() != 1 or len(tensor) != n:
        raise GraphError(
            f"{setting('edge_weight')} must hold one number for each of the {n} edges; got shape {tuple(tensor.shape)}"
        )
    odd = torch.nonzero(~((tensor >= 0) & (tensor <= LARGEST_WEIGHT)))
    if len(odd):
        edge = int(odd[0, 0])
        raise GraphError(
            f"edge {edge} has the weight {float(tensor[edge]):g}; weights are finite numbers from 0 (no edge) to "
            f"{LARGEST_WEIGHT:g}"
        )
    return tensor


def _types(values: Any, n: int, known: Sequence[str] | None) -> tuple[Tensor, tuple[str, ...]]:
    """Types as numbers of names, in sorted order or as `known`. Integers beside `known` types are their numbers."""
    array: np.ndarray[Any, Any] = values.cpu().numpy() if isinstance(values, Tensor) else np.asarray(values)
    shape = array.shape
    if shape != (n,):
        raise GraphError(f"{setting('edge_type')} must hold one type for each of the {n} edges; got shape {shape}")
    if known is not None and (not n or array.dtype.kind in "iu"):
        check_type_count(len(known))
        odd = np.flatnonzero((array < 0) | (array >= len(known))) if n else np.zeros(0, np.int64)
        if len(odd):
            raise GraphError(
                f"edge {odd[0]} has the type {array[odd[0]]}; {setting('edge_types')} has {len(known)} types"
            )
        return torch.from_numpy(array.astype(np.int64)), tuple(map(str, known))
    empty = np.flatnonzero([value is None or value != value or not str(value).strip() for value in array.tolist()])
    if len(empty):
        raise GraphError(f"edge {empty[0]} has no type; fill it, or leave the edge types out")
    words, codes = np.unique(array.astype(str), return_inverse=True)
    names = [*map(str, words)] if known is None else [*map(str, known)]
    place = {name: number for number, name in enumerate(names)}
    strange = [number for number, word in enumerate(words) if str(word) not in place]
    if strange:
        edge = int(np.flatnonzero(codes == strange[0])[0])
        raise GraphError(unknown_type(f"edge {edge}", str(words[strange[0]]), names))
    check_type_count(len(names))
    return torch.from_numpy(np.array([place[str(word)] for word in words], np.int64)[codes.reshape(-1)]), tuple(names)


def check_type_count(count: int, where: str = "edges") -> None:
    if not 1 <= count <= MOST_TYPES:
        raise GraphError(
            f"{where} have {count:,} types; a graph has 1 to {MOST_TYPES}, because each has weights of its own"
        )


def unknown_type(edge: str, name: str, known: Sequence[str]) -> str:
    return f"{edge} has the type {name!r:.60}, which is unknown; known types are {listed(known)}"


def _vector(values: Any, n: int, name: str, of: str) -> Tensor:
    array = values.cpu().numpy() if isinstance(values, Tensor) else np.asarray(values)
    if array.shape != (n,):
        raise GraphError(f"{name} must hold one number for each of the {n} {of}; got shape {array.shape}")
    if n and array.dtype.kind not in "iu":
        raise GraphError(f"{name} must hold integers (days, years, positions in an order); got {array.dtype}")
    return torch.from_numpy(array.astype(np.int64))


def _kind_of(labels: Any) -> str:
    """NumPy's kind of labels: U, S and O for names."""
    if isinstance(labels, Tensor):
        return "i"
    try:
        return np.asarray(labels).dtype.kind
    except ValueError as error:
        raise GraphError(f"labels must be one value per node, or rows of one length ({error})") from error


def _numbered(labels: Any, class_names: Sequence[str] | None) -> tuple[Any, Sequence[str] | None]:
    """Names of classes as numbers."""
    from graphsage.graph.convert.common import labels_from

    codes, names = labels_from(labels)
    if names is None or class_names is None:
        return codes, names or class_names
    unknown = sorted({*names} - {*class_names})
    if unknown:
        raise GraphError(f"the label {unknown[0]!r} is not in class_names")
    place = np.array([[*class_names].index(name) for name in names] + [-1])
    return place[codes], class_names


def _numbers(values: Any, name: str) -> Tensor:
    if isinstance(values, Tensor):
        if values.is_complex():
            raise GraphError(f"{name} must be numbers; got {values.dtype}")
        return values if values.layout == torch.strided else dense(values, name)
    if hasattr(values, "tocoo"):
        return dense(values, name)
    array = np.asarray(values)
    if array.dtype.kind not in "fiub":
        raise GraphError(f"{name} must be numbers; got {array.dtype}")
    return _shared(array)


def dense(matrix: Any, name: str) -> Tensor:
    """A sparse matrix of SciPy or torch as a dense one."""
    if math.prod(matrix.shape) > _MAX_DENSE:
        raise GraphError(f"sparse {name} of shape {tuple(matrix.shape)} are too many to make dense; reduce them first")
    return matrix.to_dense() if isinstance(matrix, Tensor) else torch.from_numpy(matrix.astype(np.float32).toarray())


def _shared(array: np.ndarray[Any, Any]) -> Tensor:
    """The array as a tensor, without a copy where torch can read it; from_numpy warns of read-only arrays."""
    dtype = np.dtype(np.int64) if array.dtype.kind == "u" else array.dtype.newbyteorder("=")
    array = array.astype(dtype, copy=min(array.strides, default=0) < 0)
    return torch.from_numpy(array) if array.flags.writeable else torch.utils.dlpack.from_dlpack(array)


def _features(values: Any, n: int) -> Tensor:
    tensor = _numbers(values, "features")
    if tensor.dim() != 2 or tensor.shape[0] != n:
        raise GraphError(f"features must be ({n}, D), one row for each node; got shape {tuple(tensor.shape)}")
    if tensor.shape[1] == 0:
        raise GraphError("features must have at least one column; leave them out for a graph without features")
    if tensor.dtype not in (torch.float16, torch.bfloat16):
        tensor = tensor.float()
    for start in range(0, n, _CHECK_ROWS):
        finite = torch.isfinite(tensor[start : start + _CHECK_ROWS]).all(dim=1)
        if not bool(finite.all()):
            row = start + int(torch.nonzero(~finite)[0, 0])
            raise GraphError(f"features of node {row} hold NaN or infinity; fill or drop them first")
    return tensor.contiguous()


def _labels(values: Any, n: int) -> Tensor:
    tensor = _numbers(values, "labels")
    if tensor.dim() not in (1, 2) or tensor.shape[0] != n:
        raise GraphError(
            f"labels must have one row for each of the {n} nodes: (N,) for one class or (N, C) for many labels; "
            f"got shape {tuple(tensor.shape)}"
        )
    if tensor.dim() == 1:
        if tensor.is_floating_point():
            raise GraphError(
                f"classes must be integers, -1 for unknown; got {tensor.dtype}; numbers to predict are targets"
            )
        high = torch.nonzero(tensor >= _MAX_CLASSES)
        if len(high):
            row = int(high[0, 0])
            raise GraphError(
                f"class numbers must be below {_MAX_CLASSES:,}; node {row} has {int(tensor[row])}; renumber them"
            )
        low = torch.nonzero(tensor < -1)
        if len(low):
            row = int(low[0, 0])
            raise GraphError(f"classes must be -1 (unknown) or more; node {row} has {int(tensor[row])}")
        return tensor.long()
    unknown = tensor.isnan() if tensor.is_floating_point() else tensor == UNKNOWN
    odd = torch.nonzero((tensor != 0) & (tensor != 1) & ~unknown)
    if len(odd):
        row, column = odd[0].tolist()
        raise GraphError(f"many labels must be 0 or 1; node {row} has {tensor[row, column].item()} for label {column}")
    some = torch.nonzero(unknown.any(dim=1) & ~unknown.all(dim=1))
    if len(some):
        raise GraphError(f"some labels of node {int(some[0, 0])} are unknown; give all of its labels, or none of them")
    return tensor.to(torch.uint8).masked_fill_(unknown, UNKNOWN) if bool(unknown.any()) else tensor.to(torch.uint8)


def unknown_label(graph: Graph) -> float:
    """What each cell of an unknown row of the graph's labels holds."""
    return float("nan") if graph.regression else UNKNOWN if graph.multilabel else -1


def as_targets(values: Any, n: int) -> Tensor:
    """Numbers to predict of `n` nodes, (N, T) float64 with NaN for unknown."""
    try:
        tensor = _numbers(values, "targets").double()
    except (TypeError, ValueError) as error:
        raise GraphError(f"targets must be numbers, one or a row of them for each node ({error})") from error
    tensor = tensor[:, None] if tensor.dim() == 1 else tensor
    if tensor.dim() != 2 or tensor.shape[0] != n or tensor.shape[1] == 0:
        raise GraphError(f"targets must be ({n},) or ({n}, T), one row for each node; got shape {tuple(tensor.shape)}")
    odd = torch.nonzero(tensor.abs() > LARGEST_TARGET)
    if len(odd):
        row, column = odd[0].tolist()
        raise GraphError(
            f"target {column} of node {row} is {float(tensor[row, column]):g}; targets must be finite, at most "
            f"{LARGEST_TARGET:g} in size, and NaN if unknown"
        )
    return tensor.contiguous()


def _check_class_names(graph: Graph) -> None:
    names = graph.class_names or ()
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise GraphError(f"class names must differ; {twice!r} stands there twice")
    if graph.class_names is None or graph.labels is None:
        return
    used = graph.labels.shape[1] if graph.labels.dim() == 2 else int(graph.labels.max()) + 1
    if graph.regression and used != len(graph.class_names):
        raise GraphError(f"there are {used} columns of targets but class_names has {len(graph.class_names)}")
    if used > len(graph.class_names):
        raise GraphError(f"labels use {used} classes but class_names has {len(graph.class_names)}")


_CHUNK = 1 << 24


def check_graph(graph: Graph) -> None:
    """Refuse descending row pointers, neighbors outside the graph and classes below -1, as in a damaged folder."""
    n = graph.num_nodes
    for each in graph.relations.values():
        check_graph(each)
    backwards = torch.nonzero(graph.degrees < 0)
    if len(backwards):
        raise GraphError(f"indptr goes backwards at node {int(backwards[0, 0])}; the graph is damaged, build it again")
    for start in range(0, graph.num_stored_edges, _CHUNK):
        chunk = graph.indices[start : start + _CHUNK]
        bad = torch.nonzero((chunk < 0) | (chunk >= n))
        if len(bad):
            place = int(bad[0, 0])
            raise GraphError(
                f"stored edge {start + place} points at node {int(chunk[place])}, but the graph has {n} nodes; "
                "the graph is damaged, build it again"
            )
    if graph.regression and graph.labels is not None:
        if graph.labels.dim() != 2:
            raise GraphError("targets must be a table, (N, T); the graph is damaged, build it again")
        odd = torch.nonzero(graph.labels.abs() > LARGEST_TARGET)
        if len(odd):
            row, column = odd[0].tolist()
            raise GraphError(f"target {column} of node {row} is not finite; the graph is damaged, build it again")
    elif graph.labels is not None and not graph.multilabel:
        low = torch.nonzero(graph.labels < -1)
        if len(low):
            row = int(low[0, 0])
            raise GraphError(f"classes must be -1 (unknown) or more; node {row} has {int(graph.labels[row])}")

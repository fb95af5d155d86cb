"""Tables in memory: pandas, polars and Arrow, an edge table and a node table, which may be missing.

Pandas and polars tables become Arrow first, so that one reader serves all. Files are read elsewhere.
"""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from graphsage.errors import DataError, GraphError
from graphsage.graph.build import from_edges
from graphsage.graph.convert.columns import features_of, ids_of, labels_of, times_of
from graphsage.graph.convert.common import FEATURES, LABELS, TIMES, edges_once, first_of, plain
from graphsage.graph.graph import Graph
from graphsage.graph.split import NONE, PARTS, Split

if TYPE_CHECKING:
    import pyarrow

IDS = ("id", "node_id", "node")
SOURCES, TARGETS = ("source", "src", "from"), ("target", "dst", "to")
_ABOUT = b"graphsage"  # key of what a table cannot say in columns, in the metadata of its schema
_SPLIT_NAMES = {**PARTS, "valid": PARTS["val"], "validation": PARTS["val"]}


def from_pandas(edges: Any, nodes: Any = None, **options: Any) -> Graph:
    """`from_arrow` of pandas DataFrames; their index is not read (`df.reset_index()` makes it a column)."""
    return from_arrow(_of_pandas(edges), None if nodes is None else _of_pandas(nodes), **options)


def from_polars(edges: Any, nodes: Any = None, **options: Any) -> Graph:
    """`from_arrow` of polars DataFrames; of a LazyFrame pass `.collect()`."""
    return from_arrow(_of_polars(edges), None if nodes is None else _of_polars(nodes), **options)


def from_arrow(edges: Any, nodes: Any = None, **options: Any) -> Graph:
    """The graph of `graph_and_splits`, which explains the options."""
    return graph_and_splits(edges, nodes, **options)[0]


def graph_and_splits(
    edges: Any,
    nodes: Any = None,
    *,
    source: str | None = None,
    target: str | None = None,
    id: str | None = None,
    features: str | Sequence[str] | None = None,
    label: str | None = None,
    time: str | None = None,
    edge_time: str | None = None,
    split: str | None = None,
    class_names: Sequence[str] | None = None,
    directed: bool | None = None,
) -> tuple[Graph, dict[str, Split]]:
    """Arrow tables, or anything that exports Arrow. Columns of which none is named are looked for: source or src or
    from, target or dst or to, id or node_id or node, y or label, time, and x or feature(s) if it holds lists.

    `features` names one column of lists or several of numbers. `label` holds classes, names, or lists of 0 and 1; an
    empty cell is unknown. Times are whole numbers, or dates, which become days from 1970-01-01. `split` names a
    column of train, val (or valid) and test, which becomes the split `given`. Without a node table the nodes are the
    sorted ids in the edges; without an id column the edges hold row numbers. Undirected unless `directed`.
    """
    edges = _table(edges, "edges")
    nodes = None if nodes is None else _table(nodes, "nodes")
    about = _about(nodes)
    ends = [ids_of(_chosen(edges, name, guess, of), f"edges, column {of}")
            for name, guess, of in ((source, SOURCES, "source"), (target, TARGETS, "target"))]  # fmt: skip
    ids, rows = _rows(nodes, id, ends)
    edge_time = edge_time or first_of(TIMES, edges.column_names)
    when = None if edge_time is None else times_of(_named(edges, edge_time), f"edges, column {edge_time}")
    columns: dict[str, Any] = {}
    n = len(ids) if nodes is None else nodes.num_rows
    if nodes is not None:
        features = features or first_of([c for c in FEATURES if _is_list(nodes, c)], nodes.column_names)
        label = label or first_of(LABELS, nodes.column_names)
        time = time or first_of(TIMES, nodes.column_names)
        if features is not None:
            wanted = [features] if isinstance(features, str) else list(features)
            columns["features"] = features_of({name: _named(nodes, name) for name in wanted})
        if label is not None:
            columns["labels"], names = labels_of(_named(nodes, label), f"nodes, column {label}")
            columns["class_names"] = class_names or about.get("class_names") or names
        if time is not None:
            columns["time"] = times_of(_named(nodes, time), f"nodes, column {time}")
        if "graph_number" in nodes.column_names:
            columns["graph_number"] = times_of(_named(nodes, "graph_number"), "nodes, column graph_number")
    elif features is not None or label is not None or time is not None or split is not None:
        raise DataError("features, label, time and split are columns of the node table; pass it as the second table")
    directed = about.get("directed", False) if directed is None else directed
    graph = from_edges(rows, n, ids=_ids(ids), edge_time=when, directed=directed, **columns)
    return graph, {} if split is None or nodes is None else {"given": _split(_named(nodes, split), split)}


def to_arrow(graph: Graph) -> "tuple[pyarrow.Table, pyarrow.Table]":
    """(edges, nodes): source, target and time; id, x, y, time and graph_number. `from_arrow` reads them back."""
    import pyarrow as pa

    ids = pa.array([graph.id_of(row) for row in range(graph.num_nodes)])
    sources, targets, when = edges_once(graph)
    edges: dict[str, Any] = {"source": ids.take(pa.array(plain(sources))), "target": ids.take(pa.array(plain(targets)))}
    if when is not None:
        edges["time"] = pa.array(plain(when))
    nodes: dict[str, Any] = {"id": ids}
    for name, tensor in (("x", graph.features), ("y", graph.labels), ("time", graph.time),
                         ("graph_number", graph.graph_number)):  # fmt: skip
        if tensor is not None:
            array = np.ascontiguousarray(plain(tensor))
            flat = pa.array(array.reshape(-1))
            nodes[name] = flat if array.ndim == 1 else pa.FixedSizeListArray.from_arrays(flat, array.shape[1])
    about = {"directed": graph.directed, "class_names": graph.class_names}
    return pa.table(edges), pa.table(nodes).replace_schema_metadata({_ABOUT: json.dumps(about).encode()})


def _of_pandas(frame: Any) -> Any:
    import pyarrow as pa

    if not hasattr(frame, "columns") or not hasattr(frame, "iloc"):
        raise DataError(f"from_pandas takes DataFrames; got {type(frame).__name__}")
    doubled = frame.columns[frame.columns.duplicated()]
    if len(doubled):
        raise DataError(f"two columns are called {doubled[0]!r}; rename one")
    try:
        return pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise DataError(f"a column mixes kinds of values ({error}); make it all text or all numbers") from error


def _of_polars(frame: Any) -> Any:
    if not hasattr(frame, "to_arrow"):
        hint = "; pass .collect()" if hasattr(frame, "collect") else ""
        raise DataError(f"from_polars takes DataFrames; got {type(frame).__name__}{hint}")
    return frame.to_arrow()


def _table(value: Any, what: str) -> Any:
    import pyarrow as pa

    if isinstance(value, pa.Table):
        return value
    if isinstance(value, pa.RecordBatch | dict) or hasattr(value, "__arrow_c_stream__"):
        return pa.table(value)
    raise DataError(f"{what} must be an Arrow table; got {type(value).__name__}")


def _about(nodes: Any) -> dict[str, Any]:
    metadata = None if nodes is None else nodes.schema.metadata
    try:
        about = json.loads((metadata or {}).get(_ABOUT, b"{}"))
    except ValueError:
        return {}
    return about if isinstance(about, dict) else {}


def _named(table: Any, name: str) -> Any:
    count = table.column_names.count(name)
    if count != 1:
        there = "two columns" if count else f"there are {', '.join(table.column_names)}"
        raise DataError(f"the table must have one column {name!r}; {there}")
    return table.column(name)


def _chosen(table: Any, name: str | None, guesses: Sequence[str], option: str) -> Any:
    chosen = name or first_of(guesses, table.column_names)
    if chosen is None:
        raise DataError(f"no column is called {' or '.join(guesses)}; name it: {option}=...; "
                        f"there are {', '.join(table.column_names)}")  # fmt: skip
    return _named(table, chosen)


def _is_list(table: Any, name: str) -> bool:
    import pyarrow as pa

    if name not in table.column_names:
        return False
    kind = table.schema.field(name).type
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def _rows(nodes: Any, name: str | None, ends: list[Any]) -> tuple[Any, Any]:
    """Ids of the nodes (Arrow) and rows of the edges' ends (E, 2)."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if ends[0].type != ends[1].type:
        raise GraphError(f"source holds {ends[0].type} and target {ends[1].type}; ids must be all text or all integers")
    both = pa.chunked_array([*ends[0].chunks, *ends[1].chunks], ends[0].type)
    name = name or (None if nodes is None else first_of(IDS, nodes.column_names))
    if nodes is None:
        unique = both.unique()
        ids = unique.take(pc.sort_indices(unique))
    elif name is not None:
        ids = ids_of(_named(nodes, name), f"nodes, column {name}").combine_chunks()
    elif pa.types.is_integer(both.type):
        return pa.array(np.arange(nodes.num_rows)), np.stack([end.to_numpy() for end in ends], axis=1)
    else:
        raise DataError("the edges hold text, and no column of the nodes is called id; name it: id=...")
    if ids.type != both.type:
        raise GraphError(f"nodes have ids of type {ids.type}, edges {both.type}; make both text or both integers")
    found = pc.index_in(both, value_set=ids)
    if found.null_count:
        unknown = both.filter(pc.is_null(found)).unique()
        examples = ", ".join(repr(value.as_py()) for value in unknown[:3])
        raise GraphError(f"{found.null_count} ends of edges name {len(unknown)} unknown nodes, such as {examples}; "
                         "add them to the nodes or drop those edges")  # fmt: skip
    return ids, found.to_numpy().astype(np.int64).reshape(2, -1).T


def _ids(ids: Any) -> Any:
    values = ids.to_numpy(zero_copy_only=False)
    if values.dtype.kind != "i":
        return ids.to_pylist()
    return None if np.array_equal(values, np.arange(len(values))) else values


def _split(column: Any, name: str) -> Split:
    codes = []
    for row, value in enumerate(column.to_pylist()):
        if value not in (None, "") and value not in _SPLIT_NAMES:
            raise DataError(f"column {name} must hold train, val, test or nothing; row {row} holds {value!r}")
        codes.append(_SPLIT_NAMES.get(value, NONE))
    return Split(torch.tensor(codes, dtype=torch.uint8))

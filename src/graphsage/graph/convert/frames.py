"""Tables in memory -> a graph: pandas, polars and Arrow tables, or dicts of columns, by the rules of `tables`."""

import json
import warnings
from collections.abc import Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from graphsage.errors import DataError, DataWarning
from graphsage.graph.build import direction_of, edges_of, from_edges
from graphsage.graph.convert.common import FEATURES, LABELS, TIMES, Array, answers_from, first_of, plain
from graphsage.graph.graph import Graph
from graphsage.graph.ids import NodeIds
from graphsage.graph.split import NONE, PARTS, Split
from graphsage.tables.spec import MERGED

if TYPE_CHECKING:
    import pyarrow

_ABOUT = b"graphsage"  # key of the schema metadata, for what no column holds


def graph_and_splits(
    edges: Any,
    nodes: Any = None,
    *,
    features: str | Sequence[str] | None = None,
    label: str | None = None,
    time: str | None = None,
    edge_time: str | None = None,
    edge_type: str | None = None,
    edge_weight: str | None = None,
    split: str | None = None,
    class_names: Sequence[str] | None = None,
    direction: str | None = None,
    directed: bool | None = None,
    **options: Any,
) -> tuple[Graph, dict[str, Split]]:
    """The graph of an edge table and a node table, and the split `given` if `split` names a column of the nodes.

    `features` names columns of numbers or of lists, or patterns. `label` holds names of classes; with `class_names` it
    holds their numbers (-1: unknown), or lists of 0 and 1. `direction` is that of `Graph.from_edges`. Other options are
    those of `TableSpec`, such as id, source, target and unknown_nodes. If not named, these columns are looked for: y or
    label, time, and x or feature(s) if it holds lists.
    """
    from graphsage.tables.columns import TimeScale, cells, is_list
    from graphsage.tables.ids import id_arrays
    from graphsage.tables.memory import read_tables
    from graphsage.tables.source import as_table
    from graphsage.tables.spec import ID, TableSpec, guess, matching

    edge_table, node_table = as_table(edges, "edges"), None if nodes is None else as_table(nodes, "nodes")
    about, names = _about(nodes), () if node_table is None else node_table.names
    label, time = label or first_of(LABELS, names), time or first_of(TIMES, names)
    numbered = label if class_names is not None or "class_names" in about else None
    if node_table is None and (features or label or time or split):
        raise DataError("features, label, time and split are columns of the node table; pass it as `nodes`")
    spec = TableSpec(
        edges=edge_table,
        nodes=node_table,
        label=None if numbered else label,
        time=time,
        split_column=split,
        edge_time=edge_time or first_of(TIMES, edge_table.names),
        edge_type=edge_type or ("type" if about.get("edge_types") else None),
        edge_weight=edge_weight or ("weight" if about.get("edge_weights") else None),
        direction=direction or (about.get("direction", MERGED) if directed is None else "in" if directed else MERGED),
        **options,
    )
    chosen: Sequence[str] = [name for name in FEATURES if name in names]
    if features is not None and node_table is not None:
        id = guess(node_table, spec.id, ID, "id")
        roles = {name for name in (id, label, time, split) if name}
        chosen = matching(node_table, [features] if isinstance(features, str) else features, roles)
    marks = ["graph_number"] if "graph_number" in names else []
    read = read_tables(spec, {**PARTS, "": NONE}, [*chosen, *([numbered] if numbered else []), *marks])
    for remark in read.remarks:
        warnings.warn(remark, DataWarning, stacklevel=3)
    columns: dict[str, Any] = {"time": read.time, "edge_time": read.edge_time}
    with nullcontext() if read.place is None else read.place.naming():
        if features is None:
            chosen = [name for name in chosen if is_list(read.columns[name].type)][:1]
        if chosen:
            columns["features"] = _features({name: read.columns[name] for name in chosen})
        if numbered is not None:
            columns |= answers_from(cells(read.columns[numbered]))
            if columns.get("class_names") is not None:
                raise DataError(f"column {label!r} holds names; with class_names it must hold their numbers")
            columns["class_names"] = class_names or about.get("class_names")
        elif read.labels is not None:
            columns["labels"], columns["class_names"] = read.labels.numbers, read.labels.names
            if "-1" in (read.labels.names or ()):
                warnings.warn(
                    f"column {label!r}: -1 is read as a class; leave the cell empty (or None) if the class is unknown, "
                    "or pass class_names",
                    DataWarning,
                    stacklevel=3,
                )
        for name in marks:
            columns[name] = TimeScale().read(read.columns[name], name)
    ids = NodeIds.from_arrays(id_arrays(read.edges.known))
    kinds, types = read.edge_type or (None, None)
    if kinds is not None and types is not None and {*types} <= {*(known := about.get("edge_types") or ())}:
        kinds, types = np.array([known.index(each) for each in types], np.int64)[kinds], tuple(known)
    graph = from_edges(
        read.edges.pairs,
        len(read.edges.known),
        ids=ids,
        direction=spec.direction,
        edge_weight=read.edge_weight,
        edge_type=kinds,
        edge_types=types,
        **columns,
    )
    return graph, {} if read.split is None else {"given": Split(torch.from_numpy(read.split))}


def to_arrow(graph: Graph) -> "tuple[pyarrow.Table, pyarrow.Table]":
    """(edges, nodes): source, target, time, type and weight; id, x, y, time and graph_number. `from_arrow` reads them
    back."""
    import pyarrow as pa

    ids = pa.array([graph.id_of(row) for row in range(graph.num_nodes)])
    found = edges_of(graph)
    edges: dict[str, Any] = {
        name: ids.take(pa.array(plain(found.pairs[:, end].contiguous())))
        for end, name in enumerate(("source", "target"))
    }
    if found.time is not None:
        edges["time"] = pa.array(plain(found.time))
    if found.kinds is not None:
        edges["type"] = pa.array(np.array(found.types, object)[plain(found.kinds)], pa.large_string())
    if found.weight is not None:
        edges["weight"] = pa.array(plain(found.weight))
    nodes: dict[str, Any] = {"id": ids}
    for name, tensor in (
        ("x", graph.features),
        ("y", graph.labels),
        ("time", graph.time),
        ("graph_number", graph.graph_number),
    ):
        if tensor is not None:
            array = np.ascontiguousarray(plain(tensor))
            flat = pa.array(array.reshape(-1))
            nodes[name] = flat if array.ndim == 1 else pa.FixedSizeListArray.from_arrays(flat, array.shape[1])
    about: dict[str, Any] = {"direction": direction_of(graph), "class_names": graph.class_names}
    about |= {"edge_types": found.types or None, "edge_weights": found.weight is not None}
    return pa.table(edges), pa.table(nodes).replace_schema_metadata({_ABOUT: json.dumps(about).encode()})


def _about(nodes: Any) -> dict[str, Any]:
    metadata = getattr(getattr(nodes, "schema", None), "metadata", None) or {}
    try:
        about = json.loads(metadata.get(_ABOUT, b"{}"))
    except ValueError:
        return {}
    return about if isinstance(about, dict) else {}


def _features(columns: dict[str, Any]) -> Array:
    """Columns of numbers and of lists side by side; float16 stays float16."""
    from graphsage.tables import values
    from graphsage.tables.columns import cells, is_list, number_cells
    from graphsage.tables.messages import CellError

    parts, half = [], True
    for name, array in columns.items():
        if is_list(array.type):
            half &= str(array.type.value_type) == "halffloat"
            parts.append(values.vectors(cells(array), name))
            continue
        half &= str(array.type) == "halffloat"
        found = values.numbers(number_cells(array), name)
        missing = np.flatnonzero(np.isnan(found))
        if len(missing):
            raise CellError(name, int(missing[0]), "is missing; fill it, or use open_tables, which fills such cells")
        values.fits_float32(found, name)
        parts.append(found.astype(np.float32)[:, None])
    return np.concatenate(parts, axis=1).astype(np.float16 if half else np.float32)

"""NetworkX graphs. Repeated edges of a type are merged; nodes must be all strings or all integers."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from graphsage.errors import DataError
from graphsage.graph.build import direction_of, edges_of, from_edges
from graphsage.graph.convert.common import (
    FEATURES,
    LABELS,
    TIMES,
    answers_from,
    features_from,
    first_of,
    missing,
    note_dropped,
    plain,
)
from graphsage.graph.graph import Graph, known_labels
from graphsage.tables.spec import MERGED

if TYPE_CHECKING:
    import networkx


def from_networkx(
    graph: Any,
    *,
    features: str | Sequence[str] | None = None,
    label: str | None = None,
    time: str | None = None,
    edge_time: str | None = None,
    edge_type: str | None = None,
    edge_weight: str | None = None,
    direction: str | None = None,
) -> Graph:
    """A networkx Graph, DiGraph, MultiGraph or MultiDiGraph; rows follow the order of its nodes.

    Node attributes: `features` names one with a vector or several with a number each (looked for: x, feature,
    features, feat), `label` one with a class, a name or a row of 0 and 1 (y, label, labels), `time` an integer.
    Where not each node has a label, the others are unknown; features and times must be complete. `edge_time` (time),
    `edge_type` and `edge_weight` name edge attributes, which each edge must have. Types and weights are read only if
    they are named. `direction` is that of `Graph.from_edges`: by default merged, and in of a directed graph. Other
    attributes are not carried over; a warning names them.
    """
    if not all(hasattr(graph, name) for name in ("nodes", "edges", "is_directed")):
        raise DataError(f"from_networkx takes a networkx graph; got {type(graph).__name__}")
    nodes = list(graph.nodes(data=True))
    keys = set().union(*(about for _, about in nodes))
    features = features if features is not None else first_of(FEATURES, keys)
    label = label if label is not None else first_of(LABELS, keys)
    time = time if time is not None else first_of(TIMES, keys)
    used = {label, time, *([features] if isinstance(features, str) else features or [])}
    note_dropped("node attributes", keys - used, "; choose with features=, label= and time=")

    row_of = {node: row for row, (node, _) in enumerate(nodes)}
    links = list(graph.edges(data=True))
    pairs = np.array([(row_of[u], row_of[v]) for u, v, _ in links], np.int64).reshape(-1, 2)
    edge_keys = set().union(*(about for _, _, about in links))
    edge_time = edge_time if edge_time is not None else first_of(TIMES, edge_keys)
    read = {"edge_time": edge_time, "edge_type": edge_type, "edge_weight": edge_weight}
    note_dropped("edge attributes", edge_keys - {*read.values()}, f"; choose with {'=, '.join(read)}=")
    rows = [((u, v), about) for u, v, about in links]
    of_edges: dict[str, Any] = {
        option: np.array(_column(rows, name, "edge")) for option, name in read.items() if name is not None and links
    }
    types = graph.graph.get("edge_types")
    if "edge_type" in of_edges and types is not None and {*of_edges["edge_type"].tolist()} <= {*types}:
        of_edges["edge_types"] = types
    if direction not in (None, MERGED) and not graph.is_directed():
        raise DataError(
            f"this networkx graph is undirected, so its edges have no direction {direction!r}; leave it out"
        )

    answers = {} if label is None else answers_from(_labels(nodes, label))
    if label is not None and label not in keys:
        raise DataError(f"no node has the attribute {label!r}; there are {', '.join(sorted(map(str, keys))) or 'none'}")
    ids = [node for node, _ in nodes]
    return from_edges(
        pairs,
        len(nodes),
        features=None if features is None else _features(nodes, features),
        **answers | ({"class_names": graph.graph["class_names"]} if "class_names" in graph.graph else {}),
        ids=None if all(type(i) is int for i in ids) and ids == list(range(len(ids))) else ids,
        time=None if time is None else np.array(_column(nodes, time, "node")),
        direction=direction or ("in" if graph.is_directed() else MERGED),
        **of_edges,
    )


def to_networkx(graph: Graph) -> "networkx.Graph[Any]":
    """A networkx Graph or DiGraph with node attributes x, y, time, edge attributes time, type, weight, and of the graph
    `class_names`, `edge_types`. A multigraph if there are types, or times and weights: pairs may have several edges."""
    try:
        import networkx
    except ImportError:
        raise missing("networkx", "to_networkx") from None
    edges, directed = edges_of(graph), direction_of(graph) != MERGED
    kinds: tuple[Any, Any] = (networkx.Graph, networkx.DiGraph)
    if edges.types or (edges.time is not None and edges.weight is not None):
        kinds = networkx.MultiGraph, networkx.MultiDiGraph
    made: Any = kinds[directed]()
    if edges.types:
        made.graph["edge_types"] = list(edges.types)
    if graph.class_names is not None:
        made.graph["class_names"] = list(graph.class_names)
    ids = [graph.id_of(row) for row in range(graph.num_nodes)]
    made.add_nodes_from(ids)
    if graph.features is not None:
        _set(made, ids, "x", plain(graph.features).copy())
    if graph.labels is not None:
        known = np.flatnonzero(known_labels(graph.labels)) if graph.multilabel else range(graph.num_nodes)
        labels = plain(graph.labels).copy() if graph.multilabel else graph.labels.tolist()
        _set(made, [ids[row] for row in known], "y", [labels[row] for row in known])
    if graph.time is not None:
        _set(made, ids, "time", graph.time.tolist())
    of_edges = {
        "time": None if edges.time is None else edges.time.tolist(),
        "type": None if edges.kinds is None else [edges.types[kind] for kind in edges.kinds.tolist()],
        "weight": None if edges.weight is None else edges.weight.tolist(),
    }
    columns = {name: values for name, values in of_edges.items() if values is not None}
    for (u, v), *values in zip(edges.pairs.tolist(), *columns.values(), strict=True):
        made.add_edge(ids[u], ids[v], **dict(zip(columns, values, strict=True)))
    return made


def _set(made: Any, ids: list[str | int], name: str, values: Any) -> None:
    for node, value in zip(ids, values, strict=True):
        made.nodes[node][name] = value


def _column(rows: list[Any], name: str, of: str) -> list[Any]:
    try:
        return [about[name] for _, about in rows]
    except KeyError:
        bad = next(key for key, about in rows if name not in about)
        raise DataError(f"{of} {bad!r} has no attribute {name!r}; each of the {len(rows)} needs one") from None


def _features(nodes: list[Any], features: str | Sequence[str]) -> Any:
    if isinstance(features, str):
        return features_from(_column(nodes, features, "node"))
    return np.stack([np.asarray(_column(nodes, name, "node")) for name in features], axis=1)


def _labels(nodes: list[Any], label: str) -> list[Any]:
    return [about.get(label) for _, about in nodes]

"""NetworkX graphs. Multigraphs are merged to one edge a pair; nodes must be all strings or all integers."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from graphsage.errors import DataError
from graphsage.graph.build import from_edges
from graphsage.graph.convert.common import (
    FEATURES,
    LABELS,
    TIMES,
    answers_from,
    edges_once,
    features_from,
    first_of,
    missing,
    note_dropped,
    one_way,
    plain,
)
from graphsage.graph.graph import Graph, known_labels

if TYPE_CHECKING:
    import networkx


def from_networkx(
    graph: Any,
    *,
    features: str | Sequence[str] | None = None,
    label: str | None = None,
    time: str | None = None,
    edge_time: str | None = None,
) -> Graph:
    """A networkx Graph, DiGraph, MultiGraph or MultiDiGraph; rows follow the order of its nodes.

    Node attributes: `features` names one with a vector or several with a number each (looked for: x, feature,
    features, feat), `label` one with a class, a name or a row of 0 and 1 (y, label, labels), `time` an integer.
    Where not each node has a label, the others are unknown; features and times must be complete. `edge_time` names an
    edge attribute (time). Other attributes, weights among them, are not carried over; a warning names them.
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
    note_dropped("edge attributes", edge_keys - {edge_time}, "; GraphSAGE reads which edges there are")
    when = None
    if edge_time is not None and links:
        when = np.array(_column([((u, v), about) for u, v, about in links], edge_time, "edge"))

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
        edge_time=when,
        directed=graph.is_directed(),
    )


def to_networkx(graph: Graph) -> "networkx.Graph[Any]":
    """A networkx Graph or DiGraph with node attributes x, y, time, edge attribute time, and `class_names`."""
    try:
        import networkx
    except ImportError:
        raise missing("networkx", "to_networkx") from None
    made: Any = networkx.DiGraph() if one_way(graph).directed else networkx.Graph()
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
    sources, targets, when = edges_once(graph)
    ends = zip(sources.tolist(), targets.tolist(), strict=True)
    if when is None:
        made.add_edges_from((ids[u], ids[v]) for u, v in ends)
    else:
        made.add_edges_from((ids[u], ids[v], {"time": t}) for (u, v), t in zip(ends, when.tolist(), strict=True))
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

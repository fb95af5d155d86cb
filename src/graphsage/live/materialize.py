"""A live graph at one moment as a `Graph`, for compaction and for embedding all nodes."""

from dataclasses import dataclass

import numpy as np
import torch

from graphsage.graph.build import unknown_label
from graphsage.graph.graph import Graph
from graphsage.graph.ids import IntArray, NodeIds
from graphsage.live.overlay import Overlay


@dataclass(frozen=True, eq=False)
class Whole:
    """`rows` are the live graph's rows of the rows of `graph`."""

    graph: Graph
    rows: IntArray


def whole(overlay: Overlay, *, capped: bool = False) -> Whole:
    """All present nodes by arrival. `capped` leaves out edges beyond the cap, ids, labels and class names."""
    base = overlay.base
    base.check_all()
    alive = np.ones(overlay.num_rows, bool)
    alive[list(overlay.gone)] = False
    rows = np.flatnonzero(alive)
    number = np.cumsum(alive) - 1
    indptr, indices = _lists(overlay, capped, number, rows)
    features = None
    if base.graph.features is not None:
        features = overlay.feature_rows(rows).to(base.graph.features.dtype)
    graph = Graph(torch.from_numpy(indptr), torch.from_numpy(indices), features=features, directed=base.graph.directed)
    if capped:
        return Whole(graph, rows)
    ids = NodeIds.of([overlay.id_of(row) for row in rows.tolist()])
    return Whole(graph.replace(ids=ids, labels=_labels(overlay, rows), class_names=base.graph.class_names), rows)


def _lists(overlay: Overlay, capped: bool, number: IntArray, rows: IntArray) -> tuple[IntArray, IntArray]:
    n = overlay.base.num_nodes
    changed = overlay.adjacency.shown if capped else overlay.adjacency.lists
    if capped:
        indptr, indices = overlay.cap.indptr, overlay.cap.indices
    else:
        indptr, indices = overlay.base.graph.indptr.numpy(), overlay.base.graph.indices.numpy()
    untouched = np.ones(n, bool)
    untouched[[row for row in changed if row < n]] = False
    old_rows = np.repeat(np.arange(n), np.diff(indptr))
    keep = untouched[old_rows]
    owners = [old_rows[keep], *(np.full(len(others), row) for row, others in changed.items())]
    columns = [indices[keep], *changed.values()]
    owner, column = np.concatenate(owners), np.concatenate(columns)
    order = np.argsort(owner, kind="stable")  # each list is ascending already
    counts = np.bincount(owner, minlength=overlay.num_rows)[rows]
    dtype = np.int32 if len(rows) < 2**31 else np.int64
    return np.concatenate([[0], np.cumsum(counts)]), number[column[order]].astype(dtype)


def _labels(overlay: Overlay, rows: IntArray) -> torch.Tensor | None:
    labels = overlay.base.graph.labels
    if labels is None:
        return None
    old = rows < overlay.base.num_nodes
    out = labels.new_full((len(rows), *labels.shape[1:]), unknown_label(overlay.base.graph))
    out[torch.from_numpy(np.flatnonzero(old))] = labels[torch.from_numpy(rows[old])]
    for row, label in overlay.labels.items():
        place = int(np.searchsorted(rows, row))
        out[place] = 0
        if isinstance(label, tuple):
            out[place, list(label)] = 1
        else:
            out[place] = label
    return out

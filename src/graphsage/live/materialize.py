"""A live graph at one moment as a `Graph`, for compaction and for embedding all nodes."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
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


def whole(overlay: Overlay) -> Whole:
    """All present nodes by arrival."""
    base = overlay.base
    base.check_all()
    alive = np.ones(overlay.num_rows, bool)
    alive[list(overlay.gone)] = False
    rows = np.flatnonzero(alive)
    stored = base.graph
    indptr, indices = _lists(stored.indptr.numpy(), stored.indices.numpy(), overlay.adjacency.lists, alive)
    features = None
    if stored.features is not None:
        features = overlay.feature_rows(rows).to(stored.features.dtype)
    graph = Graph(
        torch.from_numpy(indptr),
        torch.from_numpy(indices),
        features=features,
        labels=_labels(overlay, rows),
        class_names=stored.class_names,
        ids=NodeIds.of([overlay.id_of(row) for row in rows.tolist()]),
        direction=stored.direction,
    )
    return Whole(graph, rows)


def within_cap(overlay: Overlay, made: Whole) -> Graph:
    """The graph of `whole(overlay)` without the edges beyond the degree cap."""
    alive = np.zeros(overlay.num_rows, bool)
    alive[made.rows] = True
    indptr, indices = _lists(overlay.cap.indptr, overlay.cap.indices, overlay.adjacency.shown, alive)
    return made.graph.replace(indptr=torch.from_numpy(indptr), indices=torch.from_numpy(indices))


def _lists(
    indptr: IntArray, indices: IntArray, changed: Mapping[int, IntArray], alive: npt.NDArray[np.bool_]
) -> tuple[IntArray, IntArray]:
    """A CSR of the rows that are `alive`: stored lists, except those that were `changed`."""
    n, number = len(indptr) - 1, np.cumsum(alive) - 1
    untouched = np.ones(n, bool)
    untouched[[row for row in changed if row < n]] = False
    old_rows = np.repeat(np.arange(n), np.diff(indptr))
    keep = untouched[old_rows]
    owners = [old_rows[keep], *(np.full(len(others), row) for row, others in changed.items())]
    columns = [indices[keep], *changed.values()]
    owner, column = np.concatenate(owners), np.concatenate(columns)
    order = np.argsort(owner, kind="stable")  # each list is ascending already
    counts = np.bincount(owner, minlength=len(alive))[alive]
    dtype = np.int32 if len(counts) < 2**31 else np.int64
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

"""The degree cap of a graph on disk: keeps the edges that `cap_degrees` keeps, in two passes over the file."""

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from graphsage.atomic import atomic_folder
from graphsage.graph.cap import NO_THRESHOLD, CapRule
from graphsage.graph.external.row_file import RowWriter
from graphsage.graph.external.runs import Adjacency

RUN_EDGES = 1 << 20
EDGE_BYTES = 96  # of memory that an edge takes while it is ranked


def cap_files(
    adjacency: Adjacency,
    folder: Path,
    max_degree: int | None,
    *,
    seed: int,
    cap: str,
    directed: bool,
    run_edges: int = RUN_EDGES,
) -> bool:
    """Write `indptr.npy` and `indices.npy` of the capped graph into `folder`. Returns False and writes nothing if no
    node has too many neighbors."""
    rule = CapRule(max_degree, cap, seed, directed)
    if max_degree is None:
        return False
    hubs, thresholds = _thresholds(adjacency, rule, run_edges)
    if not len(hubs):
        return False

    def threshold(nodes: Tensor) -> Tensor:
        place = torch.searchsorted(hubs, nodes).clamp_(max=len(hubs) - 1)
        return torch.where(hubs[place] == nodes, thresholds[place], NO_THRESHOLD)

    with (
        atomic_folder(folder) as temporary,
        RowWriter(temporary / "indptr.npy", np.int64) as indptr,
        RowWriter(temporary / "indices.npy", adjacency.indices.dtype) as indices,
    ):
        indptr.write(np.zeros(1, np.int64))
        for start, pointers in adjacency.runs(run_edges):
            found = adjacency.neighbors(int(pointers[0]), int(pointers[-1]))
            count = len(pointers) - 1
            rows = torch.from_numpy(np.repeat(np.arange(start, start + count), np.diff(pointers)))
            columns = torch.from_numpy(found.astype(np.int64))
            keep = rule.priorities(rows, columns) <= rule.largest_surviving(threshold(rows), threshold(columns))
            counts = torch.bincount(rows[keep] - start, minlength=count)
            before = indices.count
            indices.write(found[keep.numpy()])
            indptr.write(before + counts.cumsum(0).numpy())
    return True


def _thresholds(adjacency: Adjacency, rule: CapRule, run_edges: int) -> tuple[Tensor, Tensor]:
    """The nodes with too many neighbors, ascending, and their thresholds."""
    hubs, last = [], []
    for start, pointers in adjacency.runs(run_edges):
        for row in np.flatnonzero(np.diff(pointers) > rule.limit).tolist():
            found = adjacency.neighbors(int(pointers[row]), int(pointers[row + 1]))
            priorities = rule.priorities(torch.tensor([start + row]), torch.from_numpy(found.astype(np.int64)))
            hubs.append(start + row)
            last.append(int(rule.best(priorities)[-1]))
    return torch.tensor(hubs, dtype=torch.int64), torch.tensor(last, dtype=torch.int64)

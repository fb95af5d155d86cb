"""The degree cap (Appendix C) of a graph on disk: the edges that `cap_degrees` keeps, in two passes over the file."""

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from graphsage.atomic import atomic_folder
from graphsage.errors import one_of
from graphsage.graph.cap import CAPS, edge_priorities
from graphsage.graph.external.row_file import Array, RowWriter
from graphsage.graph.external.runs import Adjacency

RUN_EDGES = 1 << 20
EDGE_BYTES = 96  # of memory that an edge takes while it is ranked
_NEVER = torch.iinfo(torch.int64).max


def cap_files(adjacency: Adjacency, folder: Path, max_degree: int | None, *, seed: int, cap: str, directed: bool,
              run_edges: int = RUN_EDGES) -> bool:  # fmt: skip
    """Write `indptr.npy` and `indices.npy` of the capped graph into `folder`; False, and nothing, where no node has
    too many neighbors."""
    one_of("cap", cap, CAPS)
    if max_degree is None:
        return False
    both_ways = cap == "symmetric" and not directed
    hubs, thresholds = _thresholds(adjacency, max_degree, seed, both_ways, run_edges)
    if not len(hubs):
        return False
    with (
        atomic_folder(folder) as temporary,
        RowWriter(temporary / "indptr.npy", np.int64) as indptr,
        RowWriter(temporary / "indices.npy", adjacency.indices.dtype) as indices,
    ):
        indptr.write(np.zeros(1, np.int64))
        for start, pointers in adjacency.runs(run_edges):
            found = adjacency.neighbors(int(pointers[0]), int(pointers[-1]))
            rows, columns, priority = _ranked(start, pointers, found, seed, both_ways)
            keep = priority <= _threshold(rows, hubs, thresholds)
            if both_ways:
                keep &= priority <= _threshold(columns, hubs, thresholds)
            counts = torch.bincount(rows[keep] - start, minlength=len(pointers) - 1)
            before = indices.count
            indices.write(found[keep.numpy()])
            indptr.write(before + counts.cumsum(0).numpy())
    return True


def _thresholds(adjacency: Adjacency, max_degree: int, seed: int, both_ways: bool, run_edges: int,
                ) -> tuple[Tensor, Tensor]:  # fmt: skip
    """The nodes with too many neighbors, ascending, and the priority of each one's last surviving edge."""
    hubs, last = [], []
    for start, pointers in adjacency.runs(run_edges):
        for row in np.flatnonzero(pointers[1:] - pointers[:-1] > max_degree).tolist():
            found = adjacency.neighbors(int(pointers[row]), int(pointers[row + 1]))
            _, _, priority = _ranked(start + row, pointers[row : row + 2], found, seed, both_ways)
            hubs.append(start + row)
            last.append(int(torch.kthvalue(priority, max_degree).values))
    return torch.tensor(hubs, dtype=torch.int64), torch.tensor(last, dtype=torch.int64)


def _ranked(start: int, pointers: Array, found: Array, seed: int, both_ways: bool) -> tuple[Tensor, Tensor, Tensor]:
    rows = torch.from_numpy(np.repeat(np.arange(start, start + len(pointers) - 1), pointers[1:] - pointers[:-1]))
    columns = torch.from_numpy(found.astype(np.int64))
    return rows, columns, edge_priorities(rows, columns, seed, both_ways)


def _threshold(nodes: Tensor, hubs: Tensor, thresholds: Tensor) -> Tensor:
    place = torch.searchsorted(hubs, nodes).clamp_(max=len(hubs) - 1)
    return torch.where(hubs[place] == nodes, thresholds[place], _NEVER)

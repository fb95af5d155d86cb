"""The edges of a block of nodes, in the order in which blocks of source rows come into memory."""

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from graphsage.graph.external.csr import CsrFiles, cut
from graphsage.graph.external.row_file import Array

RUN_EDGES, RUN_ROWS = 1 << 19, 1 << 14  # reduced at once
EDGE_BYTES = 8  # kept for each edge of a block
_SPARSE = 4  # below one edge for so many rows, only the rows that have one are touched


@dataclass(frozen=True)
class EdgeRun:
    """Rows start..stop; edges from source block j are `bounds[j]` to `bounds[j + 1]`. `rows` count from `start`."""

    start: int
    stop: int
    sources: Array
    rows: Array
    bounds: Array

    def reduce(self, block: int, table: Tensor, first: int, kind: str, into: Tensor) -> None:
        """Add (or take the maximum of) the rows of source block `block`, which begin at node `first`."""
        low, high = int(self.bounds[block]), int(self.bounds[block + 1])
        if low == high:
            return
        index = torch.from_numpy(self.sources[low:high] - self.sources.dtype.type(first))
        rows, count = self.rows[low:high], self.stop - self.start
        here = into[self.start : self.stop]
        if kind == "max" or (high - low) * _SPARSE < count:
            starts = np.flatnonzero(np.diff(rows, prepend=-1))
            offsets = torch.from_numpy(np.append(starts, high - low).astype(self.sources.dtype))
            touched = torch.from_numpy(rows[starts].astype(np.int64))
            part = F.embedding_bag(index, table, offsets, mode=kind, include_last_offset=True)
            old = here[touched]
            here[touched] = torch.maximum(old, part) if kind == "max" else old.add_(part)
        else:
            ends = np.zeros(count + 1, self.sources.dtype)
            np.cumsum(np.bincount(rows, minlength=count), out=ends[1:])
            here += F.embedding_bag(index, table, torch.from_numpy(ends), mode=kind, include_last_offset=True)


def block_runs(adjacency: CsrFiles, pointers: Array, source_rows: int) -> list[EdgeRun]:
    """All edges of the rows whose `pointers` are given, cut into runs and sorted by source block."""
    blocks = -(-adjacency.num_nodes // source_rows)
    runs = []
    for a, b in cut(np.maximum(np.diff(pointers), RUN_EDGES // RUN_ROWS), RUN_EDGES):
        first, last = int(pointers[a]), int(pointers[b])
        found = adjacency.neighbors(first, last)
        rows = np.repeat(np.arange(b - a, dtype=np.int32), np.diff(pointers[a : b + 1]))
        if blocks > 1:
            which = (found // source_rows).astype(np.uint16 if blocks < 1 << 16 else np.int64)
            order = np.argsort(which, kind="stable")  # a radix sort of 16 bits; within a block by row as before
            bounds = np.searchsorted(which[order], np.arange(blocks + 1))
            found, rows = found[order], rows[order]
        else:
            bounds = np.array([0, last - first])
        runs.append(EdgeRun(a, b, found, rows, bounds))
    return runs

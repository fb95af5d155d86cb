"""Rows of a CSR on disk in runs: so many rows and neighbors at a time as memory holds."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from graphsage.errors import GraphError
from graphsage.graph.external.row_file import Array, RowFile

POINTERS = 1 << 20  # of indptr read at once


@dataclass(frozen=True)
class Adjacency:
    """`indptr.npy` and `indices.npy` of a graph folder (or of its capped form)."""

    indptr: RowFile
    indices: RowFile

    @classmethod
    def open(cls, folder: Path) -> "Adjacency":
        return cls(RowFile(folder / "indptr.npy"), RowFile(folder / "indices.npy"))

    @property
    def num_nodes(self) -> int:
        return len(self.indptr) - 1

    def pointers(self, start: int, stop: int) -> Array:
        """indptr[start:stop + 1], checked: a damaged file would otherwise be read outside its bounds."""
        pointers = self.indptr.read(start, stop + 1)
        back = np.flatnonzero(pointers[1:] < pointers[:-1])
        if len(back) or pointers[0] < 0 or pointers[-1] > len(self.indices):
            node = start + (int(back[0]) if len(back) else 0)
            raise GraphError(f"{self.indptr.path} is damaged at node {node}; build the graph again")
        return pointers

    def neighbors(self, first: int, last: int) -> Array:
        """indices[first:last], checked to be nodes."""
        found = self.indices.read(first, last)
        if len(found) and (found.min() < 0 or found.max() >= self.num_nodes):
            raise GraphError(
                f"{self.indices.path} is damaged: it names a node beyond {self.num_nodes - 1}; build the graph again"
            )
        return found

    def chunks(self) -> Iterator[tuple[int, Array]]:
        """(first row, pointers of the rows from there on) over all rows."""
        for start in range(0, self.num_nodes, POINTERS):
            yield start, self.pointers(start, min(start + POINTERS, self.num_nodes))

    def runs(self, max_edges: int) -> Iterator[tuple[int, Array]]:
        """The same in runs of at most `max_edges` neighbors, at least one row each."""
        for start, pointers in self.chunks():
            for a, b in cut(pointers[1:] - pointers[:-1] + 1, max_edges):
                yield start + a, pointers[a : b + 1]


def cut(weights: Array, limit: int) -> list[tuple[int, int]]:
    """Cut rows into runs whose weights add up to at most `limit`, at least one row each."""
    total = np.cumsum(weights, dtype=np.int64)
    runs, start, spent = [], 0, 0
    while start < len(total):
        stop = max(int(np.searchsorted(total, spent + limit, side="right")), start + 1)
        runs.append((start, stop))
        start, spent = stop, int(total[stop - 1])
    return runs

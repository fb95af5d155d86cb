"""The degree cap on a graph that changes: who survives depends on ids alone, and a change touches few lists.

As in graph/cap.py, an edge stays if its random number is among the smallest `max_degree` at its row (and, where
edges go both ways, at its other end too). A hub is a node with more neighbors than that; `best` are its smallest
numbers, ascending, and the last of them is its threshold.
"""

from dataclasses import dataclass

import numpy as np

from graphsage.graph.graph import Graph
from graphsage.live.keys import Priorities, Rows
from graphsage.sampling.minibatch import SamplingConfig

OPEN = int(np.iinfo(np.int64).max)  # the threshold of a node that is no hub


@dataclass(frozen=True)
class Cap:
    """How a model caps degrees."""

    max_degree: int | None
    kind: str
    seed: int

    @staticmethod
    def of(sampling: SamplingConfig, seed: int) -> "Cap":
        return Cap(sampling.max_degree, sampling.cap, seed)


class BaseCap:
    """The cap of a generation: its surviving edges as a CSR, and the hubs' smallest numbers."""

    def __init__(self, graph: Graph, keys: Rows, cap: Cap) -> None:
        self.limit = OPEN if cap.max_degree is None else cap.max_degree
        self.both_ways = cap.kind == "symmetric" and not graph.directed
        self.priorities = Priorities(cap.seed, self.both_ways)
        self.best: dict[int, Rows] = {}
        self.indptr, self.indices = graph.indptr.numpy(), graph.indices.numpy()
        hubs = np.flatnonzero(np.diff(self.indptr) > self.limit)
        if len(hubs):
            self._drop(hubs, keys)

    def _drop(self, hubs: Rows, keys: Rows) -> None:
        threshold = np.full(len(keys), OPEN)
        rows = np.repeat(np.arange(len(keys)), np.diff(self.indptr))
        for hub in hubs.tolist():
            start, stop = self.indptr[hub], self.indptr[hub + 1]
            numbers = self.priorities.many(np.full(stop - start, keys[hub]), keys[self.indices[start:stop]])
            self.best[hub] = np.sort(np.partition(numbers, self.limit - 1)[: self.limit])
            threshold[hub] = self.best[hub][-1]
        near = threshold[rows] != OPEN  # all other edges stay, and need no number
        if self.both_ways:
            near |= threshold[self.indices] != OPEN
        numbers = self.priorities.many(keys[rows[near]], keys[self.indices[near]])
        stay = numbers <= threshold[rows[near]]
        if self.both_ways:
            stay &= numbers <= threshold[self.indices[near]]
        keep = ~near
        keep[near] = stay
        counts = np.bincount(rows[keep], minlength=len(keys))
        self.indptr, self.indices = np.concatenate([[0], np.cumsum(counts)]), self.indices[keep]

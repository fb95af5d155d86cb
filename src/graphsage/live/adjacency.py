"""Neighbor lists that differ from the generation. Every change keeps the degree cap.

`lists` hold all neighbors, `shown` the neighbors within the cap; other rows are read from the generation. Arrays are
replaced, never changed, so a copy of the dictionaries is a snapshot.
"""

from dataclasses import dataclass

import numpy as np
import torch

from graphsage.graph.cap import NO_THRESHOLD, CapRule, capped
from graphsage.graph.graph import Graph
from graphsage.graph.ids import IntArray
from graphsage.live.generation import Generation
from graphsage.sampling.minibatch import SamplingConfig

_NO_ROWS: IntArray = np.zeros(0, np.int64)


@dataclass(frozen=True)
class Cap:
    """The degree cap of a model."""

    max_degree: int | None
    kind: str
    seed: int
    self_loops: bool = True

    @staticmethod
    def of(sampling: SamplingConfig, seed: int) -> "Cap":
        return Cap(sampling.max_degree, sampling.cap, seed, sampling.self_loops)


class BaseCap:
    """Edges of a generation within the cap as a CSR, and the ascending smallest priorities of every hub."""

    def __init__(self, graph: Graph, keys: IntArray, cap: Cap) -> None:
        self.rule = CapRule(cap.max_degree, cap.kind, cap.seed, graph.directed, cap.self_loops)
        shown, best = capped(graph, self.rule, torch.tensor(keys))
        self.indptr, self.indices = shown.indptr.numpy(), shown.indices.numpy()
        self.best: dict[int, IntArray] = {hub: found.numpy() for hub, found in best.items()}


class Adjacency:
    def __init__(self, base: Generation, cap: BaseCap, keys: dict[int, int], below: "Adjacency | None" = None) -> None:
        self._base, self._cap, self._rule, self._keys, self._below = base, cap, cap.rule, keys, below
        self._directed = base.graph.directed
        self._indptr, self._indices = base.graph.indptr.numpy(), base.graph.indices.numpy()
        self.lists: dict[int, IntArray] = {}
        self.shown: dict[int, IntArray] = {}
        self._best: dict[int, IntArray | None] = {}
        self._hearers: dict[int, set[int]] = {}  # directed graphs: rows that began to list a row

    # Reading

    def neighbors(self, row: int) -> IntArray:
        """All neighbors, ascending."""
        found = self.lists.get(row)
        if found is not None:
            return found
        if self._below is not None:
            return self._below.neighbors(row)
        return self._indices[self._indptr[row] : self._indptr[row + 1]]

    def capped(self, row: int) -> IntArray:
        """Neighbors within the degree cap, ascending; inference reads these."""
        found = self.shown.get(row)
        if found is not None:
            return found
        if self._below is not None:
            return self._below.capped(row)
        return self._cap.indices[self._cap.indptr[row] : self._cap.indptr[row + 1]]

    def key_of(self, row: int) -> int:
        found = self._keys.get(row)
        if found is not None:
            return found
        return int(self._base.keys[row]) if self._below is None else self._below.key_of(row)

    def keys_of(self, rows: IntArray) -> IntArray:
        keys = self._base.keys[np.minimum(rows, self._base.num_nodes - 1)]
        for place in np.flatnonzero(rows >= self._base.num_nodes).tolist():
            keys[place] = self.key_of(int(rows[place]))
        return keys

    # Changing

    def new_row(self, row: int) -> None:
        self.lists[row] = self.shown[row] = _NO_ROWS

    def join(self, source: int, target: int) -> None:
        """Add the edge (source, target): the source becomes a neighbor of the target, and vice versa if undirected."""
        pairs = [pair for pair in self._stored(source, target) if not _holds(self.neighbors(pair[0]), pair[1])]
        for row, other in pairs:
            self.lists[row] = _with(self.neighbors(row), other)
            self._tighten(row, other)
            if self._directed:
                self._hearers.setdefault(other, set()).add(row)
        for row, other in pairs:
            if self._survives(row, other):
                self.shown[row] = _with(self.capped(row), other)
            else:
                self.shown.setdefault(row, self.capped(row))

    def visit(self, row: int, others: list[int]) -> None:
        """Join the last row, still without edges, with all of `others` (distinct)."""
        if self._directed or len(others) > self._rule.limit:
            for other in others:
                self.join(other, row)
            return
        others, last = sorted(others), np.array([row], np.int64)
        lost = set()
        for other in others:
            everyone, shown = self.neighbors(other), self.capped(other)
            grown = self.lists[other] = np.concatenate((everyone, last))
            if len(self._counted(other, everyone)) >= self._rule.limit:
                self._tighten(other, row)
                if not self._survives(other, row):
                    lost.add(other)
                    continue
                grown = np.concatenate((self.capped(other), last))
            elif len(shown) < len(everyone):
                grown = np.concatenate((shown, last))
            self.shown[other] = grown
        heard = [other for other in others if other not in lost] if self._rule.both_ways else others
        self.lists[row], self.shown[row] = np.array(others, np.int64), self._counted(row, np.array(heard, np.int64))

    def cut(self, source: int, target: int) -> None:
        """Remove the edge (source, target) if it exists."""
        pairs = [pair for pair in self._stored(source, target) if _holds(self.neighbors(pair[0]), pair[1])]
        for row, other in pairs:
            self.lists[row] = _without(self.neighbors(row), other)
            self.shown[row] = _without(self.capped(row), other)
        for row, other in pairs:
            self._loosen(row, other)

    def isolate(self, row: int) -> None:
        """Remove all edges of `row`."""
        for other in self._listed_by(row):
            if other != row:
                self.lists[other] = _without(self.neighbors(other), row)
                self.shown[other] = _without(self.capped(other), row)
                self._loosen(other, row)
        self.lists[row] = self.shown[row] = _NO_ROWS
        self._best[row] = None

    def _listed_by(self, row: int) -> list[int]:
        """The rows that list `row`."""
        if not self._directed:
            return [int(other) for other in self.neighbors(row)]
        known = set(self._hearers.get(row, ()))
        if row < self._base.num_nodes:
            indptr, rows = self._base.reverse
            known.update(rows[indptr[row] : indptr[row + 1]].tolist())
        return sorted(other for other in known if _holds(self.neighbors(other), row))

    def _stored(self, source: int, target: int) -> list[tuple[int, int]]:
        """The (row, neighbor) pairs of an edge."""
        if self._directed or source == target:
            return [(target, source)]
        return [(target, source), (source, target)]

    # The cap

    def _threshold(self, row: int) -> int:
        best = self._best_of(row)
        return NO_THRESHOLD if best is None else int(best[-1])

    def _best_of(self, row: int) -> IntArray | None:
        if row in self._best:
            return self._best[row]
        return self._cap.best.get(row) if self._below is None else self._below._best_of(row)

    def _priorities(self, row: int, others: IntArray) -> IntArray:
        keys = torch.tensor([self.key_of(row)]), torch.from_numpy(self.keys_of(others))
        return self._rule.priorities(*keys).numpy()

    def _smallest(self, numbers: IntArray) -> IntArray:
        return self._rule.best(torch.from_numpy(numbers)).numpy()

    def _counted(self, row: int, others: IntArray) -> IntArray:
        """The `others` that count as neighbors of `row`."""
        return others if self._rule.self_loops else _without(others, row)

    def _survives(self, row: int, other: int) -> bool:
        if row == other and not self._rule.self_loops:
            return False
        limit = self._threshold(row)
        if self._rule.both_ways:
            limit = min(limit, self._threshold(other))
        return limit == NO_THRESHOLD or self._rule.priority(self.key_of(row), self.key_of(other)) <= limit

    def _tighten(self, row: int, other: int) -> None:
        """Update the cap after `other` joined `row`: a lower threshold may drop another neighbor."""
        everyone, limit = self._counted(row, self.neighbors(row)), self._rule.limit
        if len(everyone) <= limit or (row == other and not self._rule.self_loops):
            return
        best = self._best_of(row)
        if best is None:
            best = self._smallest(self._priorities(row, everyone))
        else:
            number = self._rule.priority(self.key_of(row), self.key_of(other))
            if number > best[-1]:
                return
            best = np.insert(best, np.searchsorted(best, number), number)[:-1]
        self._best[row] = best
        shown = self.capped(row)
        numbers = self._priorities(row, shown)
        self.shown[row] = shown[numbers <= best[-1]]
        if self._rule.both_ways:
            for lost in shown[numbers > best[-1]].tolist():
                self.shown[lost] = _without(self.capped(lost), row)

    def _loosen(self, row: int, other: int) -> None:
        """Update the cap after `other` left `row`: a higher threshold may admit another neighbor."""
        best, limit = self._best_of(row), self._rule.limit
        if best is None:
            return
        everyone = self._counted(row, self.neighbors(row))
        numbers = self._priorities(row, everyone)
        old = int(best[-1])
        self._best[row] = fresh = self._smallest(numbers) if len(everyone) > limit else None
        new = NO_THRESHOLD if fresh is None else int(fresh[-1])
        for back in everyone[(numbers > old) & (numbers <= new)].tolist():
            if self._survives(row, back):
                self.shown[row] = _with(self.capped(row), back)
                if self._rule.both_ways and back != row:
                    self.shown[back] = _with(self.capped(back), row)


def _place(rows: IntArray, row: int) -> int:
    return int(rows.searchsorted(row))


def _holds(rows: IntArray, row: int) -> bool:
    place = _place(rows, row)
    return place < len(rows) and int(rows[place]) == row


def _with(rows: IntArray, row: int) -> IntArray:
    place = _place(rows, row)
    if place < len(rows) and int(rows[place]) == row:
        return rows
    grown = np.empty(len(rows) + 1, np.int64)
    grown[:place], grown[place], grown[place + 1 :] = rows[:place], row, rows[place:]
    return grown


def _without(rows: IntArray, row: int) -> IntArray:
    place = _place(rows, row)
    if place == len(rows) or int(rows[place]) != row:
        return rows
    return np.concatenate([rows[:place], rows[place + 1 :]]).astype(np.int64, copy=False)

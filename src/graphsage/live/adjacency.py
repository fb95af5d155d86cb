"""Neighbor lists that differ from the generation. Every change keeps the degree cap.

`lists` hold all neighbors, `shown` the neighbors within the cap; other rows are read from the generation. Arrays are
replaced, never changed, so a copy of the dictionaries is a snapshot.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from graphsage.graph.cap import NO_THRESHOLD, CapRule, capped
from graphsage.graph.ids import IntArray
from graphsage.live.generation import Generation
from graphsage.sampling.minibatch import SamplingConfig

_NO_ROWS: IntArray = np.zeros(0, np.int64)
_FEW = 24  # edges whose priorities are computed one by one: faster, and without giving up Python's lock


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

    def __init__(self, base: Generation, cap: Cap) -> None:
        def keys() -> torch.Tensor:
            base.check_edges()
            base.check_keys()
            return torch.tensor(base.keys)

        graph = base.graph
        self.rule = CapRule(cap.max_degree, cap.kind, cap.seed, graph.directed, cap.self_loops)
        if not cap.self_loops:
            base.check_edges()
        shown, best = capped(graph, self.rule, keys)
        self.drops = shown is not graph  # otherwise the arrays are those of the generation
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
        start, stop = int(self._indptr[row]), int(self._indptr[row + 1])
        self._base.check_edges(start, stop)
        return self._indices[start:stop]

    def capped(self, row: int) -> IntArray:
        """Neighbors within the degree cap, ascending; inference reads these."""
        found = self.shown.get(row)
        if found is not None:
            return found
        if self._below is not None:
            return self._below.capped(row)
        start, stop = int(self._cap.indptr[row]), int(self._cap.indptr[row + 1])
        if not self._cap.drops:
            self._base.check_edges(start, stop)
        return self._cap.indices[start:stop]

    def key_of(self, row: int) -> int:
        found = self._keys.get(row)
        if found is not None:
            return found
        self._base.check_keys()
        return int(self._base.keys[row]) if self._below is None else self._below.key_of(row)

    def keys_of(self, rows: IntArray) -> IntArray:
        self._base.check_keys()
        keys = self._base.keys[np.minimum(rows, self._base.num_nodes - 1)]
        for place in np.flatnonzero(rows >= self._base.num_nodes).tolist():
            keys[place] = self.key_of(int(rows[place]))
        return keys

    # Changing

    def new_row(self, row: int) -> None:
        self.lists[row] = self.shown[row] = _NO_ROWS

    def join(self, sources: IntArray, targets: IntArray) -> None:
        """Add edges: each source becomes a neighbor of its target, and vice versa if undirected."""
        rows, others = targets, sources
        if not self._directed:
            rows, others = np.concatenate((targets, sources)), np.concatenate((sources, targets))
        order = np.lexsort((others, rows))
        rows, others = rows[order], others[order]
        new = np.ones(len(rows), bool)
        new[1:] = (rows[1:] != rows[:-1]) | (others[1:] != others[:-1])
        for row, start, stop in zip(*(each.tolist() for each in _runs(rows)), strict=True):
            new[start:stop] &= ~_held(self.neighbors(row), others[start:stop])
        rows, others = rows[new], others[new]
        if not len(rows):
            return
        owners, starts, stops = _runs(rows)
        runs = list(zip(owners.tolist(), starts.tolist(), stops.tolist(), strict=True))
        degrees = np.array([len(self.neighbors(row)) for row in owners.tolist()]) + stops - starts
        hubs = np.repeat(degrees > self._rule.limit, stops - starts)
        if self._rule.both_ways:  # then every other is an owner too
            hubs |= (degrees > self._rule.limit)[owners.searchsorted(others)]
        numbers = np.zeros(len(rows), np.int64)  # of edges at hubs; the cap drops no others
        numbers[hubs] = self._numbers(rows[hubs], others[hubs])
        for row, start, stop in runs:
            joined = others[start:stop]
            self.lists[row] = _merged(self.neighbors(row), joined)
            self._tighten(row, numbers[start:stop][self._rule.self_loops | (joined != row)])
            if self._directed:
                for other in joined.tolist():
                    self._hearers.setdefault(other, set()).add(row)
        thresholds = np.array([self._threshold(row) for row in owners.tolist()])
        limits = np.repeat(thresholds, stops - starts)
        if self._rule.both_ways:
            limits = np.minimum(limits, thresholds[owners.searchsorted(others)])
        keep = (numbers <= limits) & (self._rule.self_loops | (rows != others))
        for row, start, stop in runs:
            survivors = others[start:stop][keep[start:stop]]
            if len(survivors):
                self.shown[row] = _merged(self.capped(row), survivors)

    def visit(self, row: int, others: list[int]) -> None:
        """Join the last row, still without edges, with all of `others` (distinct)."""
        if len(others) > self._rule.limit:
            self.join(np.array(others, np.int64), np.full(len(others), row))
            return
        others, last = sorted(others), np.array([row], np.int64)
        if self._directed:  # only the row's own list grows, within the limit
            self.lists[row] = np.array(others, np.int64)
            self.shown[row] = self._counted(row, self.lists[row])
            for other in others:
                self._hearers.setdefault(other, set()).add(row)
            return
        lost = set()
        for other in others:
            everyone, shown = self.neighbors(other), self.capped(other)
            grown = self.lists[other] = np.concatenate((everyone, last))
            limit = self._rule.limit
            if len(everyone) >= limit and len(self._counted(other, everyone)) >= limit:
                number = self._rule.priority(self.key_of(other), self.key_of(row))
                self._tighten(other, np.array([number]))
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

    def take(self, above: "Adjacency") -> None:
        """Make the lists of an adjacency on top of this one its own."""
        self.lists.update(above.lists)
        self.shown.update(above.shown)
        self._best.update(above._best)
        for row, hearers in above._hearers.items():
            self._hearers.setdefault(row, set()).update(hearers)

    def _listed_by(self, row: int) -> list[int]:
        """The rows that list `row`."""
        if not self._directed:
            return [int(other) for other in self.neighbors(row)]
        known = set(self._hearers.get(row, ()))
        if self._below is not None:
            known.update(self._below._hearers.get(row, ()))
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

    def _numbers(self, rows: IntArray, others: IntArray) -> IntArray:
        """Priorities of the edges (rows, others)."""
        if len(rows) <= _FEW:
            ends = zip(rows.tolist(), others.tolist(), strict=True)
            return np.array([self._rule.priority(self.key_of(u), self.key_of(v)) for u, v in ends], np.int64)
        nodes, places = np.unique(np.concatenate((rows, others)), return_inverse=True)
        keys = torch.from_numpy(self.keys_of(nodes)[places])
        return self._rule.priorities(keys[: len(rows)], keys[len(rows) :]).numpy()

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

    def _tighten(self, row: int, numbers: IntArray) -> None:
        """Update the cap after neighbors with the priorities `numbers` joined `row`: others may be dropped."""
        everyone, limit = self._counted(row, self.neighbors(row)), self._rule.limit
        if len(everyone) <= limit or not len(numbers):
            return
        best = self._best_of(row)
        if best is None:
            best = self._smallest(self._priorities(row, everyone))
        elif numbers.min() > best[-1]:
            return
        else:
            best = np.sort(np.concatenate((best, numbers)))[:limit]
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


def _runs(rows: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """The different numbers in the ascending `rows`, and where the run of each begins and ends."""
    starts = np.flatnonzero(np.concatenate(([True], rows[1:] != rows[:-1]))) if len(rows) else _NO_ROWS
    return rows[starts], starts, np.append(starts[1:], len(rows))


def _held(rows: IntArray, others: IntArray) -> npt.NDArray[np.bool_]:
    """Which of `others` are in `rows`."""
    if not len(rows):
        return np.zeros(len(others), bool)
    held: npt.NDArray[np.bool_] = rows[np.minimum(rows.searchsorted(others), len(rows) - 1)] == others
    return held


def _merged(rows: IntArray, more: IntArray) -> IntArray:
    """Two ascending lists without a common row as one."""
    both = np.concatenate((rows, more)).astype(np.int64, copy=False)
    if len(rows) and len(more) and more[0] < rows[-1]:
        both.sort(kind="stable")
    return both


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

"""Nearest nodes of a graph that changes: a base that is built once, and an exact delta of what came after.

The base lives in memory only: a damaged index file could crash the process, and building is quick.
"""

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from graphsage.inference.nearest import NearestIndex, Vectors, best, normalized


@dataclass
class SearchIndex:
    """`base` has a row for each of `ids`. `delta` holds nodes that came or changed after it was built; `stale` are
    rows of the base whose node changed or was deleted."""

    ids: Sequence[str]
    base: NearestIndex
    delta: dict[str, Vectors] = field(default_factory=dict)
    stale: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._place = {id: place for place, id in enumerate(self.ids)}
        self._guard = threading.Lock()
        self._held: tuple[list[str], Vectors] | None = None

    @property
    def recall(self) -> float:
        return self.base.recall

    @property
    def outdated(self) -> int:
        """Work that a rebuild would save each search."""
        return len(self.delta) + len(self.stale)

    def put(self, id: str, z: Vectors) -> None:
        with self._guard:
            if id in self._place:
                self.stale.add(self._place[id])
            self.delta[id] = normalized(z[None])[0]
            self._held = None

    def remove(self, id: str) -> None:
        with self._guard:
            if id in self._place:
                self.stale.add(self._place[id])
            self.delta.pop(id, None)
            self._held = None

    def search(self, z: Vectors, k: int, without: str | None = None) -> list[tuple[str, float]]:
        """The `k` nodes whose vectors are closest to `z` (D,) by cosine, best first."""
        return self.search_all(z[None], k, [without])[0]

    def search_all(self, z: Vectors, k: int, without: Sequence[str | None]) -> list[list[tuple[str, float]]]:
        """The same for each row of `z` (Q, D): the base is read once for all of them."""
        asked = normalized(z)
        with self._guard:
            if self._held is None:
                table = np.stack([*self.delta.values()]) if self.delta else np.zeros((0, z.shape[1]), np.float32)
                self._held = ([*self.delta], table)
            names, table = self._held
            base = self.base.search(asked, k + 1, self.stale)
        delta = best(asked @ table.T, k + 1)
        return [self._merged(row, names, k, own) for *row, own in zip(*base, *delta, without, strict=True)]

    def _merged(
        self, row: Sequence[npt.NDArray[Any]], names: Sequence[str], k: int, own: str | None
    ) -> list[tuple[str, float]]:
        """The best of what base and delta found for one query."""
        old, old_cosines, new, new_cosines = (each.tolist() for each in row)
        pairs = [(self.ids[place], c) for place, c in zip(old, old_cosines, strict=True) if place >= 0]
        pairs += [(names[place], c) for place, c in zip(new, new_cosines, strict=True) if place >= 0]
        return [pair for pair in sorted(pairs, key=lambda pair: -pair[1]) if pair[0] != own][:k]

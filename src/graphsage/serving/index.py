"""Nearest nodes of a graph that changes: a base that is built once, and an exact delta of what came after.

The base is exact while small; above, HNSW, whose recall is measured when it is built. It lives in memory only: an
index file that was damaged could crash the process, and building is quick.
"""

import threading
from collections.abc import Sequence, Set
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

Vectors = npt.NDArray[np.float32]
Places = npt.NDArray[np.int64]
PROBES = 200  # queries on which the recall is measured
_K = 10


@dataclass(frozen=True, eq=False)
class Base:
    """`unit` (N, D) are vectors of length 1 (or 0) of the nodes `ids`."""

    ids: tuple[str, ...]
    unit: Vectors
    approximate: Any = None
    recall: float = 1.0

    @staticmethod
    def build(ids: Sequence[str], z: Vectors, exact_up_to: int) -> "Base":
        unit = normalized(z)
        if len(ids) <= exact_up_to:
            return Base(tuple(ids), unit)
        import faiss

        index = faiss.IndexHNSWFlat(unit.shape[1], 32, faiss.METRIC_INNER_PRODUCT)
        index.hnsw.efConstruction, index.hnsw.efSearch = 100, 128
        index.add(unit)
        made = Base(tuple(ids), unit, index)
        return Base(made.ids, unit, index, made.measured_recall())

    def measured_recall(self) -> float:
        """The share of the true nearest nodes that is found; a node itself, which anybody finds, does not count."""
        own = np.unique(np.linspace(0, len(self.unit) - 1, PROBES).astype(np.int64))
        truth, found = (base.search(self.unit[own], _K + 1)[0] for base in (Base(self.ids, self.unit), self))
        others = truth != own[:, None]
        hits = (truth[:, :, None] == found[:, None, :]).any(axis=2) & others
        return float(hits.sum() / others.sum())

    def search(self, asked: Vectors, k: int, stale: Set[int] = frozenset()) -> tuple[Places, Vectors]:
        """Places and cosines (Q, k), best first, without those that are `stale`: -1 where there are no more."""
        if self.approximate is not None:
            spare = min(len(stale), 4 * k + 64)
            cosines, places = self.approximate.search(asked, min(k + spare, len(self.ids)))
            gone = np.isin(places, list(stale)) | (places < 0)
            cosines[gone] = -np.inf
            if (~gone).sum(axis=1).min(initial=k) >= min(k, len(self.ids) - len(stale)):
                chosen, cosines = best(cosines, k)
                return np.where(chosen < 0, -1, np.take_along_axis(places, chosen, 1)), cosines
        cosines = asked @ self.unit.T  # also where all that is near is stale, and the index would lose its way
        cosines[:, list(stale)] = -np.inf
        return best(cosines, k)


def best(cosines: Vectors, k: int) -> tuple[Places, Vectors]:
    """Columns and values of the `k` largest in each row of (Q, N), in order; -1 where they are not finite."""
    k = min(k, cosines.shape[1])
    places = np.argpartition(-cosines, k - 1, axis=1)[:, :k] if k else np.zeros((len(cosines), 0), np.int64)
    order = np.argsort(-np.take_along_axis(cosines, places, 1), axis=1, kind="stable")
    places = np.take_along_axis(places, order, 1)
    values = np.take_along_axis(cosines, places, 1)
    return np.where(np.isfinite(values), places, -1), values


@dataclass
class SearchIndex:
    """`delta` holds nodes that came or changed after the base was built; `stale` are places of the base that no
    longer hold, because the node changed or is gone."""

    base: Base
    delta: dict[str, Vectors] = field(default_factory=dict)
    stale: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._place = {id: place for place, id in enumerate(self.base.ids)}
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

    def _merged(self, row: Sequence[npt.NDArray[Any]], names: Sequence[str], k: int, own: str | None
                ) -> list[tuple[str, float]]:  # fmt: skip
        """The best of what base and delta found for one query."""
        old, old_cosines, new, new_cosines = (each.tolist() for each in row)
        pairs = [(self.base.ids[place], c) for place, c in zip(old, old_cosines, strict=True) if place >= 0]
        pairs += [(names[place], c) for place, c in zip(new, new_cosines, strict=True) if place >= 0]
        return [pair for pair in sorted(pairs, key=lambda pair: -pair[1]) if pair[0] != own][:k]


def normalized(z: Vectors) -> Vectors:
    lengths = np.linalg.norm(z, axis=1, keepdims=True)
    return np.ascontiguousarray(z / np.where(lengths > 0, lengths, 1), dtype=np.float32)

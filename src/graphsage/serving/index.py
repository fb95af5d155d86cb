"""Nearest nodes of a graph that changes: a base that is built once, and an exact delta of what came after.

The base is exact while small; above, HNSW, whose recall is measured when it is built. It lives in memory only: an
index file that was damaged could crash the process, and building is quick.
"""

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

Vectors = npt.NDArray[np.float32]
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
        probes = unit[np.linspace(0, len(unit) - 1, PROBES).astype(np.int64)]
        truth, found = Base(tuple(ids), unit).search(probes, _K)[0], made.search(probes, _K)[0]
        hits = (truth[:, :, None] == found[:, None, :]).any(axis=2)
        return Base(tuple(ids), unit, index, float(hits.mean()))

    def search(self, asked: Vectors, k: int) -> tuple[npt.NDArray[np.int64], Vectors]:
        """Places and cosines (Q, k), best first."""
        k = min(k, len(self.ids))
        if self.approximate is not None:
            cosines, places = self.approximate.search(asked, k)
            return places, cosines
        if not k:
            return np.zeros((len(asked), 0), np.int64), np.zeros((len(asked), 0), np.float32)
        cosines = asked @ self.unit.T
        places = np.argpartition(-cosines, k - 1, axis=1)[:, :k] if k < len(self.ids) else np.tile(
            np.arange(len(self.ids)), (len(asked), 1))  # fmt: skip
        order = np.argsort(-np.take_along_axis(cosines, places, 1), axis=1, kind="stable")
        places = np.take_along_axis(places, order, 1)
        return places, np.take_along_axis(cosines, places, 1)


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
        asked = normalized(z[None])
        with self._guard:
            if self._held is None:
                table = np.stack([*self.delta.values()]) if self.delta else np.zeros((0, len(z)), np.float32)
                self._held = ([*self.delta], table)
            names, table = self._held
            spare = len(self.stale) if self.base.approximate is None else min(len(self.stale), 4 * k + 64)
            places, cosines = self.base.search(asked, k + 1 + spare)
            found = [(self.base.ids[p], float(c)) for p, c in zip(places[0].tolist(), cosines[0], strict=True)
                     if p >= 0 and p not in self.stale]  # fmt: skip
        found += zip(names, (table @ asked[0]).tolist(), strict=True)
        found.sort(key=lambda pair: -pair[1])
        return [pair for pair in found if pair[0] != without][:k]


def normalized(z: Vectors) -> Vectors:
    lengths = np.linalg.norm(z, axis=1, keepdims=True)
    return np.ascontiguousarray(z / np.where(lengths > 0, lengths, 1), dtype=np.float32)

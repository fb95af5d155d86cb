"""Nearest vectors by cosine: exact up to a number of rows, an HNSW index (faiss) with measured recall above it."""

from collections.abc import Callable, Set
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from graphsage.errors import ConfigError

Vectors = npt.NDArray[np.float32]
Places = npt.NDArray[np.int64]
EXACT_UP_TO = 100_000
PROBES = 200  # queries on which the recall is measured
_K = 10
_SLICE = 2000  # vectors that are added to an HNSW index at once


@dataclass(frozen=True, eq=False)
class NearestIndex:
    """`unit` (N, D) are vectors of length 1 (or 0). `recall` is 1 if the search is exact."""

    unit: Vectors
    approximate: Any = None
    recall: float = 1.0

    @staticmethod
    def build(
        z: Vectors, exact_up_to: int = EXACT_UP_TO, on_slice: Callable[[], None] = lambda: None
    ) -> "NearestIndex":
        """`on_slice` is called often during a long build; what it raises ends the build."""
        exact = NearestIndex(normalized(z))
        if len(z) <= exact_up_to:
            return exact
        try:
            import faiss
        except ImportError:
            raise ConfigError(
                f"searching more than {exact_up_to:,} nodes needs faiss: pip install 'graphsage[search]'"
            ) from None
        index = faiss.IndexHNSWFlat(z.shape[1], 32, faiss.METRIC_INNER_PRODUCT)
        index.hnsw.efConstruction, index.hnsw.efSearch = 100, 128
        for start in range(0, len(z), _SLICE):
            on_slice()
            index.add(exact.unit[start : start + _SLICE])
        made = replace(exact, approximate=index)
        return replace(made, recall=made.measured_recall())

    def measured_recall(self) -> float:
        """The share of the true nearest vectors that is found. A vector does not count as its own neighbor."""
        exact, hits, total = replace(self, approximate=None), 0, 0
        probes = np.unique(np.linspace(0, len(self.unit) - 1, PROBES).astype(np.int64))
        for own in np.array_split(probes, 10):  # all cosines of a part are in memory
            truth, found = (index.search(self.unit[own], _K + 1)[0] for index in (exact, self))
            others = truth != own[:, None]
            hits += int(((truth[:, :, None] == found[:, None, :]).any(axis=2) & others).sum())
            total += int(others.sum())
        return hits / total

    def search(self, asked: Vectors, k: int, stale: Set[int] = frozenset()) -> tuple[Places, Vectors]:
        """Rows (-1: no more) and cosines (Q, k), best first, without `stale`, for unit vectors `asked` (Q, D)."""
        if self.approximate is not None:
            spare = min(len(stale), 4 * k + 64)
            cosines, places = self.approximate.search(asked, min(k + spare, len(self.unit)))
            gone = np.isin(places, list(stale)) | (places < 0)
            cosines[gone] = -np.inf
            if (~gone).sum(axis=1).min(initial=k) >= min(k, len(self.unit) - len(stale)):
                chosen, cosines = best(cosines, k)
                return np.where(chosen < 0, -1, np.take_along_axis(places, chosen, 1)), cosines
        cosines = asked @ self.unit.T  # also if everything nearby is stale, which the index cannot search past
        cosines[:, list(stale)] = -np.inf
        return best(cosines, k)


def best(cosines: Vectors, k: int) -> tuple[Places, Vectors]:
    """Columns and values of the `k` largest in each row of (Q, N), in order; -1 if they are not finite."""
    k = min(k, cosines.shape[1])
    places = np.argpartition(-cosines, k - 1, axis=1)[:, :k] if k else np.zeros((len(cosines), 0), np.int64)
    order = np.argsort(-np.take_along_axis(cosines, places, 1), axis=1, kind="stable")
    places = np.take_along_axis(places, order, 1)
    values = np.take_along_axis(cosines, places, 1)
    return np.where(np.isfinite(values), places, -1), values


def normalized(z: Vectors) -> Vectors:
    lengths = np.linalg.norm(z, axis=1, keepdims=True)
    return np.ascontiguousarray(z / np.where(lengths > 0, lengths, 1), dtype=np.float32)

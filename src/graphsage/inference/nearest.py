"""Nearest nodes by cosine: exact while small, an HNSW index (faiss) above, with its recall measured."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from graphsage.errors import ConfigError

EXACT_UP_TO = 100_000
_PROBES = 200  # queries on which the recall of an approximate index is measured
_BLOCK = 1 << 16


@dataclass(frozen=True)
class Nearest:
    """`rows` (Q, k) of the table, best first, and their cosines (Q, k). `recall` is 1 where the search is exact."""

    rows: Tensor
    cosines: Tensor
    recall: float


def nearest(table: Tensor, queries: Tensor, k: int, *, exact_up_to: int = EXACT_UP_TO) -> Nearest:
    """The `k` rows of `table` (N, D) closest to each of `queries` (Q, D) by cosine.

    Above `exact_up_to` rows an HNSW index answers, and `recall` is the share of true neighbors it finds, measured on a
    sample of the table against the exact search.
    """
    if k < 1:
        raise ConfigError(f"k must be at least 1; got {k}")
    k = min(k, len(table))
    unit, asked = F.normalize(table.float(), dim=1), F.normalize(queries.float(), dim=1)
    if len(table) <= exact_up_to:
        return Nearest(*_exact(unit, asked, k), recall=1.0)
    index = _hnsw(unit)
    probes = unit[torch.linspace(0, len(unit) - 1, _PROBES).long()]
    truth, found = _exact(unit, probes, k)[0], _ask(index, probes, k)[0]
    hits = (truth[:, :, None] == found[:, None, :]).any(dim=2)
    return Nearest(*_ask(index, asked, k), recall=float(hits.float().mean()))


def _exact(unit: Tensor, asked: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Block by block, keeping the best k so far."""
    best = asked.new_full((len(asked), 0), 0.0)
    rows = torch.zeros(len(asked), 0, dtype=torch.int64)
    for start in range(0, len(unit), _BLOCK):
        cosines = asked @ unit[start : start + _BLOCK].t()
        here = torch.arange(start, start + cosines.shape[1]).expand(len(asked), -1)
        best, rows = torch.cat([best, cosines], dim=1), torch.cat([rows, here], dim=1)
        best, order = best.topk(min(k, best.shape[1]), dim=1)
        rows = rows.gather(1, order)
    return rows, best


def _hnsw(unit: Tensor) -> object:
    try:
        import faiss
    except ImportError:
        raise ConfigError(
            f"searching more than {EXACT_UP_TO:,} nodes needs faiss: pip install 'graphsage[search]'"
        ) from None
    index = faiss.IndexHNSWFlat(unit.shape[1], 32, faiss.METRIC_INNER_PRODUCT)
    index.hnsw.efConstruction, index.hnsw.efSearch = 100, 128
    index.add(unit.numpy())
    return index


def _ask(index: object, asked: Tensor, k: int) -> tuple[Tensor, Tensor]:
    cosines, rows = index.search(asked.numpy(), k)  # type: ignore[attr-defined]
    return torch.from_numpy(rows), torch.from_numpy(cosines)

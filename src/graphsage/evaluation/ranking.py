"""How well scores rank the true partners of each query among all candidates: MRR, hits@k and recall@k."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from graphsage.errors import DataError

Array = npt.NDArray[Any]
Scores = Callable[[Array], Array]
"""Rows of queries (Q,) -> their scores for all candidates (Q, C)."""

CUTOFFS = (10, 50)
_CELLS = 1 << 24  # scores that are in memory at once


@dataclass(frozen=True)
class Ranking:
    """Means over the queries that have a partner to find."""

    mrr: float
    """1 / the rank of the best partner."""
    hits: dict[int, float]
    """Share of queries with at least one partner among the first k."""
    recall: dict[int, float]
    """Share of a query's partners that are among the first k."""
    queries: int


def ranks(scores: Scores, partners: sparse.csr_array, known: sparse.csr_array, seed: int = 0) -> Array:
    """The rank of each stored pair of `partners` (Q, C), from 1 on, in the order of its rows.

    Candidates in `known` (Q, C) are left out, and so are a query's other partners: the rank says how many wrong
    candidates stand before this one. Candidates of equal score stand in an order drawn from the seed, the same for all
    queries: a method that gives all candidates one score ranks them at random.
    """
    _check(partners, known)
    queries, candidates = partners.shape
    order = np.random.default_rng(seed).permutation(candidates)
    place = np.argsort(order)
    found = np.empty(partners.nnz, np.int64)
    step = max(1, _CELLS // candidates)
    for start in range(0, queries, step):
        rows = np.arange(start, min(start + step, queries))
        made = np.array(scores(rows), dtype=np.float64)
        if made.shape != (len(rows), candidates):
            raise DataError(f"scores must have shape {(len(rows), candidates)}; got {made.shape}")
        if np.isnan(made).any():
            raise DataError(f"the score of query {rows[np.isnan(made).any(axis=1)][0]} is not a number")
        for row, of_query in zip(rows, made, strict=True):
            pairs = slice(partners.indptr[row], partners.indptr[row + 1])
            true = partners.indices[pairs]
            wrong = np.ones(candidates, bool)
            wrong[true] = False
            wrong[known.indices[known.indptr[row] : known.indptr[row + 1]]] = False
            others = np.flatnonzero(wrong[order])  # places of wrong candidates, ascending
            their = of_query[order[others]]
            for pair, score, at in zip(range(pairs.start, pairs.stop), of_query[true], place[true], strict=True):
                equal_before = (their[: np.searchsorted(others, at)] == score).sum()
                found[pair] = 1 + (their > score).sum() + equal_before
    return found


def ranking(
    scores: Scores,
    partners: sparse.csr_array,
    known: sparse.csr_array,
    cutoffs: Sequence[int] = CUTOFFS,
    seed: int = 0,
) -> Ranking:
    """MRR, hits@k and recall@k of `scores`; queries without a partner do not count.

    `ranks` compares each partner with wrong candidates only; among the first k of a list stand right ones too, so
    a partner's place in the list is its rank plus the number of better partners.
    """
    found = ranks(scores, partners, known, seed)
    sizes = np.diff(partners.indptr)
    asked = np.flatnonzero(sizes)
    if not len(asked):
        raise DataError("no query has a partner to find; check the pairs that are held out")
    places = []
    for query in asked:
        own = np.sort(found[partners.indptr[query] : partners.indptr[query + 1]])
        places.append(own + np.arange(len(own)))
    return Ranking(
        mrr=float(np.mean([1 / own[0] for own in places])),
        hits={k: float(np.mean([own[0] <= k for own in places])) for k in cutoffs},
        recall={k: float(np.mean([(own <= k).mean() for own in places])) for k in cutoffs},
        queries=len(asked),
    )


def _check(partners: sparse.csr_array, known: sparse.csr_array) -> None:
    if partners.shape != known.shape:
        raise DataError(f"held-out and known pairs must have one shape; got {partners.shape} and {known.shape}")
    both = partners.astype(bool).multiply(known.astype(bool)).tocoo()
    if both.nnz:
        row, column = int(both.coords[0][0]), int(both.coords[1][0])
        raise DataError(f"query {row} has candidate {column} among its known and among its held-out partners")

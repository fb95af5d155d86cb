"""Ranks of held-out links, worked out by hand and against a sorted list."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from graphsage.errors import DataError
from graphsage.evaluation.ranking import ranking, ranks


def pairs(shape: tuple[int, int], *found: tuple[int, int]) -> sparse.csr_array:
    made = sparse.lil_array(shape, dtype=np.float64)
    for row, column in found:
        made[row, column] = 1
    return sparse.csr_array(made)


def table(*rows: list[float]):  # type: ignore[no-untyped-def]
    return lambda queries: np.array(rows, dtype=np.float64)[queries]


def test_worked_out_by_hand() -> None:
    """Query 0: partners 1 and 4, known 0. Wrong candidates: 2 (0.9) and 3 (0.3). Query 1 has nothing to find."""
    scores = table([1.0, 0.8, 0.9, 0.3, 0.1], [0.0] * 5)
    partners, known = pairs((2, 5), (0, 1), (0, 4)), pairs((2, 5), (0, 0))
    assert ranks(scores, partners, known).tolist() == [2, 3]
    found = ranking(scores, partners, known, cutoffs=(1, 2, 3, 4))
    assert (found.mrr, found.queries) == (0.5, 1)
    assert found.hits == {1: 0.0, 2: 1.0, 3: 1.0, 4: 1.0}
    assert found.recall == {1: 0.0, 2: 0.5, 3: 0.5, 4: 1.0}  # the list is 2, 1, 3, 4: partners at places 2 and 4


def test_scores_without_information_rank_at_random() -> None:
    """Ties must not be won by the candidate with the lower number, nor by the true one."""
    partners = sparse.csr_array(np.eye(200))
    found = ranking(lambda rows: np.zeros((len(rows), 200)), partners, pairs((200, 200)), cutoffs=(100,))
    assert found.hits[100] == pytest.approx(0.5, abs=0.01)
    assert found.mrr == pytest.approx((1 / np.arange(1, 201)).mean(), rel=0.01)


@given(st.integers(0, 10_000))
def test_places_are_those_of_a_sorted_list(seed: int) -> None:
    rng = np.random.default_rng(seed)
    kind = rng.choice(3, p=[0.6, 0.2, 0.2], size=(4, 12))
    values = rng.permuted(np.tile(np.arange(12.0), (4, 1)), axis=1)
    partners, known = sparse.csr_array((kind == 1) * 1.0), sparse.csr_array((kind == 2) * 1.0)
    if not partners.nnz:
        return
    found = ranking(lambda rows: values[rows], partners, known, cutoffs=(3,), seed=seed)
    first, within, best = [], [], []
    for row in range(4):
        if not (kind[row] == 1).any():
            continue
        listed = [c for c in np.argsort(-values[row]) if kind[row, c] != 2]
        own = [place for place, c in enumerate(listed, start=1) if kind[row, c] == 1]
        best.append(1 / own[0])
        first.append(own[0] <= 3)
        within.append(np.mean([place <= 3 for place in own]))
    assert found.mrr == pytest.approx(np.mean(best))
    assert (found.hits[3], found.recall[3]) == pytest.approx((np.mean(first), np.mean(within)))


def test_what_cannot_be_ranked_is_refused() -> None:
    one, none = pairs((1, 3), (0, 1)), pairs((1, 3))
    with pytest.raises(DataError, match="query 0 has candidate 1 among its known and among its held-out"):
        ranks(table([0.0, 1.0, 2.0]), one, one)
    with pytest.raises(DataError, match="score of query 0 is not a number"):
        ranks(table([0.0, float("nan"), 2.0]), one, none)
    with pytest.raises(DataError, match=r"must have shape \(1, 3\); got \(1, 2\)"):
        ranks(table([0.0, 1.0]), one, none)
    with pytest.raises(DataError, match="one shape"):
        ranks(table([0.0, 1.0]), one, pairs((2, 3)))
    with pytest.raises(DataError, match="no query has a partner"):
        ranking(table([0.0, 1.0, 2.0]), none, none)

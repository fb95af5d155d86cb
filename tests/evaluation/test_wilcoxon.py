import math

import hypothesis.strategies as st
import pytest
import scipy.stats
from hypothesis import given, settings

from graphsage.errors import DataError
from graphsage.evaluation.wilcoxon import signed_rank

TABLE_1 = {  # citation, Reddit, PPI; unsupervised and supervised
    "gcn": (0.742, 0.772, 0.908, 0.930, 0.465, 0.500),
    "mean": (0.778, 0.820, 0.897, 0.950, 0.486, 0.598),
    "lstm": (0.788, 0.832, 0.907, 0.954, 0.482, 0.612),
    "pool": (0.798, 0.839, 0.892, 0.948, 0.502, 0.600),
}


@pytest.mark.parametrize(
    ("better", "worse", "t", "p"),
    [
        ("lstm", "gcn", 1.0, 0.02),
        ("pool", "gcn", 1.0, 0.02),
        ("mean", "gcn", 1.0, 0.02),
        ("lstm", "mean", 1.5, 0.03),
        ("pool", "mean", 4.5, 0.10),
        ("lstm", "pool", 10.0, 0.46),
    ],
)
def test_it_gives_the_six_published_pairs(better: str, worse: str, t: float, p: float) -> None:
    got_t, got_p = signed_rank(TABLE_1[better], TABLE_1[worse])
    assert (got_t, round(got_p, 2)) == (t, p)


def test_three_differences_worked_out_by_hand() -> None:
    t, p = signed_rank([3.0, 5.0, 1.0], [1.0, 1.0, 2.0])  # differences 2, 4, -1: ranks 2, 3, 1
    assert t == 1.0
    assert p == pytest.approx(0.5 * math.erfc(2.0 / math.sqrt(3.5) / math.sqrt(2)))


whole = st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), min_size=2, max_size=30)


@given(whole.filter(lambda pairs: any(a != b for a, b in pairs)))
@settings(deadline=None)
def test_it_is_half_of_scipys_two_sided_normal_approximation(pairs: list[tuple[int, int]]) -> None:
    a, b = [float(x) for x, _ in pairs], [float(y) for _, y in pairs]
    expected = scipy.stats.wilcoxon(a, b, correction=False, method="approx")
    t, p = signed_rank(a, b)
    assert t == expected.statistic
    assert p == pytest.approx(expected.pvalue / 2)
    assert signed_rank(b, a) == (t, p)


def test_nothing_to_compare_is_refused() -> None:
    with pytest.raises(DataError, match="same score"):
        signed_rank([0.5, 0.6], [0.5, 0.6])
    with pytest.raises(DataError, match="same settings"):
        signed_rank([0.5], [0.5, 0.6])
    with pytest.raises(DataError, match="no scores"):
        signed_rank([], [])
    with pytest.raises(DataError, match="must be numbers"):
        signed_rank(["a"], ["b"])  # type: ignore[list-item]


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_scores_that_are_no_numbers_are_refused(value: float) -> None:
    with pytest.raises(DataError, match="finite"):
        signed_rank([value, 0.5], [0.4, 0.6])

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from graphsage.inference.nearest import NearestIndex, normalized


def vectors(seed: int, count: int, dim: int = 6) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(count, dim)).astype(np.float32)


class Blind:
    """An index that finds the vector itself, and then others at random."""

    def __init__(self, unit: np.ndarray) -> None:
        self.unit = unit

    def search(self, asked: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        own = (asked @ self.unit.T).argmax(axis=1)[:, None]
        places = np.concatenate([own, (own + 1000 + np.arange(k - 1)) % len(self.unit)], axis=1)
        return np.ones((len(asked), k), np.float32), places


@given(st.integers(1, 60), st.integers(1, 5), st.integers(1, 8), st.integers(0, 999))
def test_the_exact_search_is_a_sort_by_cosine(n: int, q: int, k: int, seed: int) -> None:
    index, asked = NearestIndex.build(vectors(seed, n)), normalized(vectors(seed + 1, q))
    places, cosines = index.search(asked, k)
    every = asked @ index.unit.T
    np.testing.assert_allclose(cosines, -np.sort(-every, axis=1)[:, :k], atol=1e-6)
    np.testing.assert_array_equal(cosines, np.take_along_axis(every, places, 1))
    assert index.recall == 1.0


def test_a_large_table_is_searched_by_an_index_whose_recall_is_measured() -> None:
    z = vectors(0, 3000)
    exact, indexed = NearestIndex.build(z), NearestIndex.build(z, exact_up_to=100)
    assert indexed.approximate is not None
    assert 0.9 < indexed.recall <= 1.0
    found, truth = (index.search(normalized(vectors(1, 50)), 5)[0] for index in (indexed, exact))
    assert np.mean([len(set(a) & set(b)) / 5 for a, b in zip(found.tolist(), truth.tolist(), strict=True)]) > 0.9
    blind = NearestIndex(indexed.unit, Blind(indexed.unit))
    assert blind.measured_recall() < 0.05, "a vector counts as its own neighbor"

"""The search index that follows a graph: base + delta answer as one exact search over the nodes that there are."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphsage.inference.nearest import NearestIndex, normalized
from graphsage.serving.index import SearchIndex

D = 6


def vectors(seed: int, count: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(count, D)).astype(np.float32)


def slowly(nodes: dict[str, np.ndarray], z: np.ndarray, k: int, without: str | None) -> list[str]:
    asked = normalized(z[None])[0]
    cosines = {id: float(normalized(x[None])[0] @ asked) for id, x in nodes.items() if id != without}
    return sorted(cosines, key=lambda id: -cosines[id])[:k]


@given(st.integers(0, 12), st.lists(st.tuples(st.integers(0, 15), st.booleans()), max_size=12), st.integers(1, 20))
def test_it_equals_a_slow_search_whatever_came_and_went(start: int, changes: list[tuple[int, bool]], k: int) -> None:
    nodes = {f"n{i}": x for i, x in enumerate(vectors(0, start))}
    index = SearchIndex(list(nodes), NearestIndex.build(vectors(0, start), exact_up_to=100))
    for number, (i, stays) in enumerate(changes):
        id = f"n{i}"
        if stays:
            nodes[id] = vectors(100 + number, 1)[0]
            index.put(id, nodes[id])
        else:
            nodes.pop(id, None)
            index.remove(id)
    for without in (None, "n1"):
        asked = vectors(7, 1)[0]
        found = index.search(asked, k, without)
        assert [id for id, _ in found] == slowly(nodes, asked, k, without)
        assert [c for _, c in found] == sorted((c for _, c in found), reverse=True)
    together = index.search_all(vectors(8, 3), k, [None, "n1", "n2"])
    for z, own, found in zip(vectors(8, 3), [None, "n1", "n2"], together, strict=True):
        assert [id for id, _ in found] == slowly(nodes, z, k, own)


def test_above_the_limit_hnsw_answers_and_its_recall_is_measured() -> None:
    z = vectors(3, 3000)
    ids = [f"n{i}" for i in range(3000)]
    index = SearchIndex(ids, NearestIndex.build(z, exact_up_to=1000))
    assert index.base.approximate is not None
    assert 0.9 < index.recall <= 1
    exact = SearchIndex(ids, NearestIndex.build(z, exact_up_to=5000))
    assert exact.recall == 1
    hits = [len({id for id, _ in index.search(x, 10)} & {id for id, _ in exact.search(x, 10)}) for x in vectors(4, 50)]
    assert np.mean(hits) / 10 == pytest.approx(index.recall, abs=0.08)
    near = index.search(z[5], 3)
    assert near[0][0] == "n5"
    for id, _ in near:
        index.remove(id)
    assert not {id for id, _ in near} & {id for id, _ in index.search(z[5], 3)}
    index.put("new", z[5])
    assert index.search(z[5], 1)[0] == ("new", pytest.approx(1, abs=1e-5))


def test_many_stale_neighbors_hide_no_fresh_one() -> None:
    z = np.concatenate([vectors(1, 1) + 0.01 * vectors(2, 500), vectors(3, 700)]).astype(np.float32)
    ids = [f"n{i}" for i in range(len(z))]
    index = SearchIndex(ids, NearestIndex.build(z, exact_up_to=1000))
    exact = SearchIndex(ids, NearestIndex.build(z, exact_up_to=5000))
    for i in range(500):  # everything near the first ones
        index.remove(f"n{i}")
        exact.remove(f"n{i}")
    assert index.base.approximate is not None
    assert index.search(z[0], 10) == exact.search(z[0], 10)


def test_zero_vectors_are_near_nobody() -> None:
    z = np.stack([np.zeros(D), np.ones(D)]).astype(np.float32)
    index = SearchIndex(["a", "b"], NearestIndex.build(z))
    assert dict(index.search(np.zeros(D, np.float32), 2)) == {"a": 0, "b": 0}

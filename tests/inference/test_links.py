"""Scores of pairs, and the best targets of a node."""

from functools import lru_cache

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from graphsage.errors import ConfigError, DataError, GraphError
from graphsage.graph.graph import Graph
from graphsage.graph.link_split import graph_links
from graphsage.inference import links as module
from graphsage.inference.links import LinkVectors, known_links
from graphsage.inference.model import Model
from graphsage.training.train import train
from planted import SMALL, planted_graph

N = 120
FORMS = {
    "mean": {},
    "pool, popular": {"aggregator": "pool", "popularity": True, "decoder": "mlp"},
    "gcn": {"aggregator": "gcn", "decoder": "bilinear"},
    "lstm": {"aggregator": "lstm"},
    "tower": {"source_encoder": "features", "popularity": True},
}


@lru_cache
def model(form: str, directed: bool = False) -> Model:
    graph = planted_graph(N)
    if directed:
        graph = Graph.from_edges(
            graph_links(graph), N, features=graph.features, direction="out" if form == "tower" else "in"
        )
    return train(graph, task="links", device="cpu", **{**SMALL, "epochs": 1}, **FORMS[form])


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(list(FORMS)),
    st.booleans(),
    st.sampled_from(["exact", "sampled"]),
    st.integers(0, N - 1),
    st.integers(0, N - 1),
    st.integers(0, 2**32 - 1),
)
def test_an_edge_never_changes_its_own_score(form: str, directed: bool, how: str, a: int, b: int, seed: int) -> None:
    """For a fixed model, to the bit: without the edge, with it, and with its reverse."""
    if a == b:
        return
    own = model(form, directed)
    known = graph_links(own.run_graph())
    some = torch.randperm(len(known), generator=torch.Generator().manual_seed(seed))[:200]
    edges = known[some]
    edges = edges[~((edges == torch.tensor([a, b])).all(1) | (edges == torch.tensor([b, a])).all(1))]
    scores = set()
    for more in ([], [[a, b]], [[b, a]], [[a, b], [b, a]]):
        with_it = torch.cat([edges, torch.tensor(more, dtype=torch.int64).view(-1, 2)])
        graph = Graph.from_edges(with_it, N, features=own.run_graph().features, direction=own.run_graph().direction)
        scores.add(own.score([[a, b]], graph, inference=how).item())
    assert len(scores) == 1


def test_other_edges_do_change_it() -> None:
    graph = planted_graph(N)
    a, b, c = 0, 1, 2
    edges = graph_links(graph)
    more = Graph.from_edges(torch.cat([edges, torch.tensor([[a, c], [b, c]])]), N, features=graph.features)
    own = model("mean")
    assert own.score([[a, b]], more).item() != own.score([[a, b]], graph).item()


@pytest.mark.parametrize("form", list(FORMS))
def test_recommendations_are_the_best_scores_of_unknown_links(form: str) -> None:
    own = model(form)
    graph = own.run_graph()
    found = own.recommend([3, 50], k=N)
    known = {(int(a), int(b)) for a, b in known_links(graph)}
    for place, source in enumerate((3, 50)):
        rows = found.rows[place][found.rows[place] >= 0]
        assert set(rows.tolist()) == {v for v in range(N) if v != source and (source, v) not in known}
        scores = own.score([[source, row] for row in rows])
        np.testing.assert_allclose(found.scores[place][: len(rows)], scores.numpy(), rtol=1e-4, atol=1e-4)
        assert (np.diff(found.scores[place][: len(rows)]) <= 0).all()
    assert found.recall == 1.0
    some = own.recommend([50], k=5)
    assert some.rows.tolist() == found.rows[1:, :5].tolist()


def test_new_nodes_ask_by_their_features() -> None:
    own = model("tower")
    x = own.run_graph().features
    new = {"id": [500, 501], "features": x[[7, 8]].tolist()}
    graph = Graph.from_edges(graph_links(planted_graph(N)), N, features=x, ids=list(range(N)))
    found = own.recommend(k=4, graph=graph, new_nodes=new)
    assert found.rows.shape == (2, 4)
    assert (found.rows < N).all()
    z = LinkVectors.of(own, graph, known_links(graph))
    np.testing.assert_allclose(found.scores[0], z.scores(np.array([7]), found.rows[0])[0], rtol=1e-5)


@pytest.mark.parametrize("form", ["mean", "tower", "gcn"])
def test_the_index_finds_what_the_exact_search_finds(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("faiss")
    own = model(form)
    exact = own.recommend(list(range(20)), k=5)
    monkeypatch.setattr(module, "EXACT_UP_TO", 10)
    build = module.NearestIndex.build
    monkeypatch.setattr(module.NearestIndex, "build", staticmethod(lambda z: build(z, 10)))
    found = own.recommend(list(range(20)), k=5)
    assert 0.9 < found.recall <= 1
    same = (found.rows[:, :, None] == exact.rows[:, None, :]).any(axis=2).mean()
    assert same > 0.9
    np.testing.assert_allclose(found.scores[:, 0], exact.scores[:, 0], rtol=1e-3, atol=1e-3)


def test_pairs_may_be_a_table_of_ids() -> None:
    own = model("mean")
    graph = own.run_graph()
    named = Graph.from_edges(graph_links(graph), N, features=graph.features, ids=[f"n{row}" for row in range(N)])
    by_id = own.score({"source": ["n4", "n9"], "target": ["n5", "n1"]}, named)
    assert torch.equal(by_id, own.score([[4, 5], [9, 1]], named))
    assert own.score({"source": [4], "target": [5]}).shape == (1,)


@pytest.mark.parametrize(
    ("pairs", "error", "sentence"),
    [
        ([[0, 0]], DataError, "pair 1 joins 0 with itself"),
        ([[0, 1], [2, 2]], DataError, "pair 2 joins 2 with itself"),
        ([[0, N]], DataError, f"node {N} is not in the graph"),
        ([0, 1], DataError, r"row numbers, \(P, 2\)"),
        ({"source": [0], "target": [999]}, DataError, "1 pair names a node that the graph does not have"),
        ({"source": [], "target": []}, DataError, "no row"),
        ({"from": [0], "where": [1]}, DataError, "needs the columns source and target"),
    ],
)
def test_pairs_that_are_none_are_refused(pairs: object, error: type, sentence: str) -> None:
    with pytest.raises(error, match=sentence):
        model("mean").score(pairs)


def test_questions_that_have_no_answer_are_refused() -> None:
    own, other = model("mean"), train(planted_graph(), device="cpu", **{**SMALL, "epochs": 1})
    with pytest.raises(DataError, match="was not trained for links"):
        other.recommend([0])
    with pytest.raises(DataError, match="was not trained for links"):
        other.score([[0, 1]])
    with pytest.raises(ConfigError, match="one of them"):
        own.recommend()
    with pytest.raises(ConfigError, match="at least 1"):
        own.recommend([0], k=0)
    with pytest.raises((DataError, GraphError), match="not in the graph"):
        own.recommend([N])

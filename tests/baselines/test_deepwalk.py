import dataclasses

import numpy as np
import pytest
import torch

from graphsage.baselines.deepwalk import DeepWalk, DeepWalkConfig, _blocks, embed_new, train_deepwalk
from graphsage.errors import ConfigError, DataError
from graphsage.evaluation.probe import Probe
from graphsage.graph.graph import Graph
from graphsage.graph.split import Split, training_graph
from graphsage.kernels.random import Stream
from graphsage.sampling.walks import walk_pairs
from planted import planted_graph, planted_split

SMALL = DeepWalkConfig(dim=8, lr=2.0, num_walks=10, passes=3, batch_size=16, num_negatives=5)


@pytest.fixture(scope="module")
def trained() -> tuple[Graph, Split, DeepWalk]:
    graph = planted_graph(200)
    split = planted_split(graph)
    return graph, split, train_deepwalk(training_graph(graph, split), split.nodes("train"), SMALL)


def accuracy(model: DeepWalk, graph: Graph, split: Split, part: str) -> float:
    assert graph.labels is not None
    z, labels = model.embeddings.numpy(), graph.labels.numpy()
    train, asked = split.nodes("train").numpy(), split.nodes(part).numpy()
    return float(np.mean(Probe().fit(z[train], labels[train]).predict(z[asked]) == labels[asked]))


def test_the_appendix_is_the_default() -> None:
    config = DeepWalkConfig()
    assert (config.dim, config.passes, config.online_passes, config.batch_size) == (256, 5, 1, 64)
    assert (config.num_walks, config.walk_length, config.num_negatives) == (50, 5, 20)


def test_it_finds_the_planted_kinds_from_edges_alone(trained: tuple[Graph, Split, DeepWalk]) -> None:
    graph, split, model = trained
    assert accuracy(model, graph, split, "train") > 0.95


@pytest.mark.parametrize("contexts", ["trained", "all"])
def test_the_online_step_embeds_new_nodes_and_moves_no_old_one(
    trained: tuple[Graph, Split, DeepWalk], contexts: str
) -> None:
    graph, split, model = trained
    new = torch.cat([split.nodes("val"), split.nodes("test")])
    later = embed_new(model, graph, new, dataclasses.replace(SMALL, contexts=contexts))
    old = split.nodes("train")
    assert torch.equal(later.target[old], model.target[old])
    assert torch.equal(later.context[old], model.context[old])
    assert not torch.equal(later.target[new], model.target[new])
    assert bool(later.known.all())
    assert accuracy(later, graph, split, "test") > 0.85


def test_the_online_step_makes_one_pass_unless_asked_for_more(trained: tuple[Graph, Split, DeepWalk]) -> None:
    """The paper's five passes are those of training."""
    graph, split, model = trained
    new = split.nodes("test")
    one, same, five = (
        embed_new(model, graph, new, dataclasses.replace(SMALL, **passes)).target
        for passes in ({}, {"passes": 1}, {"online_passes": 5})
    )
    assert torch.equal(one, same)
    assert not torch.equal(one, five)


def test_a_node_without_a_walk_gets_the_zero_vector() -> None:
    """Not its random initial one."""
    graph = Graph.from_edges([(0, 1), (1, 2), (0, 2), (2, 4)], 6)
    split = Split.masks(torch.arange(6) < 4)
    model = train_deepwalk(training_graph(graph, split), torch.arange(4), SMALL)
    assert model.known.tolist() == [True, True, True, False, False, False]  # node 3 is isolated
    assert not bool(model.embeddings[3].any())
    later = embed_new(model, graph, torch.tensor([4, 5]), SMALL)
    assert later.known.tolist() == [True, True, True, False, True, False]
    assert bool(later.embeddings[4].any())
    assert not bool(later.embeddings[5].any())


def test_contexts_of_new_nodes_are_trained_only_where_all_may_be_contexts(
    trained: tuple[Graph, Split, DeepWalk],
) -> None:
    graph, split, model = trained
    new = torch.cat([split.nodes("val"), split.nodes("test")])
    restricted = embed_new(model, graph, new, SMALL)
    free = embed_new(model, graph, new, dataclasses.replace(SMALL, contexts="all"))
    assert not bool(restricted.context[new].any())
    assert bool(free.context[new].any())


def test_every_valid_pair_comes_once_in_each_pass() -> None:
    graph = planted_graph(40)
    walks = walk_pairs(graph, torch.arange(40), seed=3, num_walks=2)
    allowed = torch.arange(40) % 3 > 0
    got = [
        (a, b)
        for u, v in _blocks(walks, Stream(0, "o").key, 16, allowed)
        for a, b in zip(u.flatten().tolist(), v.flatten().tolist(), strict=True)
    ]
    u, v, valid = walks.pairs(torch.arange(walks.count))
    keep = valid & allowed[v]
    assert sorted(got) == sorted(zip(u[keep].tolist(), v[keep].tolist(), strict=True))
    assert got != list(zip(u[keep].tolist(), v[keep].tolist(), strict=True))


def test_the_same_seed_gives_the_same_vectors_and_another_seed_others() -> None:
    graph = planted_graph(40)
    tiny = dataclasses.replace(SMALL, passes=1, num_walks=2)
    first, again, other = (
        train_deepwalk(graph, torch.arange(40), dataclasses.replace(tiny, seed=seed)).target for seed in (1, 1, 2)
    )
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_several_graphs_are_refused_with_the_papers_reason() -> None:
    graph = planted_graph(40)
    several = graph.replace(graph_number=torch.arange(40) % 2)
    with pytest.raises(DataError, match="rotated by any orthogonal matrix"):
        train_deepwalk(several, torch.arange(40), SMALL)


def test_a_graph_that_no_edge_joins_to_the_trained_one_is_refused_too() -> None:
    known = torch.arange(6) < 3
    apart = Graph.from_edges([(0, 1), (1, 2), (3, 4), (4, 5)], 6)
    model = train_deepwalk(training_graph(apart, Split.masks(known)), torch.arange(3), SMALL)
    with pytest.raises(DataError, match="Appendix D"):
        embed_new(model, apart, torch.arange(3, 6), SMALL)
    joined = Graph.from_edges([(0, 1), (1, 2), (3, 4), (4, 5), (2, 3)], 6)
    assert embed_new(model, joined, torch.arange(3, 6), SMALL).known.all()


def test_nodes_that_were_trained_are_not_new(trained: tuple[Graph, Split, DeepWalk]) -> None:
    graph, split, model = trained
    with pytest.raises(DataError, match="trained already"):
        embed_new(model, graph, split.nodes("train")[:1], SMALL)


@pytest.mark.parametrize("contexts", ["trained", "all"])
def test_nodes_that_the_training_graph_did_not_have_are_embedded_as_if_it_had_had_them(contexts: str) -> None:
    graph, config = planted_graph(60), dataclasses.replace(SMALL, contexts=contexts)
    split = Split(torch.where(torch.arange(60) < 50, 0, 2).to(torch.uint8))
    seen, old, new = training_graph(graph, split), torch.arange(50), torch.arange(50, 60)
    small = seen.from_edges(torch.stack([seen.edge_rows, seen.indices.long()], dim=1), 50)
    assert small.num_stored_edges == seen.num_stored_edges
    wide, narrow = (train_deepwalk(each, old, config) for each in (seen, small))
    one, two = (embed_new(model, graph, new, config) for model in (wide, narrow))
    assert torch.equal(one.embeddings, two.embeddings)
    assert torch.equal(one.known, two.known)
    assert narrow.target.shape == (50, 8)  # what was trained stays as it is


def test_nodes_or_vectors_that_do_not_fit_are_named(trained: tuple[Graph, Split, DeepWalk]) -> None:
    graph, split, model = trained
    for node in (-1, 200):
        with pytest.raises(DataError, match="rows of the graph, 0 to 199"):
            train_deepwalk(graph, torch.tensor([node]), SMALL)
    with pytest.raises(DataError, match="vectors of 8 numbers for 200 nodes"):
        embed_new(model, graph, split.nodes("test"), dataclasses.replace(SMALL, dim=4))
    with pytest.raises(DataError, match="8 numbers and 60 nodes"):
        embed_new(model, planted_graph(60), torch.arange(3), SMALL)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"lr": 0.0}, "lr must be above 0"),
        ({"lr": float("inf")}, "lr must be above 0 and finite"),
        ({"passes": 0}, "passes must be at least 1"),
        ({"contexts": "some"}, "contexts must be one of trained, all"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        DeepWalkConfig(**settings)  # type: ignore[arg-type]

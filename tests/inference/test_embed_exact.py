"""Exact inference is Algorithm 1, for any nodes and in blocks of any size."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

import graphsage as gs
from algorithms import algorithm_1, inputs
from encoders import NAMES, encoder_of, worlds
from graphs import graphs, neighbor_lists, normal, regular, star
from graphsage.features.degree import degree_features
from graphsage.graph.graph import Graph
from graphsage.inference.embed import blocks, embed_exact
from graphsage.kernels import buffers
from graphsage.kernels.buffers import Buffers
from graphsage.kernels.random import Stream
from graphsage.model.encoder import Encoder, EncoderConfig
from graphsage.sampling.minibatch import whole_graph, whole_minibatch
from planted import SMALL, planted_graph, planted_split

World = tuple[Encoder, Graph, list[Tensor]]


def test_kept_features_are_the_scaled_ones_and_no_classifier_reads_them() -> None:
    graph = planted_graph()
    split = planted_split(graph)
    plain = gs.train(graph, split, **SMALL, degree_features=True)
    kept = gs.train(graph, split, **SMALL, degree_features=True, keep_features=True)
    z, wide = plain.embed(graph), kept.embed(graph)
    assert (plain.dim, kept.dim) == (8, 8 + 6 + 17)
    assert torch.equal(wide[:, :8], z)
    torch.testing.assert_close(plain.embed(graph, [5, 3], keep_features=True), wide[[5, 3]])
    assert torch.equal(kept.embed(graph, keep_features=False), z)
    x = torch.cat([graph.features, degree_features(graph.degrees)], dim=1)
    expected = (x - kept.encoder.shift) * kept.encoder.scale / x.shape[1] ** 0.5
    torch.testing.assert_close(wide[:, 8:], expected)
    assert torch.equal(plain.predict_proba(graph), kept.predict_proba(graph))


def slow(world: World, seed: int) -> np.ndarray:
    encoder, graph, tables = world
    keys = Stream(seed, "exact").keys(torch.arange(graph.num_nodes)).tolist()
    return algorithm_1(encoder, inputs(encoder, tables), neighbor_lists(graph), keys)


@settings(max_examples=80)
@given(worlds(), st.integers(1, 40), st.integers(0, 5))
def test_all_nodes_in_any_blocks_equal_algorithm_1(world: World, block_edges: int, seed: int) -> None:
    encoder, graph, tables = world
    z = embed_exact(encoder, graph, tables, seed=seed, block_edges=block_edges)
    np.testing.assert_allclose(z.numpy(), slow(world, seed), atol=2e-5, rtol=1e-4)


@settings(max_examples=80)
@given(worlds(), st.integers(1, 40), st.data())
def test_chosen_nodes_have_the_vectors_they_have_among_all(world: World, block_edges: int, data: st.DataObject) -> None:
    encoder, graph, tables = world
    some = data.draw(st.lists(st.integers(0, graph.num_nodes - 1), max_size=5))  # in any order, also twice
    z = embed_exact(encoder, graph, tables, torch.tensor(some, dtype=torch.int64), block_edges=block_edges)
    assert z.shape == (len(some), encoder.config.dim)
    np.testing.assert_allclose(z.numpy(), slow(world, 0)[some], atol=2e-5, rtol=1e-4)


@settings(max_examples=60)
@given(worlds(max_nodes=6, several=True))
def test_it_equals_the_plain_forward_with_the_same_keys(world: World) -> None:
    encoder, graph, tables = world
    keys = Stream(0, "exact").keys(torch.arange(graph.num_nodes))
    hoods = whole_graph(graph, encoder.config.num_layers, keys)
    full = encoder(torch.cat(tables, 1), hoods, torch.arange(graph.num_nodes))
    torch.testing.assert_close(embed_exact(encoder, graph, tables), full.detach(), atol=1e-5, rtol=1e-4)
    some = torch.arange(graph.num_nodes)[::2]
    torch.testing.assert_close(embed_exact(encoder, graph, tables, some), full.detach()[some], atol=1e-5, rtol=1e-4)


@given(graphs(), st.integers(1, 30))
def test_blocks_cover_every_row_once_within_the_limit(graph: Graph, limit: int) -> None:
    rows = torch.arange(graph.num_nodes)
    found = blocks(graph.degrees, limit)
    assert [row for start, stop in found for row in range(start, stop)] == rows.tolist()
    weights = (graph.degrees + 1).tolist()
    assert all(stop - start == 1 or sum(weights[start:stop]) <= limit for start, stop in found)


def test_only_nodes_near_enough_are_computed() -> None:
    path = Graph.from_edges([(v, v + 1) for v in range(9)], 10)
    batch = whole_minibatch(path, torch.tensor([0]), 3, lambda rows, k: rows)
    assert [hood.num_rows for (hood,) in batch.neighborhoods] == [3, 2, 1]
    assert batch.rows.tolist() == [0, 1, 2]
    cut = whole_minibatch(path, torch.tensor([0]), 3, lambda rows, k: rows, most=2)
    assert [hood.num_rows for (hood,) in cut.neighborhoods] == [2, 1]
    assert cut.rows.tolist() == [0, 1]  # node numbers: layer 1 is computed for every node


def test_what_lies_too_far_away_does_not_matter() -> None:
    path, x = Graph.from_edges([(v, v + 1) for v in range(9)], 10), normal(0, 10, 3)
    encoder = encoder_of(EncoderConfig(dim=4, num_layers=2), 3)
    other = x.clone()
    other[3:] = float("nan")
    chosen = torch.tensor([0])
    assert torch.equal(embed_exact(encoder, path, [other], chosen), embed_exact(encoder, path, [x], chosen))
    other[2] = float("nan")
    assert not torch.isfinite(embed_exact(encoder, path, [other], chosen)).all()


@pytest.mark.parametrize("name", NAMES)
def test_isolated_nodes_have_finite_vectors(name: str) -> None:
    encoder = encoder_of(EncoderConfig(aggregator=name, dim=4, hidden_dim=4), 3)
    lonely = Graph.from_edges([], 4)
    assert bool(torch.isfinite(embed_exact(encoder, lonely, [normal(0, 4, 3)])).all())


def test_another_seed_changes_the_lstm_and_nothing_else() -> None:
    graph, x = star(6), normal(0, 7, 3)
    for name in NAMES:
        encoder = encoder_of(EncoderConfig(aggregator=name, dim=4, hidden_dim=4, normalize="never"), 3, seed=3)
        a, b = (embed_exact(encoder, graph, [x], seed=seed) for seed in (0, 1))
        assert torch.equal(a, b) == (name != "lstm"), name


@pytest.mark.parametrize("training", [True, False])
def test_it_leaves_the_encoder_as_it_was_and_drops_nothing(training: bool) -> None:
    graph, x = star(6), normal(0, 7, 3)
    encoder = encoder_of(EncoderConfig(dim=4, dropout=0.5), 3)
    expected = embed_exact(encoder, graph, [x])
    encoder.train(training)
    z = embed_exact(encoder, graph, [x])
    assert encoder.training == training
    assert torch.equal(z, expected)
    assert not z.requires_grad


def test_progress_counts_up_to_all_rows_of_all_layers() -> None:
    seen: list[tuple[int, int]] = []
    encoder = encoder_of(EncoderConfig(dim=4), 3)
    embed_exact(
        encoder, star(6), [normal(0, 7, 3)], block_edges=4, on_block=lambda done, total: seen.append((done, total))
    )
    assert seen == sorted(seen)
    assert {total for _, total in seen} == {14}
    assert seen[-1][0] == 14


@pytest.mark.parametrize("name", NAMES)
def test_buffers_of_a_block_are_given_back(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the number of blocks, two layers take the same number of buffers."""
    taken: list[int] = []
    give = Buffers._fitting
    monkeypatch.setattr(Buffers, "_fitting", lambda self, size: (taken.append(len(self._buffers)), give(self, size))[1])
    monkeypatch.setattr(buffers, "SMALLEST", 1)
    encoder = encoder_of(EncoderConfig(aggregator=name, dim=4, hidden_dim=4), 3)
    embed_exact(encoder, regular(200, 4), [normal(0, 200, 3)], block_edges=20)
    assert max(taken, default=0) <= 6

"""The encoder equals the paper's Algorithms 1 and 2, written out node by node."""

import dataclasses

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from algorithms import algorithm_1, algorithm_2, inputs, released_tree
from encoders import NAMES, encoder_of, worlds
from graphs import SEEDS, neighbor_lists, normal, regular
from graphsage.errors import ConfigError
from graphsage.graph.build import from_edges
from graphsage.graph.graph import Graph
from graphsage.kernels.neighborhood import Minibatch
from graphsage.kernels.random import Stream
from graphsage.model.encoder import Encoder, EncoderConfig
from graphsage.sampling.minibatch import sample_minibatch, whole_graph

World = tuple[Encoder, Graph, list[Tensor]]
UNORDERED = tuple(n for n in NAMES if n != "lstm")  # reads neighbors in an order that the path to a node decides
every_aggregator = pytest.mark.parametrize("name", NAMES)


def keys_of(graph: Graph, seed: int = 0) -> Tensor:
    return Stream(seed, "test").keys(torch.arange(graph.num_nodes))


def algorithm_1_of(encoder: Encoder, tables: list[Tensor], graph: Graph, keys: Tensor) -> Tensor:
    z: Tensor = encoder(
        torch.cat(tables, 1), whole_graph(graph, encoder.config.num_layers, keys), torch.arange(len(keys))
    )
    return z


def algorithm_2_of(encoder: Encoder, tables: list[Tensor], batch: Minibatch) -> Tensor:
    z: Tensor = encoder(torch.cat(tables, 1), batch.neighborhoods, torch.arange(len(tables[0])))
    return z


def close(fast: Tensor, slow: np.ndarray) -> None:
    torch.testing.assert_close(fast.detach().double(), torch.from_numpy(slow), atol=2e-5, rtol=1e-4)


@settings(max_examples=120)
@given(worlds())
def test_full_equals_algorithm_1(world: World) -> None:
    encoder, graph, tables = world
    keys = keys_of(graph)
    slow = algorithm_1(encoder, inputs(encoder, tables), neighbor_lists(graph), keys.tolist())
    close(algorithm_1_of(encoder, tables, graph, keys), slow)


@pytest.mark.parametrize(("redraw", "slow"), [(True, algorithm_2), (False, released_tree)], ids=["paper", "released"])
@settings(max_examples=60)
@given(world=worlds(max_nodes=6), data=st.data())
def test_forward_equals_algorithm_2(redraw: bool, slow: object, world: World, data: st.DataObject) -> None:
    encoder, graph, tables = world
    depth = encoder.config.num_layers
    sizes = data.draw(st.lists(st.integers(1, 3), min_size=depth, max_size=depth))
    keys = keys_of(graph)
    z = algorithm_2_of(encoder, tables, sample_minibatch(graph, torch.arange(graph.num_nodes), sizes, keys, redraw))
    x, lists = inputs(encoder, tables), neighbor_lists(graph)
    expected = [slow(encoder, x, lists, sizes, v, int(keys[v])) for v in range(graph.num_nodes)]  # type: ignore[operator]
    close(z, np.stack(expected))


@pytest.mark.parametrize("name", UNORDERED)
@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("redraw", [True, False])
def test_algorithm_2_equals_algorithm_1_when_every_neighbor_is_sampled_once(
    name: str, depth: int, redraw: bool
) -> None:
    graph, x = regular(11, 4), normal(1, 11, 3)
    encoder = encoder_of(EncoderConfig(aggregator=name, num_layers=depth, dim=5, hidden_dim=4), 3)
    keys = keys_of(graph)
    sampled = algorithm_2_of(encoder, [x], sample_minibatch(graph, torch.arange(11), [4] * depth, keys, redraw))
    torch.testing.assert_close(sampled, algorithm_1_of(encoder, [x], graph, keys))


@given(worlds(names=UNORDERED), SEEDS)
def test_relabelling_nodes_permutes_embeddings(world: World, seed: int) -> None:
    encoder, graph, tables = world
    n = graph.num_nodes
    to = torch.randperm(n, generator=torch.Generator().manual_seed(seed))  # node v becomes to[v]
    edges = [(int(to[u]), int(to[v])) for v, near in neighbor_lists(graph).items() for u in near]
    other = from_edges(edges, n, directed=True)
    before = algorithm_1_of(encoder, tables, graph, keys_of(graph))
    back = torch.argsort(to)
    if encoder.identity is not None:
        encoder.identity.weight.data = encoder.identity.weight.data[back]
    after = algorithm_1_of(encoder, [t[back] for t in tables], other, keys_of(graph))
    torch.testing.assert_close(after[to], before, atol=2e-5, rtol=1e-4)


@every_aggregator
@pytest.mark.parametrize("combine", ["joint", "halves"])
def test_isolated_nodes_and_zero_vectors_stay_finite(name: str, combine: str) -> None:
    graph = Graph.from_edges([(0, 1), (2, 2)], 5)
    encoder = encoder_of(EncoderConfig(aggregator=name, dim=4, hidden_dim=4, combine=combine), 2)
    encoder.shift.zero_()
    z = algorithm_1_of(encoder, [torch.zeros(5, 2)], graph, keys_of(graph))
    torch.autograd.backward(z.sum())
    assert bool(torch.isfinite(z).all())
    assert all(bool(torch.isfinite(p.grad).all()) for p in encoder.parameters() if p.grad is not None)


@every_aggregator
def test_embeddings_have_length_one_or_zero(name: str) -> None:
    graph = regular(30, 4)
    encoder = encoder_of(EncoderConfig(aggregator=name, dim=6, hidden_dim=4), 3)
    z = algorithm_1_of(encoder, [normal(0, 30, 3)], graph, keys_of(graph))
    lengths = z.norm(dim=1)
    assert bool(((lengths - 1).abs().lt(1e-5) | (lengths == 0)).all())
    assert bool((z >= 0).all())
    assert bool((lengths > 0).any())


@every_aggregator
def test_half_precision_tables_give_nearly_the_same_vectors(name: str) -> None:
    graph, x = regular(12, 4), normal(0, 12, 3).bfloat16()
    encoder = encoder_of(EncoderConfig(aggregator=name, dim=6, hidden_dim=4, normalize="never"), 3)
    half, full = (algorithm_1_of(encoder, [t], graph, keys_of(graph)) for t in (x, x.float()))
    assert half.dtype == torch.float32
    torch.testing.assert_close(half, full, atol=0.05, rtol=0.05)


def test_dropout_acts_in_training_only_and_is_drawn_from_keys() -> None:
    graph, x = regular(20, 4), normal(0, 20, 3)
    encoder = encoder_of(EncoderConfig(dim=8, dropout=0.5), 3)
    batch = sample_minibatch(graph, torch.arange(20), (3, 3), keys_of(graph))
    quiet = algorithm_2_of(encoder, [x], batch)
    encoder.train()
    noisy = algorithm_2_of(encoder, [x], batch)
    assert not torch.allclose(noisy, quiet)
    assert torch.equal(algorithm_2_of(encoder, [x], batch), noisy)
    half = sample_minibatch(graph, torch.arange(10, 20), (3, 3), keys_of(graph)[10:])
    torch.testing.assert_close(algorithm_2_of(encoder, [x], half), noisy[10:])


def test_every_layer_has_the_same_width_and_no_bias() -> None:
    encoder = Encoder(EncoderConfig(num_layers=3), 7)
    assert [layer.weight.out_features for layer in encoder.layers] == [256, 256, 256]
    assert [layer.weight.in_features for layer in encoder.layers] == [14, 512, 512]
    assert [layer.weight.bias for layer in encoder.layers] == [None, None, None]  # line 5 has none


def test_the_halves_of_an_odd_width_add_up() -> None:
    graph = regular(5, 2)
    encoder = Encoder(EncoderConfig(num_layers=1, dim=5, combine="halves"), 3)
    assert algorithm_1_of(encoder, [normal(0, 5, 3)], graph, keys_of(graph)).shape == (5, 5)


def test_a_model_with_identity_vectors_alone_needs_no_features() -> None:
    graph = regular(6, 2)
    encoder = Encoder(EncoderConfig(dim=4, identity_dim=3), 0, num_nodes=6)
    assert algorithm_1_of(encoder, [torch.zeros(6, 0)], graph, keys_of(graph)).shape == (6, 4)


@pytest.mark.parametrize(
    "change",
    [
        {"num_layers": 0},
        {"dim": 1},
        {"depth": 0},
        {"identity_dim": -1},
        {"hidden_dim": 0},
        {"combine": "sum"},
        {"normalize": "first"},
        {"dropout": 1.0},
        {"dropout": -0.1},
        {"aggregator": "median"},
    ],
)
def test_settings_that_make_no_sense_are_refused_by_name(change: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match=next(iter(change))):
        dataclasses.replace(EncoderConfig(), **change)  # type: ignore[arg-type]


def test_an_encoder_without_input_or_of_another_depth_is_refused() -> None:
    with pytest.raises(ConfigError, match="no features"):
        Encoder(EncoderConfig(), 0)
    with pytest.raises(ConfigError, match="number of nodes"):
        Encoder(EncoderConfig(identity_dim=2), 3)
    graph = regular(5, 2)
    batch = sample_minibatch(graph, torch.arange(5), (2,), keys_of(graph))
    with pytest.raises(ConfigError, match="2 layers; got neighborhoods for 1"):
        Encoder(EncoderConfig(), 3)(normal(0, 5, 3), batch.neighborhoods)
    with pytest.raises(ConfigError, match=r"identity_dim.*of the nodes"):
        Encoder(EncoderConfig(num_layers=1, identity_dim=2), 3, 5)(normal(0, 5, 3), batch.neighborhoods)
    with pytest.raises(ConfigError, match="neighborhoods must be a sequence"):
        Encoder(EncoderConfig(), 3)(normal(0, 5, 3), batch)
    with pytest.raises(ConfigError, match=r"x must have 3 columns.*got shape \(5, 4\)"):
        Encoder(EncoderConfig(num_layers=1), 3)(normal(0, 5, 4), batch.neighborhoods)

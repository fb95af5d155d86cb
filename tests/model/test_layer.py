"""One layer against PyTorch Geometric's SAGEConv with the same weights, and against numbers worked out by hand."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.nn import SAGEConv

from graphs import SEEDS, graphs, normal
from graphsage.errors import ConfigError
from graphsage.graph.graph import Graph
from graphsage.model.aggregators import aggregator_named
from graphsage.model.aggregators.mean import MeanAggregator
from graphsage.model.layer import SageLayer
from graphsage.sampling.minibatch import whole_graph

IN, OUT = 3, 4


def layer_of(name: str, *, hidden: int | None = None, normalize: bool = False, combine: str = "joint") -> SageLayer:
    aggregator = aggregator_named(name)(IN, hidden)
    return SageLayer(IN, OUT, aggregator, combine=combine, activation=True, normalize=normalize, bias=False)


def test_a_layer_is_the_papers_unless_told_otherwise() -> None:
    aggregator = aggregator_named("mean")(IN, None)
    layer, x = SageLayer(IN, OUT, aggregator).train(), normal(0, 5, IN)
    graph = Graph.from_edges([[0, 1], [1, 2], [2, 3]], num_nodes=5)
    assert [name for name, _ in layer.named_parameters()] == ["weight.weight"]
    joined = torch.cat([x, aggregator(x, whole_graph(graph, 1)[0][0])], dim=1)
    expected = torch.nn.functional.normalize(torch.relu(joined @ layer.weight.weight.t()), dim=1)
    torch.testing.assert_close(run(layer, graph, x), expected)


def run(layer: SageLayer, graph: Graph, x: torch.Tensor) -> torch.Tensor:
    z: torch.Tensor = layer(x, whole_graph(graph, 1, torch.arange(graph.num_nodes))[0][0])
    return z


def edge_index(graph: Graph) -> torch.Tensor:
    """PyG sends messages from source to target: a neighbor sends to the node that has it."""
    receivers = torch.repeat_interleave(torch.arange(graph.num_nodes), graph.degrees)
    return torch.stack([graph.indices.long(), receivers])


@given(graphs(dim=IN, directed=None), SEEDS, st.booleans())
def test_mean_layer_equals_sageconv(graph: Graph, seed: int, normalize: bool) -> None:
    torch.manual_seed(seed)
    layer, x = layer_of("mean", normalize=normalize), graph.features
    peer = SAGEConv(IN, OUT, aggr="mean", bias=False)
    peer.lin_r.weight.data, peer.lin_l.weight.data = layer.weight.weight.data[:, :IN], layer.weight.weight.data[:, IN:]
    expected = torch.relu(peer(x, edge_index(graph)))
    if normalize:
        expected = torch.nn.functional.normalize(expected, dim=1)
    torch.testing.assert_close(run(layer, graph, x), expected, atol=1e-5, rtol=1e-4)


@given(graphs(dim=IN, directed=None), SEEDS)
def test_max_pool_layer_equals_sageconv_with_projection(graph: Graph, seed: int) -> None:
    torch.manual_seed(seed)
    layer, x = layer_of("pool", hidden=IN), graph.features
    peer = SAGEConv(IN, OUT, aggr="max", project=True, bias=False)
    peer.lin.load_state_dict(layer.aggregator.mlp[0].state_dict())
    peer.lin_r.weight.data, peer.lin_l.weight.data = layer.weight.weight.data[:, :IN], layer.weight.weight.data[:, IN:]
    expected = torch.relu(peer(x, edge_index(graph)))
    torch.testing.assert_close(run(layer, graph, x), expected, atol=1e-5, rtol=1e-4)


@given(graphs(dim=IN, directed=None), SEEDS)
def test_gcn_layer_equals_sageconv_over_self_and_neighbors(graph: Graph, seed: int) -> None:
    torch.manual_seed(seed)
    layer, x = layer_of("gcn"), graph.features
    peer = SAGEConv(IN, OUT, aggr="mean", root_weight=False, bias=False)
    peer.lin_l.weight.data = layer.weight.weight.data
    with_self = torch.cat([edge_index(graph), torch.arange(graph.num_nodes).expand(2, -1)], dim=1)
    expected = torch.relu(peer(x, with_self))
    torch.testing.assert_close(run(layer, graph, x), expected, atol=1e-5, rtol=1e-4)


def test_a_layer_worked_out_by_hand() -> None:
    layer = layer_of("mean", normalize=True)
    layer.weight.weight.data = torch.tensor(
        [
            [1.0, 0, 0, 0, 0, 0],
            [0, 0, 0, 1, 0, 0],
            [0, 0, 0, 0, 1, 0],
            [-1, 0, 0, 0, 0, 0],
        ]
    )
    x = torch.tensor([[2.0, 0, 0], [3, 8, 0], [5, 4, 0]])
    z = run(layer, Graph.from_edges([(0, 1), (0, 2)], 3), x)
    # W · (h_v, mean of neighbors) = (2, 4, 6, -2), then ReLU, then length 1
    torch.testing.assert_close(z[0], torch.tensor([2.0, 4, 6, 0]) / 56**0.5)


def test_each_half_sees_one_side() -> None:
    graph = Graph.from_edges([(0, 1)], 2)
    layer, x = layer_of("mean", combine="halves"), normal(0, 2, IN)
    other = x.clone()
    other[1] += 1
    before, after = run(layer, graph, x)[0], run(layer, graph, other)[0]
    assert torch.equal(before[:2], after[:2])


@pytest.mark.parametrize("combine", ["joint", "halves"])
def test_the_gcn_form_has_one_weight_and_no_concatenation(combine: str) -> None:
    layer = layer_of("gcn", combine=combine)
    assert {name: tuple(p.shape) for name, p in layer.named_parameters()} == {"weight.weight": (OUT, IN)}


def test_a_layer_leaves_the_first_weights_of_a_users_aggregator_alone() -> None:
    class Zero(MeanAggregator):
        def __init__(self, in_dim: int) -> None:
            super().__init__(in_dim)
            self.linear = torch.nn.Linear(in_dim, in_dim)
            torch.nn.init.zeros_(self.linear.weight)

    layer = SageLayer(IN, OUT, Zero(IN))
    assert isinstance(layer.aggregator, Zero)
    assert not layer.aggregator.linear.weight.any()


def test_an_unknown_way_to_combine_is_refused() -> None:
    with pytest.raises(ConfigError, match="joint, halves; got 'both'"):
        layer_of("mean", combine="both")

"""Section 3.1: with K = |V|, identity weights and a hash as aggregator, Algorithm 1 is the Weisfeiler-Lehman test."""

from collections import defaultdict
from collections.abc import Iterator

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from torch import Tensor

from graphs import edge_lists
from graphsage.execution.user_aggregators import register_aggregator
from graphsage.graph.graph import Graph
from graphsage.kernels.neighborhood import Neighborhood, Ragged
from graphsage.model.aggregators import AGGREGATORS
from graphsage.model.aggregators.base import Aggregator
from graphsage.model.encoder import Encoder, EncoderConfig
from graphsage.model.layer import SageLayer
from graphsage.sampling.minibatch import whole_graph

NUMBERS: dict[tuple[int, tuple[int, ...]], int] = {}


class HashAggregator(Aggregator):
    """A number of its own for every (color, multiset of neighbors' colors): a hash without collisions."""

    includes_self = True

    def forward(self, h: Tensor, hood: Neighborhood) -> Tensor:
        if not isinstance(hood, Ragged):
            return h[hood.rows]  # only the check of a user's aggregator samples
        colors, offsets = h[:, 0].long(), hood.offsets.tolist()
        found = []
        for number, row in enumerate(torch.arange(len(h))[hood.rows].tolist()):
            near = hood.index[offsets[number] : offsets[number + 1]]
            seen = (int(colors[row]), tuple(sorted(colors[near].tolist())))
            found.append(NUMBERS.setdefault(seen, len(NUMBERS) + 1))
        assert len(NUMBERS) < 2**24  # float32 holds these exactly
        return torch.tensor(found, dtype=h.dtype)[:, None] * torch.tensor([1.0, 0.0])


@pytest.fixture(scope="module", autouse=True)
def registered() -> Iterator[None]:
    register_aggregator("hash", HashAggregator)
    yield
    del AGGREGATORS["hash"]


def encoded(graph: Graph) -> list[float]:
    n = graph.num_nodes
    encoder = Encoder(EncoderConfig(aggregator="hash", num_layers=n, dim=2, normalize="never"), in_dim=2)
    with torch.no_grad():
        for layer in encoder.layers:
            assert isinstance(layer, SageLayer)
            layer.weight.weight.copy_(torch.eye(2))
        z = encoder(torch.ones(n, 2), whole_graph(graph, n, torch.arange(n)))
    return [float(color) for color in z[:, 0]]


def partition(colors: dict[int, object]) -> set[frozenset[int]]:
    groups: defaultdict[object, set[int]] = defaultdict(set)
    for node, color in colors.items():
        groups[color].add(node)
    return {frozenset(group) for group in groups.values()}


@given(edge_lists(9))
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_the_encoder_gives_the_partition_of_networkxs_refinement(drawn: tuple[int, list[tuple[int, int]]]) -> None:
    n, edges = drawn
    kept = sorted({(min(a, b), max(a, b)) for a, b in edges if a != b})
    graph = Graph.from_edges(np.array(kept, np.int64).reshape(-1, 2), n)
    other = nx.Graph()
    other.add_nodes_from(range(n))
    other.add_edges_from(kept)
    # The same start for all nodes as ours, and as many rounds as nodes: no round refines the partition after that.
    nx.set_node_attributes(other, "1", "start")
    hashes = nx.weisfeiler_lehman_subgraph_hashes(other, node_attr="start", iterations=n)
    theirs = {node: found[-1] for node, found in hashes.items()}
    assert partition(dict(enumerate(encoded(graph)))) == partition(dict(theirs))

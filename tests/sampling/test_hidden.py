"""A target whose edge is hidden has the tree that it has in a graph without the edge."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from graphs import SEEDS, graphs, star
from graphsage.errors import ConfigError
from graphsage.graph.graph import Graph
from graphsage.graph.split import keep_edges
from graphsage.kernels.random import Stream
from graphsage.sampling.hidden import EdgePlaces
from graphsage.sampling.minibatch import sample_minibatch

SIZES = st.lists(st.integers(1, 4), min_size=1, max_size=3)


def without(graph: Graph, a: int, b: int) -> Graph:
    """The slow form: another graph."""
    rows, columns = graph.edge_rows, graph.indices
    return keep_edges(graph, rows, ~(((rows == a) & (columns == b)) | ((rows == b) & (columns == a))))


def equal(one: Tensor, other: Tensor, present: Tensor) -> bool:
    return torch.equal(one[present], other[present])


@given(graphs(directed=None), SIZES, SEEDS, st.data())
def test_a_hidden_edge_might_as_well_not_exist(graph: Graph, sizes: list[int], seed: int, data: st.DataObject) -> None:
    node = st.integers(0, graph.num_nodes - 1)
    edges = list(zip(graph.edge_rows.tolist(), graph.indices.tolist(), strict=True))
    pair = st.tuples(node, node) | st.sampled_from(edges) if edges else st.tuples(node, node)
    asked = data.draw(st.lists(st.tuples(node | pair.map(lambda ends: ends[0]), pair), min_size=1, max_size=5))
    targets, pairs = torch.tensor([t for t, _ in asked]), torch.tensor([ends for _, ends in asked])
    keys = Stream(seed, "test").keys(torch.arange(len(asked)))
    batch = sample_minibatch(graph, targets, sizes, keys, hidden=EdgePlaces.of(graph).hidden(pairs))
    for i, (target, (a, b)) in enumerate(asked):
        alone = sample_minibatch(without(graph, a, b), torch.tensor([target]), sizes, keys[i : i + 1])
        own = torch.tensor([i])
        for k in range(len(sizes), 0, -1):
            (mine,), (slow,) = batch.neighborhoods[k - 1], alone.neighborhoods[k - 1]
            assert torch.equal(mine.present[own], slow.present)
            assert torch.equal(mine.keys[own], slow.keys)
            if k == 1:
                assert equal(mine.index[own], slow.index, slow.present)
                assert torch.equal(batch.rows[own], alone.rows)
            else:
                own = torch.cat([own, mine.index[own].flatten()])


@given(graphs(directed=None))
def test_every_edge_is_found_at_its_place(graph: Graph) -> None:
    backwards = graph.replace(indices=graph.indices.flip(0), indptr=graph.num_stored_edges - graph.indptr.flip(0))
    for lists in (graph, backwards):  # the second one has descending lists
        n = lists.num_nodes
        rows, neighbors = torch.arange(n).repeat_interleave(n), torch.arange(n).repeat(n)
        for row, neighbor, place in zip(
            rows.tolist(), neighbors.tolist(), EdgePlaces.of(lists).find(rows, neighbors).tolist(), strict=True
        ):
            own = lists.neighbors(row).tolist()
            assert place == (own.index(neighbor) if neighbor in own else -1)


def test_reused_neighbors_hide_nothing() -> None:
    graph = star(3)
    hidden = EdgePlaces.of(graph).hidden(torch.tensor([[0, 1]]))
    with pytest.raises(ConfigError, match="redraw"):
        sample_minibatch(graph, torch.tensor([0]), (2, 2), 0, redraw=False, hidden=hidden)

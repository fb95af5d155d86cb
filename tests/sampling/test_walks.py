"""Random walks and the pairs of Equation 1."""

import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from algorithms import hashed
from graphs import SEEDS, chi_square_p, edge_set, graphs, normal, star
from graphsage.graph.graph import Graph
from graphsage.kernels.random import Stream
from graphsage.sampling.walks import random_walks, walk_pairs


@given(graphs(directed=None), st.integers(1, 6), SEEDS, st.booleans())
def test_each_step_follows_an_edge_or_stays_where_there_is_none(
    graph: Graph, length: int, seed: int, weighted: bool
) -> None:
    graph = with_weights(graph, seed) if weighted else graph
    starts = torch.arange(graph.num_nodes)
    walks = random_walks(graph, starts, length, Stream(seed, "test").keys(starts))
    assert walks.shape == (graph.num_nodes, length)
    assert torch.equal(walks[:, 0], starts)
    edges = edge_set(graph)
    for walk in walks.tolist():
        for here, there in itertools.pairwise(walk):
            assert (here, there) in edges or (here == there and not len(graph.neighbors(here)))


def with_weights(graph: Graph, seed: int) -> Graph:
    return graph.replace(edge_weight=normal(seed, graph.num_stored_edges).exp())


@given(graphs(directed=None), st.sampled_from([0.1, 1.0, 7e14]), SEEDS)
def test_equal_weights_make_the_same_walks(graph: Graph, weight: float, seed: int) -> None:
    starts = torch.arange(graph.num_nodes)
    keys = Stream(seed, "test").keys(starts)
    same = graph.replace(edge_weight=torch.full((graph.num_stored_edges,), weight))
    assert torch.equal(random_walks(same, starts, 5, keys), random_walks(graph, starts, 5, keys))
    assert same.cumulative_shares is None  # draws that rounding would move are too rare to be met by chance


@given(graphs(directed=True), st.data(), SEEDS)
def test_only_ratios_of_the_weights_of_a_row_matter(graph: Graph, data: st.DataObject, seed: int) -> None:
    starts = torch.arange(graph.num_nodes)
    keys = Stream(seed, "test").keys(starts)
    powers = data.draw(st.lists(st.integers(-9, 9), min_size=graph.num_nodes, max_size=graph.num_nodes))
    weighted = with_weights(graph, seed)
    assert weighted.edge_weight is not None
    scaled = weighted.replace(edge_weight=weighted.edge_weight * 2.0 ** torch.tensor(powers)[graph.edge_rows])
    assert torch.equal(random_walks(scaled, starts, 5, keys), random_walks(weighted, starts, 5, keys))


def test_a_step_is_in_proportion_to_the_weights() -> None:
    edges = [(a, b) for a in range(5) for b in range(5) if a != b]
    # Node 0 has huge weights: a running sum of weights over all rows would round those of node 4 away.
    weights = [(b + 1) * 1e14 if a == 0 else (a + 2 * b + 1) * 1e-4 for a, b in edges]
    graph = Graph.from_edges(edges, 5, edge_weight=weights, direction="out")
    starts = torch.arange(5).repeat_interleave(20_000)
    walks = random_walks(graph, starts, 3, Stream(0, "test").keys(torch.arange(len(starts))))
    for here, expected in enumerate(torch.tensor(weights).view(5, 4)):
        for step in (0, 1):
            counts = torch.bincount(walks[walks[:, step] == here, step + 1], minlength=5)
            assert counts[here] == 0
            assert chi_square_p(counts[torch.arange(5) != here], expected) > 1e-4, (here, step)


def test_a_weight_counts_as_often_as_the_edge_is_repeated() -> None:
    repeated = Graph.from_edges([(0, 1), (0, 2), (2, 0), (2, 0)], 3, edge_weight=[1, 1, 1, 1])
    walks = random_walks(repeated, torch.zeros(20_000).long(), 2, Stream(0, "test").keys(torch.arange(20_000)))
    assert chi_square_p(torch.bincount(walks[:, 1], minlength=3)[1:], [1, 3]) > 1e-4


def test_a_step_is_uniform_over_neighbors_and_independent_of_the_one_before() -> None:
    complete = Graph.from_edges([(a, b) for a in range(5) for b in range(a)], 5)
    starts = torch.zeros(20_000, dtype=torch.int64)
    walks = random_walks(complete, starts, 3, Stream(0, "test").keys(torch.arange(20_000)))
    first = torch.bincount(walks[:, 1], minlength=5)
    assert first[0] == 0
    assert chi_square_p(first[1:]) > 1e-4
    for here in range(1, 5):
        then = torch.bincount(walks[walks[:, 1] == here, 2], minlength=5)
        assert then[here] == 0
        assert chi_square_p(then[then > 0]) > 1e-4


@given(graphs(), st.integers(1, 4), st.integers(2, 5), SEEDS)
def test_pairs_are_the_start_and_each_later_position_of_every_walk(
    graph: Graph, num_walks: int, length: int, seed: int
) -> None:
    nodes = torch.arange(graph.num_nodes)
    pairs = walk_pairs(graph, nodes, seed, num_walks, length)
    starts = [v for v in nodes.tolist() if set(graph.neighbors(v).tolist()) - {v}]
    assert pairs.count == len(starts) * num_walks * (length - 1)
    u, v, valid = pairs.pairs(torch.arange(pairs.count))
    by_hand = []
    for start in starts:
        for walk in range(num_walks):
            key = _key(seed, start, walk)
            row = random_walks(graph, torch.tensor([start]), length, key)[0].tolist()
            by_hand += [(start, there, start != there) for there in row[1:]]
    assert list(zip(u.tolist(), v.tolist(), valid.tolist(), strict=True)) == by_hand


def _key(seed: int, start: int, walk: int) -> torch.Tensor:
    return torch.tensor([hashed(int(Stream(seed, "walks").keys(torch.tensor([start]))), walk)])


@given(SEEDS, st.permutations(range(24)))
def test_a_pair_depends_on_its_number_only(seed: int, order: list[int]) -> None:
    pairs = walk_pairs(star(5), torch.tensor([0, 1, 3]), seed, 2, 5)
    whole = pairs.pairs(torch.arange(24))
    for all_of_it, some in zip(whole, pairs.pairs(torch.tensor(order)), strict=True):
        assert torch.equal(some, all_of_it[order])


def test_a_return_to_the_start_is_not_a_pair() -> None:
    pairs = walk_pairs(Graph.from_edges([(0, 1)], 2), torch.arange(2), 0, 1, 5)
    u, v, valid = pairs.pairs(torch.arange(pairs.count))
    assert v.tolist() == [1, 0, 1, 0, 0, 1, 0, 1]  # there is one neighbor only
    assert u.tolist() == [0] * 4 + [1] * 4
    assert valid.tolist() == [True, False] * 4


def test_walks_from_one_node_differ_and_so_do_seeds() -> None:
    complete = Graph.from_edges([(a, b) for a in range(20) for b in range(a)], 20)
    pairs = [walk_pairs(complete, torch.tensor([3]), seed, 50, 5).pairs(torch.arange(200))[1] for seed in (0, 1)]
    assert len({tuple(w) for w in pairs[0].view(50, 4).tolist()}) > 45
    assert not torch.equal(*pairs)


def test_the_papers_numbers_are_the_defaults() -> None:
    pairs = walk_pairs(star(2), torch.arange(3), 0)
    assert (pairs.num_walks, pairs.walk_length) == (50, 5)
    assert pairs.count == 3 * 50 * 4


@pytest.mark.parametrize("edges", [[], [(0, 1)]])
def test_isolated_nodes_start_no_walk(edges: list[tuple[int, int]]) -> None:
    pairs = walk_pairs(Graph.from_edges(edges, 4), torch.tensor([2, 3]), 0)
    assert pairs.count == 0


def test_a_node_whose_only_neighbor_is_itself_starts_no_walk() -> None:
    graph = Graph.from_edges([[0, 0], [1, 1], [1, 2], [3, 4]], 6)
    assert walk_pairs(graph, torch.arange(6), seed=0).starts.tolist() == [1, 2, 3, 4]
    assert walk_pairs(Graph.from_edges([[0, 0]], 2), torch.arange(2), seed=0).count == 0
    assert walk_pairs(Graph.from_edges([], 2), torch.arange(2), seed=0).count == 0

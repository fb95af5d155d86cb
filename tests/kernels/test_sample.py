"""Uniform neighbor sampling: fair, distinct where possible, and a pure function of each row's key."""

from itertools import combinations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from algorithms import sample
from graphs import SEEDS, chi_square_p, graphs, neighbor_lists, star
from graphsage.graph.graph import Graph
from graphsage.kernels.random import Stream
from graphsage.kernels.sample import sample_neighbors, sample_offsets


@given(graphs(directed=None), st.integers(1, 8), SEEDS)
def test_fast_and_plain_samplers_agree(graph: Graph, size: int, seed: int) -> None:
    nodes = torch.arange(graph.num_nodes)
    keys = Stream(seed, "test").keys(nodes)
    index, present = sample_neighbors(graph.indptr, graph.indices, nodes, size, keys)
    assert index.shape == (graph.num_nodes, size)
    for v, neighbors in neighbor_lists(graph).items():
        assert bool(present[v]) == bool(neighbors)
        assert index[v].tolist() == (sample(neighbors, size, int(keys[v])) or [v] * size)


@given(graphs(directed=None), st.integers(1, 8), SEEDS)
def test_a_sample_holds_neighbors_only_and_is_distinct_where_the_degree_allows(
    graph: Graph, size: int, seed: int
) -> None:
    nodes = torch.arange(graph.num_nodes)
    index, present = sample_neighbors(graph.indptr, graph.indices, nodes, size, Stream(seed, "test").keys(nodes))
    for v, neighbors in neighbor_lists(graph).items():
        drawn = index[v].tolist()
        if not neighbors:
            assert not present[v]
            assert drawn == [v] * size
            continue
        assert set(drawn) <= set(neighbors)
        if len(neighbors) >= size:
            assert len(set(drawn)) == size
        if len(neighbors) == 1:
            assert drawn == neighbors * size


@given(graphs(), SEEDS, st.data())
def test_a_row_does_not_depend_on_the_others(graph: Graph, seed: int, data: st.DataObject) -> None:
    nodes = torch.arange(graph.num_nodes)
    keys = Stream(seed, "test").keys(nodes)
    whole, _ = sample_neighbors(graph.indptr, graph.indices, nodes, 4, keys)
    some = torch.tensor(data.draw(st.lists(st.integers(0, graph.num_nodes - 1), min_size=1, max_size=8)))
    part, _ = sample_neighbors(graph.indptr, graph.indices, some, 4, keys[some])
    assert torch.equal(part, whole[some])


@pytest.mark.parametrize(("degree", "size"), [(1, 3), (3, 1), (4, 6), (6, 4), (9, 9), (40, 10)])
def test_every_neighbor_is_equally_likely(degree: int, size: int) -> None:
    rows = 12_000
    offsets = sample_offsets(torch.full((rows,), degree), size, Stream(degree, "test").keys(torch.arange(rows)))
    counts = torch.bincount(offsets.flatten(), minlength=degree)
    assert len(counts) == degree
    if size % degree:
        assert chi_square_p(counts) > 1e-4


@pytest.mark.parametrize(("degree", "size"), [(4, 2), (5, 3), (6, 3), (6, 5)])
def test_every_subset_is_equally_likely(degree: int, size: int) -> None:
    rows = 12_000
    offsets = sample_offsets(torch.full((rows,), degree), size, Stream(7, "test").keys(torch.arange(rows)))
    subsets = {subset: number for number, subset in enumerate(combinations(range(degree), size))}
    drawn = torch.tensor([subsets[tuple(row)] for row in offsets.sort(dim=1).values.tolist()])
    assert chi_square_p(torch.bincount(drawn, minlength=len(subsets))) > 1e-4


def test_draws_with_replacement_are_independent_of_each_other() -> None:
    rows, degree = 20_000, 4
    offsets = sample_offsets(torch.full((rows,), degree), 5, Stream(8, "test").keys(torch.arange(rows)))
    for a, b in combinations(range(5), 2):
        pairs = torch.bincount(offsets[:, a] * degree + offsets[:, b], minlength=degree**2)
        assert chi_square_p(pairs) > 1e-4


def test_the_whole_neighborhood_is_drawn_when_the_size_is_the_degree() -> None:
    graph = star(7)
    index, _ = sample_neighbors(graph.indptr, graph.indices, torch.zeros(50).long(), 7, torch.arange(50))
    assert index.sort(dim=1).values.tolist() == [[1, 2, 3, 4, 5, 6, 7]] * 50


def test_a_graph_without_edges_yields_no_neighbors() -> None:
    graph = Graph.from_edges([], 3)
    index, present = sample_neighbors(graph.indptr, graph.indices, torch.tensor([2, 0]), 2, torch.tensor([1, 2]))
    assert index.tolist() == [[2, 2], [0, 0]]
    assert present.tolist() == [False, False]


def test_no_rows_yield_no_samples() -> None:
    graph = star(3)
    index, present = sample_neighbors(graph.indptr, graph.indices, torch.arange(0), 2, torch.arange(0))
    assert index.shape == (0, 2)
    assert present.shape == (0,)

"""Theorem 1's construction, and clustering coefficients that are learned."""

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from graphs import SEEDS, edge_lists
from graphsage.experiments.theory import (
    EPSILON,
    Clustering,
    clustering_coefficients,
    coloring,
    constructed,
    learn,
    small_world,
    within,
)
from graphsage.graph.graph import Graph


def simple(n: int, edges: list[tuple[int, int]]) -> Graph:
    return Graph.from_edges([(a, b) for a, b in edges if a != b] or np.zeros((0, 2), np.int64), n)


def as_networkx(graph: Graph) -> nx.Graph:
    other = nx.Graph()
    other.add_nodes_from(range(graph.num_nodes))
    other.add_edges_from(zip(graph.edge_rows.tolist(), graph.indices.tolist(), strict=True))
    return other


@given(edge_lists(10), SEEDS)
@settings(max_examples=25)
def test_the_constructed_network_gives_the_coefficients_of_random_graphs(
    drawn: tuple[int, list[tuple[int, int]]], seed: int
) -> None:
    graph = simple(*drawn)
    x = torch.randn(graph.num_nodes, 3, generator=torch.Generator().manual_seed(seed))
    error = (constructed(graph, x) - clustering_coefficients(graph)).abs().max()
    assert float(error) < EPSILON


def test_it_gives_the_coefficients_of_a_real_graph() -> None:
    club = nx.karate_club_graph()
    graph = Graph.from_edges(list(club.edges()), club.number_of_nodes())
    x = torch.randn(graph.num_nodes, 5, generator=torch.Generator().manual_seed(1))
    expected = [nx.clustering(club)[node] for node in range(graph.num_nodes)]
    assert constructed(graph, x).tolist() == pytest.approx(expected, abs=EPSILON)


@given(edge_lists())
def test_the_direct_count_is_networkxs(drawn: tuple[int, list[tuple[int, int]]]) -> None:
    graph = simple(*drawn)
    theirs = nx.clustering(as_networkx(graph))
    assert clustering_coefficients(graph).tolist() == pytest.approx([theirs[v] for v in range(graph.num_nodes)])


@given(edge_lists(14))
def test_nodes_within_four_steps_have_different_colors(drawn: tuple[int, list[tuple[int, int]]]) -> None:
    graph = simple(*drawn)
    colors = coloring(graph)
    distance = dict(nx.all_pairs_shortest_path_length(as_networkx(graph), cutoff=4))
    for u in range(graph.num_nodes):
        assert within(graph, u, 4) == set(distance[u])
        assert all(colors[u] != colors[v] for v in distance[u] if v != u)


M = 14  # Corollary 3: nodes of a ring with chords to the next two, numbered modulo M
ring = st.tuples(st.integers(1, 3), st.lists(st.booleans(), min_size=3 * M, max_size=3 * M))


def ring_graph(turns: int, chords: list[bool]) -> Graph:
    n = turns * M
    edges = [(v, (v + 1) % n) for v in range(n)] + [(v, (v + 2) % n) for v in range(n) if chords[v]]
    return Graph.from_edges(edges, n)


@given(ring)
@settings(max_examples=15)
def test_one_network_serves_a_whole_class_of_graphs(drawn: tuple[int, list[bool]]) -> None:
    """Corollary 3: where nodes that share a 3-hop neighborhood have different indicators in every graph of a class, one
    set of weights gives the coefficients of all of them. Nodes six steps apart or less are at most 12 places apart on
    the ring, and 14 numbers tell those apart."""
    graph = ring_graph(*drawn)
    x = (torch.arange(graph.num_nodes) % M).double()[:, None]
    for node in range(0, graph.num_nodes, 5):
        near = sorted(within(graph, node, 3))
        assert len({int(x[v, 0]) for v in near}) == len(near)
    with torch.no_grad():
        found = CLASS(x, graph)
    assert float((found - clustering_coefficients(graph)).abs().max()) < EPSILON


CLASS = Clustering(range(M), range(M), max_degree=4)


def test_where_the_condition_fails_the_network_does_too() -> None:
    graph = ring_graph(2, [True] * 3 * M)
    x = (torch.arange(graph.num_nodes) % 3).double()[:, None]  # neighbors of neighbors look alike
    with torch.no_grad():
        wrong = Clustering(range(3), range(3), max_degree=4)(x, graph) - clustering_coefficients(graph)
    assert float(wrong.abs().max()) > 0.1


def r2(aggregator: str, steps: int) -> float:
    found = learn({"aggregator": aggregator, "nodes": 40, "steps": steps, "seed": 0, "device": "cpu"})
    return float(found["r2_same_graphs"])


def test_pool_learns_something_of_the_structure_and_the_same_every_time() -> None:
    learned = r2("pool", 80)
    assert learned > r2("pool", 0) + 0.05
    assert learned == r2("pool", 80)
    assert learned < 1


@pytest.mark.parametrize(("degree", "coefficient"), [(2, 0.0), (4, 0.5), (8, 9 / 14)])
def test_a_small_world_that_nothing_was_moved_in_has_the_coefficients_of_its_ring(
    degree: int, coefficient: float
) -> None:
    """3 (d - 2) / (4 (d - 1)) for a ring whose nodes are joined to their d nearest."""
    found = clustering_coefficients(small_world(30, degree, 0.0, 0))
    assert torch.allclose(found, torch.full_like(found, coefficient), atol=1e-6)

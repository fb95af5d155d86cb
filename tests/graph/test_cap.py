"""The degree cap: nobody above it, edges only taken away, and every edge with a fair chance."""

from random import Random

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from graphs import SEEDS, chi_square_p, edge_set, graphs, star
from graphsage.errors import ConfigError
from graphsage.graph import cap as module
from graphsage.graph.build import from_edges
from graphsage.graph.cap import CAPS, MAX_DEGREE, CapRule, cap_degrees, cap_summary, without_self_loops
from graphsage.graph.graph import Graph
from graphsage.graph.ids import NodeIds, node_key
from graphsage.graph.split import Split, training_graph

LIMITS = st.integers(1, 5)
every_cap = pytest.mark.parametrize("cap", CAPS)


@every_cap
@given(graph=graphs(directed=None), limit=LIMITS, seed=SEEDS)
def test_no_degree_is_above_the_cap_and_no_edge_is_new(cap: str, graph: Graph, limit: int, seed: int) -> None:
    capped = cap_degrees(graph, limit, seed=seed, cap=cap)
    assert int(capped.degrees.max()) <= limit
    assert edge_set(capped) <= edge_set(graph)
    assert capped.features is graph.features
    assert edge_set(cap_degrees(graph, limit, seed=seed, cap=cap)) == edge_set(capped)


@given(graphs(), LIMITS, SEEDS)
def test_a_symmetric_graph_stays_symmetric(graph: Graph, limit: int, seed: int) -> None:
    edges = edge_set(cap_degrees(graph, limit, seed=seed, cap="symmetric"))
    assert edges == {(u, v) for v, u in edges}


@given(graphs(), LIMITS, SEEDS)
def test_an_edge_between_nodes_below_the_cap_stays(graph: Graph, limit: int, seed: int) -> None:
    small = {v for v in range(graph.num_nodes) if len(graph.neighbors(v)) <= limit}
    inside = {(v, u) for v, u in edge_set(graph) if v in small and u in small}
    assert inside <= edge_set(cap_degrees(graph, limit, seed=seed))


@given(graphs(directed=None), LIMITS, SEEDS)
def test_by_row_every_node_keeps_as_many_as_it_may(graph: Graph, limit: int, seed: int) -> None:
    capped = cap_degrees(graph, limit, seed=seed, cap="row")
    assert torch.equal(capped.degrees, graph.degrees.clamp_max(limit))


def test_by_row_one_side_of_an_edge_may_keep_it_alone() -> None:
    edges = edge_set(cap_degrees(star(10), 3, cap="row"))
    assert {(v, 0) for v in range(1, 11)} <= edges
    assert sum(v == 0 for v, _ in edges) == 3


@given(graphs(), st.lists(st.tuples(st.integers(0, 14), st.integers(12, 14)), max_size=8), LIMITS, SEEDS)
def test_cut_edges_do_not_change_the_cap_of_the_training_graph(
    graph: Graph, unseen: list[tuple[int, int]], limit: int, seed: int
) -> None:
    old = [(v, u) for v, u in edge_set(graph) if v <= u]
    unseen = [(a if a < graph.num_nodes else b, b) for a, b in unseen]  # every one touches 12, 13 or 14
    split = Split.masks([v < 12 for v in range(15)])
    caps = [cap_degrees(training_graph(from_edges(e, 15), split), limit, seed=seed) for e in (old, old + unseen)]
    assert edge_set(caps[0]) == edge_set(caps[1])


@given(st.lists(st.integers(4, 40), min_size=1, max_size=12), st.integers(1, 3), SEEDS)
def test_the_best_priorities_of_many_rows_are_sorted_row_by_row(degrees: list[int], limit: int, seed: int) -> None:
    rule = CapRule(limit, "row", seed, directed=False)
    priorities = rule.priorities(torch.arange(sum(degrees)), torch.tensor([0]))
    rows = torch.split(priorities, degrees)
    assert rule.best_of_rows(priorities, torch.tensor(degrees)).tolist() == [
        r.sort().values[:limit].tolist() for r in rows
    ]


@pytest.mark.parametrize("limit", [None, MAX_DEGREE, 6])
def test_a_graph_that_needs_no_cap_is_returned_itself(limit: int | None) -> None:
    graph = star(6)
    assert cap_degrees(graph, limit) is graph


@every_cap
def test_every_edge_of_a_hub_survives_equally_often(cap: str) -> None:
    hub, survived = star(12), torch.zeros(13)
    for seed in range(400):
        capped = cap_degrees(hub, 4, seed=seed, cap=cap)
        assert len(capped.neighbors(0)) == 4
        survived[capped.neighbors(0).long()] += 1
    # Without replacement counts spread less than chi-square expects: 1 - 4 / 12 of it.
    assert chi_square_p(survived[1:]) > 1e-4
    assert survived[0] == 0


def test_edge_times_stay_with_their_edges() -> None:
    edges = [(0, v) for v in range(1, 9)]
    graph = from_edges(edges, 9, edge_time=[10 * v for _, v in edges])
    capped = cap_degrees(graph, 3)
    assert capped.edge_time is not None
    rows = torch.repeat_interleave(torch.arange(9), capped.degrees)
    assert torch.equal(capped.edge_time, 10 * torch.maximum(rows, capped.indices.long()))


def test_caps_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ConfigError, match="row, symmetric; got 'both'"):
        cap_degrees(star(3), 2, cap="both")
    with pytest.raises(ConfigError, match=r"at least 1.*got 0"):
        cap_degrees(star(3), 0)
    with pytest.raises(ConfigError, match="row, symmetric"):
        cap_degrees(star(3), None, cap="both")


@every_cap
@given(graph=graphs(directed=None), limit=LIMITS, seed=SEEDS, order=st.randoms(use_true_random=False))
def test_the_same_edges_survive_in_any_order_of_the_rows(
    cap: str, graph: Graph, limit: int, seed: int, order: Random
) -> None:
    place = list(range(graph.num_nodes))
    order.shuffle(place)
    names = [f"node {row}" for row in range(graph.num_nodes)]
    by_row = graph.replace(ids=NodeIds.of(names))
    edges = [(place[u], place[v]) for v, u in edge_set(graph)]
    ids = [name for _, name in sorted(zip(place, names, strict=True))]
    moved = from_edges(edges, graph.num_nodes, ids=ids, directed=graph.directed)
    kept = edge_set(cap_degrees(by_row, limit, seed=seed, cap=cap))
    assert edge_set(cap_degrees(moved, limit, seed=seed, cap=cap)) == {(place[v], place[u]) for v, u in kept}


def test_integer_ids_are_keys_and_without_ids_row_numbers_are() -> None:
    graph = from_edges([(0, 1)], 3)
    assert graph.keys.tolist() == [0, 1, 2]
    ids = ["7", "-3", "07", "1e3", str(2**63), "x"]
    keys = [node_key(id) for id in ids]
    assert keys[:2] == [7, -3]
    assert len({*keys}) == 6
    assert NodeIds.of(ids).keys.tolist() == keys
    assert NodeIds.of([7, -3]).keys.tolist() == [7, -3]


def test_the_summary_counts_edges_and_nodes_that_lose_all_neighbors() -> None:
    leaves = star(1000)
    by_row, both = (cap_degrees(leaves, cap=cap) for cap in ("row", "symmetric"))
    row = "at most 128 neighbors per node (row): removes 872 of 2,000 stored edges (43.6%); 0 nodes lose all neighbors"
    assert cap_summary(leaves, by_row, 128, "row") == row
    assert cap_summary(leaves, both, 128, "symmetric").endswith(
        "removes 1,744 of 2,000 stored edges (87.2%); 872 nodes lose all neighbors"
    )


@given(graphs(directed=None), st.sampled_from([3, 1000]))
def test_self_loops_are_dropped_and_a_graph_without_any_is_returned_itself(graph: Graph, chunk: int) -> None:
    before, module._CHUNK = module._CHUNK, chunk
    try:
        plain = without_self_loops(graph)
    finally:
        module._CHUNK = before
    assert edge_set(plain) == {(v, u) for v, u in edge_set(graph) if v != u}
    assert (plain is graph) == (edge_set(plain) == edge_set(graph))

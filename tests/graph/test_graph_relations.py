"""A graph that is read in both directions has two relations, each with neighbor lists of its own."""

from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from graphs import edge_lists, facts, full_graphs, normal
from graphsage.errors import ConfigError, DataError, GraphError
from graphsage.graph.build import edges_of, from_edges
from graphsage.graph.cap import cap_degrees
from graphsage.graph.graph import Graph
from graphsage.graph.split import Split, training_graph, without_test_nodes
from graphsage.graph.storage import open_graph, save_graph
from graphsage.tables.spec import DIRECTIONS

Edges = tuple[int, list[tuple[int, int]]]


def lists(graph: Graph) -> list[list[int]]:
    return [graph.neighbors(v).tolist() for v in range(graph.num_nodes)]


@given(edge_lists())
def test_each_direction_lists_its_own_neighbors(given_: Edges) -> None:
    n, edges = given_
    into, out_of, both = (from_edges(edges, n, direction=how) for how in ("in", "out", "both"))
    assert lists(into) == [sorted({u for u, v in edges if v == w}) for w in range(n)]
    assert lists(out_of) == [sorted({v for u, v in edges if u == w}) for w in range(n)]
    assert list(both.relations) == ["in", "out"]
    assert facts(both.relations["in"]) == facts(into)
    assert facts(both.relations["out"]) == facts(out_of)
    assert facts(both, "relations") == facts(from_edges(edges, n), "relations")  # together: the undirected graph
    assert both.num_edges == into.num_edges == out_of.num_edges == len(set(edges))


@given(edge_lists(), st.sampled_from(DIRECTIONS))
def test_edges_come_back_in_their_direction(given_: Edges, direction: str) -> None:
    n, edges = given_
    found = [tuple(pair) for pair in edges_of(from_edges(edges, n, direction=direction)).pairs.tolist()]
    wanted = {(min(e), max(e)) for e in edges} if direction == "merged" else set(edges)
    assert len(found) == len(set(found))
    assert set(found) == wanted


@given(full_graphs(directions=DIRECTIONS))
def test_a_folder_keeps_the_relations(tmp_path_factory: pytest.TempPathFactory, graph: Graph) -> None:
    folder = tmp_path_factory.mktemp("graph") / "saved"
    save_graph(graph, folder)
    assert facts(open_graph(folder)) == facts(graph)


@pytest.mark.parametrize("array", ["relation-1-indptr", "relation-0-indices"])
def test_a_folder_without_a_relation_is_refused(tmp_path: Path, array: str) -> None:
    save_graph(from_edges([(0, 1)], 3, direction="both"), tmp_path / "graph")
    (tmp_path / "graph" / f"{array}.npy").unlink()
    with pytest.raises(DataError, match=array):
        open_graph(tmp_path / "graph")


@given(edge_lists(), st.data())
def test_cutting_and_capping_apply_to_every_relation(given_: Edges, data: st.DataObject) -> None:
    n, edges = given_
    split = Split(torch.tensor([0, *data.draw(st.lists(st.integers(0, 2), min_size=n - 1, max_size=n - 1))]).byte())
    alone = {how: from_edges(edges, n, direction=how) for how in ("in", "out")}
    both = from_edges(edges, n, direction="both")
    for change in (
        lambda graph: training_graph(graph, split),
        lambda graph: without_test_nodes(graph, split),
        lambda graph: cap_degrees(graph, 2, self_loops=False),
    ):
        for how, each in alone.items():
            assert facts(change(both).relations[how]) == facts(change(each)), how  # type: ignore[no-untyped-call]


@given(edge_lists(), edge_lists(), st.sampled_from(DIRECTIONS))
def test_nodes_that_arrive_later_get_the_lists_that_they_would_have_had(old: Edges, new: Edges, direction: str) -> None:
    (n, before), (more, after) = old, new
    added = [(u, (n + v) if v % 2 else v % n) for u, v in after if u < n]
    x = normal(0, n + more, 2)
    grown = from_edges(before, n, features=x[:n], direction=direction).with_nodes(features=x[n:], edges=added)
    assert facts(grown) == facts(from_edges([*before, *added], n + more, features=x, direction=direction))


def test_a_direction_that_there_is_not_is_refused() -> None:
    with pytest.raises(ConfigError, match="direction must be one of merged, in, out, both; got 'up'"):
        from_edges([(0, 1)], 2, direction="up")
    with pytest.raises(GraphError, match="directed=True is direction 'in'; got direction='out' too"):
        from_edges([(0, 1)], 2, direction="out", directed=True)

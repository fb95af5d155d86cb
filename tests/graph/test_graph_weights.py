"""Edge types and weights: what a graph keeps of them, and which are refused."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from graphs import edge_lists, facts, normal
from graphsage.errors import GraphError
from graphsage.graph.build import direction_of, edges_of, from_edges, types_of
from graphsage.graph.graph import Graph
from graphsage.graph.storage import open_graph, save_graph
from graphsage.tables.spec import DIRECTIONS

TYPES = ("a", "b c", "in")


@st.composite
def typed(draw: st.DrawFn, times: bool = True) -> Graph:
    """A graph of typed, weighted edges, with times or without, in any direction."""
    n, edges = draw(edge_lists())
    count = len(edges)
    columns: dict[str, object] = {}
    if draw(st.booleans()):
        columns["edge_type"] = draw(st.lists(st.sampled_from(TYPES), min_size=count, max_size=count))
        columns["edge_types"] = TYPES
    if draw(st.booleans()):
        columns["edge_weight"] = draw(st.lists(st.integers(0, 3), min_size=count, max_size=count))
    if times and draw(st.booleans()):
        columns["edge_time"] = draw(st.lists(st.integers(0, 3), min_size=count, max_size=count))
    return from_edges(edges, n, direction=draw(st.sampled_from(DIRECTIONS)), **columns)


@given(edge_lists(), st.sampled_from(DIRECTIONS), st.data())
def test_each_type_is_the_graph_of_its_own_edges(
    given_: tuple[int, list[tuple[int, int]]], direction: str, data: st.DataObject
) -> None:
    n, edges = given_
    types = data.draw(st.lists(st.sampled_from(TYPES), min_size=len(edges), max_size=len(edges)))
    graph = from_edges(edges, n, edge_type=types, edge_types=TYPES, direction=direction)
    assert types_of(graph) == TYPES
    assert direction_of(graph) == direction
    assert facts(graph, "relations") == facts(from_edges(edges, n, direction=direction), "relations")
    for name in TYPES:
        own = from_edges([e for e, t in zip(edges, types, strict=True) if t == name], n, direction=direction)
        for way in ("in", "out") if direction == "both" else ("",):
            found = graph.relations[f"{name} {way}".strip()]
            assert facts(found) == facts(own.relations.get(way, own)), (name, way)


@given(typed())
def test_a_folder_keeps_types_weights_and_times(tmp_path_factory: pytest.TempPathFactory, graph: Graph) -> None:
    folder = tmp_path_factory.mktemp("graph") / "saved"
    save_graph(graph, folder)
    assert facts(open_graph(folder)) == facts(graph)


@given(typed(times=False))
def test_the_edges_of_a_graph_make_the_same_graph(graph: Graph) -> None:
    found = edges_of(graph)
    again = from_edges(
        found.pairs,
        graph.num_nodes,
        edge_type=found.kinds,
        edge_types=found.types or None,
        edge_weight=found.weight,
        direction=direction_of(graph),
    )
    assert facts(again) == facts(graph)
    grown = graph.with_nodes(edges=np.zeros((0, 2), np.int64), ids=None)
    assert facts(grown) == facts(graph)


def test_weights_of_repeated_edges_add_up_and_zero_is_no_edge() -> None:
    edges = [(0, 1), (0, 1), (1, 0), (1, 2), (2, 2)]
    graph = from_edges(edges, 4, edge_weight=[1, 2.5, 1, 0, 3], direction="in")
    assert facts(graph)["indices"] == facts(from_edges([(0, 1), (1, 0), (2, 2)], 4, direction="in"))["indices"]
    assert graph.edge_weight is not None
    assert graph.edge_weight.tolist() == [1, 3.5, 3]
    merged = from_edges(edges, 4, edge_weight=[1, 2.5, 1, 0, 3])
    assert merged.edge_weight is not None
    assert merged.edge_weight.tolist() == [4.5, 4.5, 3]
    dated = from_edges(edges, 4, edge_weight=[1, 2.5, 1, 0, 3], edge_time=[5, 6, 5, 5, 5], direction="in")
    assert dated.neighbors(1).tolist() == [0, 0]  # the second weight is not known at time 5


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ({"edge_weight": [1, -2]}, "edge 1 has the weight -2; weights are finite numbers from 0"),
        ({"edge_weight": [float("nan"), 1]}, "edge 0 has the weight nan"),
        ({"edge_weight": [1, float("inf")]}, "edge 1 has the weight inf"),
        ({"edge_weight": [1]}, "edge_weight must hold one number for each of the 2 edges"),
        ({"edge_type": ["a"]}, "edge_type must hold one type for each of the 2 edges"),
        ({"edge_type": ["a", None]}, "edge 1 has no type"),
        ({"edge_type": ["a", "z"], "edge_types": ["a", "b"]}, "edge 1 has the type 'z', which is unknown; known types"),
        ({"edge_type": [0, 2], "edge_types": ["a", "b"]}, "edge 1 has the type 2; edge_types has 2 types"),
    ],
)
def test_bad_columns_are_one_sentence(columns: dict[str, list[object]], sentence: str) -> None:
    with pytest.raises(GraphError, match=sentence):
        from_edges([(0, 1), (1, 2)], 3, **columns)


def test_more_values_than_types_are_refused() -> None:
    names = [f"type {number}" for number in range(101)]
    with pytest.raises(GraphError, match="edges have 101 types; a graph has 1 to 100"):
        from_edges([(0, 1)], 2, edge_type=np.array([0]), edge_types=names)
    with pytest.raises(GraphError, match="edges have 101 types; a graph has 1 to 100"):
        from_edges([(0, 1)] * 101, 2, edge_type=list(range(101)))


def test_new_edges_have_types_and_weights_if_the_old_ones_have() -> None:
    x = normal(0, 3, 2)
    graph = from_edges([(0, 1), (1, 2)], 3, features=x, edge_type=["a", "b"], edge_weight=[1, 2])
    grown = graph.with_nodes(features=x[:1], edges=[(3, 0)], edge_type=["b"], edge_weight=[4])
    assert grown.relations["b"].neighbors(3).tolist() == [0]
    assert grown.relations["a"].neighbors(3).tolist() == []
    for missing in ({"edge_type": ["b"]}, {"edge_weight": [4]}):
        with pytest.raises(GraphError, match="if the graph's edges have, and only then; pass edge_"):
            graph.with_nodes(features=x[:1], edges=[(3, 0)], **missing)  # type: ignore[arg-type]
    with pytest.raises(GraphError, match="edge 0 has the type 'z', which is unknown; known types are 'a', 'b'"):
        graph.with_nodes(features=x[:1], edges=[(3, 0)], edge_type=["z"], edge_weight=[1])
    assert torch.equal(edges_of(graph).pairs, torch.tensor([[0, 1], [1, 2]]))


@given(typed())
def test_arrow_keeps_types_weights_and_times(graph: Graph) -> None:
    assert facts(Graph.from_arrow(*graph.to_arrow())) == facts(graph)

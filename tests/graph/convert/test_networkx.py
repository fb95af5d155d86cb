"""What of a networkx graph becomes what."""

import sys
from typing import Any

import networkx as nx
import numpy as np
import pytest
import torch

from graphs import neighbor_lists
from graphsage.errors import ConfigError, DataError, GraphError
from graphsage.graph.graph import Graph


def triangle(**about: Any) -> Any:
    made: Any = nx.Graph()
    for i, node in enumerate("abc"):
        made.add_node(node, **{name: values[i] for name, values in about.items() if values[i] is not None})
    made.add_edges_from([("a", "b"), ("b", "c")])
    return made


def test_ids_are_the_nodes_and_a_directed_graph_hears_from_those_that_point_at_it() -> None:
    graph = Graph.from_networkx(nx.DiGraph([("x", "y"), ("z", "y")]))
    assert graph.directed
    assert graph.ids is not None
    assert list(graph.ids) == ["x", "y", "z"]
    assert neighbor_lists(graph) == {0: [], 1: [0, 2], 2: []}


def test_row_numbers_are_no_ids() -> None:
    assert Graph.from_networkx(nx.path_graph(3)).ids is None


@pytest.mark.parametrize(("kind", "directed"), [(nx.MultiGraph, False), (nx.MultiDiGraph, True)])
def test_edges_of_a_multigraph_are_merged_and_the_earliest_time_stays(kind: Any, directed: bool) -> None:
    made = kind()
    made.add_edge(0, 1, time=7)
    made.add_edge(0, 1, time=3)
    graph = Graph.from_networkx(made)
    assert (graph.num_edges, graph.directed) == (1, directed)
    assert graph.edge_time is not None
    assert set(graph.edge_time.tolist()) == {3}


def test_weights_of_repeated_edges_add_up_and_types_are_relations() -> None:
    made: Any = nx.MultiDiGraph()
    made.add_edge("a", "b", kind="road", kg=1)
    made.add_edge("a", "b", kind="road", kg=2)
    made.add_edge("a", "b", kind="rail", kg=5)
    made.add_edge("b", "a", kind="road", kg=0)
    graph = Graph.from_networkx(made, edge_type="kind", edge_weight="kg")
    assert {name: neighbor_lists(each) for name, each in graph.relations.items()} == {
        "rail": {0: [], 1: [0]},
        "road": {0: [], 1: [0]},
    }
    assert [each.edge_weight.tolist() for each in graph.relations.values()] == [[5], [3]]
    both = Graph.from_networkx(made, edge_type="kind", edge_weight="kg", direction="both")
    assert [*both.relations] == ["rail in", "rail out", "road in", "road out"]


@pytest.mark.parametrize("name", ["x", "feature", "features", "feat"])
def test_features_are_found_by_their_usual_names(name: str) -> None:
    graph = Graph.from_networkx(triangle(**{name: [[1, 2], [3, 4], [5, 6]]}))
    assert graph.features is not None
    assert graph.features.tolist() == [[1, 2], [3, 4], [5, 6]]


def test_features_may_be_several_numbers_a_node() -> None:
    graph = Graph.from_networkx(triangle(age=[1, 2, 3], size=[0.5, 1, 1.5]), features=["age", "size"])
    assert graph.features is not None
    assert graph.features.tolist() == [[1, 0.5], [2, 1], [3, 1.5]]


@pytest.mark.parametrize("name", ["y", "label"])
def test_names_become_classes_in_sorted_order_and_none_is_unknown(name: str) -> None:
    graph = Graph.from_networkx(triangle(**{name: ["zoo", None, "art"]}))
    assert graph.class_names == ("art", "zoo")
    assert graph.labels is not None
    assert graph.labels.tolist() == [1, -1, 0]


def test_rows_of_zero_and_one_are_many_labels() -> None:
    graph = Graph.from_networkx(triangle(y=[[0, 1], [1, 1], [0, 0]]))
    assert graph.multilabel


def test_what_is_left_behind_is_named() -> None:
    made = nx.karate_club_graph()
    with pytest.warns(UserWarning, match="not carried over") as caught:
        graph = Graph.from_networkx(made)
    said = [str(warning.message) for warning in caught]
    assert said[0].startswith("node attributes not carried over: club")
    assert said[1] == ("edge attributes not carried over: weight; choose with edge_time=, edge_type=, edge_weight=")
    assert graph.labels is None
    with pytest.warns(UserWarning, match="weight"):
        graph = Graph.from_networkx(made, label="club")
    assert graph.class_names == ("Mr. Hi", "Officer")


@pytest.mark.parametrize(
    ("about", "options", "message"),
    [
        ({"x": [[1], None, [3]]}, {}, "node 'b' has no attribute 'x'; each of the 3 needs one"),
        ({"x": [[1], [1, 2], [3]]}, {}, "features must be vectors of one length"),
        ({"time": [1, None, 3]}, {}, "node 'b' has no attribute 'time'"),
        ({"time": [1, 2.5, 3]}, {}, "time must hold integers"),
        ({"y": [[0, 1], [float("nan"), 1], [0, 0]]}, {}, "some labels of node 1 are unknown"),
        ({"y": ["a", 1, 2]}, {}, "labels must be all names or all integers; got 1"),
        ({"x": [[1], [2], [3]]}, {"label": "kind"}, "no node has the attribute 'kind'; there are x"),
        ({}, {"features": "vector"}, "node 'a' has no attribute 'vector'"),
        ({}, {"edge_weight": "kg"}, r"edge \('a', 'b'\) has no attribute 'kg'; each of the 2 needs one"),
        ({}, {"direction": "out"}, "is undirected, so its edges have no direction 'out'"),
    ],
)
def test_what_cannot_be_used_is_named(about: dict[str, Any], options: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        Graph.from_networkx(triangle(**about), **options)


@pytest.mark.parametrize("nodes", [[(0, 0), (0, 1)], ["a", 1], [0.5]])
def test_nodes_that_are_not_all_strings_or_all_integers_are_an_error(nodes: list[Any]) -> None:
    made: Any = nx.Graph()
    made.add_nodes_from(nodes)
    with pytest.raises(GraphError, match="ids must be all strings or all integers"):
        Graph.from_networkx(made)


def test_an_object_of_another_kind_is_an_error() -> None:
    with pytest.raises(DataError, match="takes a networkx graph; got ndarray"):
        Graph.from_networkx(np.eye(2))


def test_a_missing_library_is_named_with_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "networkx", None)
    with pytest.raises(ConfigError, match=r"to_networkx needs networkx.*pip install networkx"):
        Graph.from_edges([[0, 1]]).to_networkx()


def test_numbers_with_a_fraction_are_targets() -> None:
    given = nx.path_graph(3)
    nx.set_node_attributes(given, {0: 0.5, 2: 2.0}, "y")
    graph = Graph.from_networkx(given)
    assert graph.regression
    assert graph.labels[[0, 2], 0].tolist() == [0.5, 2.0]
    assert bool(graph.labels[1].isnan())
    back = Graph.from_networkx(graph.to_networkx())
    assert torch.equal(back.labels.nan_to_num(), graph.labels.nan_to_num())

"""A graph that goes out into another library's object and comes back is the same graph."""

from typing import Any

import pytest
from hypothesis import assume, given

from graphs import facts, full_graphs
from graphsage.graph.build import direction_of, edges_of, from_edges, types_of
from graphsage.graph.convert.common import is_symmetric
from graphsage.graph.graph import Graph
from graphsage.tables.spec import DIRECTIONS


@given(graph=full_graphs())
def test_networkx_keeps_all_but_the_graph_number(graph: Graph) -> None:
    if not graph.num_edges:
        graph = graph.replace(edge_time=None)  # times are told by edges alone
    assert facts(Graph.from_networkx(graph.to_networkx()), "graph_number") == facts(graph, "graph_number")


@given(graph=full_graphs())
def test_pyg_keeps_everything(graph: Graph) -> None:
    assert facts(Graph.from_pyg(graph.to_pyg(), directed=graph.directed)) == facts(graph)


@given(graph=full_graphs())
def test_scipy_keeps_the_edges_and_takes_the_rest_beside_it(graph: Graph) -> None:
    beside = {"features": graph.features, "labels": graph.labels, "class_names": graph.class_names, "ids": graph.ids}
    back = Graph.from_scipy(graph.to_scipy(), directed=graph.directed, **beside)
    lost = "time", "graph_number", "edge_time"
    assert facts(back, *lost) == facts(graph, *lost)


@given(graph=full_graphs())
def test_direction_is_found_where_it_can_be_seen(graph: Graph) -> None:
    known = facts(
        graph, "directed", "direction", "time", "graph_number", "edge_time", "features", "labels", "class_names", "ids"
    )
    for back in (Graph.from_scipy(graph.to_scipy()), Graph.from_pyg(graph.replace(edge_time=None).to_pyg())):
        assert {name: value for name, value in facts(back).items() if name in known} == known
        assert back.directed == (not is_symmetric(graph.replace(edge_time=None)))


@given(graph=full_graphs())
def test_arrow_keeps_everything(graph: Graph) -> None:
    assert facts(Graph.from_arrow(*graph.to_arrow())) == facts(graph)


@pytest.mark.parametrize("library", ["pandas", "polars"])
@given(graph=full_graphs())
def test_data_frames_keep_everything_but_what_no_column_says(library: str, graph: Graph) -> None:
    module = pytest.importorskip(library)
    frames = [table.to_pandas() if library == "pandas" else module.from_arrow(table) for table in graph.to_arrow()]
    names = graph.class_names or [str(number) for number in range(max(1, graph.num_classes))]
    back = Graph.from_pandas(*frames, directed=graph.directed, class_names=names)
    assert facts(back, "class_names") == facts(graph, "class_names")


def chosen(graph: Graph, **names: str) -> dict[str, Any]:
    """The options that name the edge attributes a graph has, and its direction."""
    there = {"edge_type": bool(types_of(graph)), "edge_weight": edges_of(graph).weight is not None}
    return {option: name for option, name in names.items() if there[option]} | {"direction": direction_of(graph)}


@given(graph=full_graphs(directions=DIRECTIONS, of_edges=True))
def test_networkx_keeps_directions_types_weights_and_times(graph: Graph) -> None:
    assume(graph.num_edges)
    back = Graph.from_networkx(graph.to_networkx(), **chosen(graph, edge_type="type", edge_weight="weight"))
    assert facts(back, "graph_number") == facts(graph, "graph_number")


@given(graph=full_graphs(directions=DIRECTIONS, of_edges=True))
def test_pyg_keeps_directions_types_weights_and_times(graph: Graph) -> None:
    back = Graph.from_pyg(graph.to_pyg(), **chosen(graph, edge_type="edge_type", edge_weight="edge_weight"))
    assert facts(back) == facts(graph)


@given(graph=full_graphs(directions=DIRECTIONS, of_edges=True))
def test_scipy_keeps_directions_and_weights(graph: Graph) -> None:
    edges, direction = edges_of(graph), direction_of(graph)
    known = from_edges(edges.pairs, graph.num_nodes, edge_weight=edges.weight, direction=direction)
    back = Graph.from_scipy(graph.to_scipy(), weights=edges.weight is not None, direction=direction)
    assert facts(back) == facts(known)

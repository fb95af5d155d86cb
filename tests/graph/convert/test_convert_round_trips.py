"""A graph that goes out into another library's object and comes back is the same graph."""

import pytest
from hypothesis import given

from graphs import facts, full_graphs
from graphsage.graph.convert.common import is_symmetric
from graphsage.graph.graph import Graph


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

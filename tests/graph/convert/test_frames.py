"""Tables of pandas, polars and Arrow."""

import datetime
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from graphs import neighbor_lists
from graphsage.errors import DataError
from graphsage.graph.convert.frames import graph_and_splits
from graphsage.graph.graph import Graph

EDGES = {"source": ["a", "c"], "target": ["b", "b"]}
NODES = {"id": ["c", "b", "a"], "size": [1.5, 2, 3], "big": [True, False, True], "kind": ["x", None, "w"]}


def arrow(**columns: Any) -> Any:
    return pa.table(columns)


def test_ids_of_the_node_table_give_the_rows() -> None:
    graph = Graph.from_pandas(pd.DataFrame(EDGES), pd.DataFrame(NODES), features=["size", "big"], label="kind")
    assert graph.ids is not None
    assert list(graph.ids) == ["c", "b", "a"]
    assert neighbor_lists(graph) == {0: [1], 1: [0, 2], 2: [1]}
    assert graph.features is not None
    assert graph.features.tolist() == [[1.5, 1], [2, 0], [3, 1]]
    assert graph.class_names == ("w", "x")
    assert graph.labels is not None
    assert graph.labels.tolist() == [1, -1, 0]


def test_with_directed_a_target_hears_from_its_sources() -> None:
    assert neighbor_lists(Graph.from_arrow(arrow(**EDGES), directed=True)) == {0: [], 1: [0, 2], 2: []}


def test_without_a_node_table_nodes_are_the_sorted_ids_in_the_edges() -> None:
    graph = Graph.from_arrow(arrow(src=[30, 10], dst=[20, 30]))
    assert graph.ids is not None
    assert list(graph.ids) == [10, 20, 30]
    assert neighbor_lists(graph) == {0: [2], 1: [2], 2: [0, 1]}


def test_without_an_id_column_edges_hold_row_numbers() -> None:
    graph = Graph.from_arrow(arrow(source=[0], target=[2]), arrow(size=[1.0, 2.0, 3.0]), features="size")
    assert graph.ids is None
    assert neighbor_lists(graph) == {0: [2], 1: [], 2: [0]}


def test_columns_can_have_any_name() -> None:
    edges, nodes = pd.DataFrame({"who": [1], "whom": [2]}), pd.DataFrame({"key": [2, 1]})
    assert neighbor_lists(Graph.from_pandas(edges, nodes, source="who", target="whom", id="key")) == {0: [1], 1: [0]}


def test_polars_tables_are_read() -> None:
    polars = pytest.importorskip("polars")
    graph = Graph.from_polars(polars.DataFrame(EDGES), polars.DataFrame(NODES), features=["size"])
    assert neighbor_lists(graph) == {0: [1], 1: [0, 2], 2: [1]}
    with pytest.raises(DataError, match=r"got LazyFrame; pass .collect\(\)"):
        Graph.from_polars(polars.DataFrame(EDGES).lazy())


def test_categories_of_pandas_are_ids_and_classes() -> None:
    edges = pd.DataFrame(EDGES).astype("category")
    nodes = pd.DataFrame(NODES).astype({"id": "category", "kind": "category"})
    graph = Graph.from_pandas(edges, nodes, label="kind")
    assert graph.class_names == ("w", "x")
    assert graph.num_edges == 2


def test_dates_become_days_and_whole_numbers_stay() -> None:
    nodes = arrow(id=[0, 1], born=[datetime.date(1970, 1, 2), datetime.date(1971, 1, 1)])
    edges = arrow(source=[0], target=[1], when=pa.array([datetime.datetime(1970, 1, 11, 23)]))
    graph = Graph.from_arrow(edges, nodes, time="born", edge_time="when")
    assert graph.time is not None
    assert graph.time.tolist() == [1, 365]
    assert graph.edge_time is not None
    assert graph.edge_time.tolist() == [10, 10]


def test_a_column_of_train_val_and_test_is_a_split() -> None:
    nodes = arrow(id=[0, 1, 2, 3], part=["train", "valid", "test", None])
    _, splits = graph_and_splits(arrow(source=[0], target=[1]), nodes, split="part")
    assert splits["given"].codes.tolist() == [0, 1, 2, 3]


def test_lists_are_features_and_many_labels() -> None:
    nodes = pd.DataFrame({"id": [5, 6], "x": [np.array([1.0, 2.0]), np.array([3.0, 4.0])], "y": [[0, 1], [1, 1]]})
    graph = Graph.from_pandas(pd.DataFrame({"from": [5], "to": [6]}), nodes)
    assert graph.features is not None
    assert graph.features.tolist() == [[1, 2], [3, 4]]
    assert graph.multilabel


@pytest.mark.parametrize(
    ("edges", "nodes", "options", "message"),
    [
        ({"a": [1], "b": [2]}, None, {}, "no column is called source or src or from; name it: source=.*there are a, b"),
        (EDGES, None, {"source": "who"}, "must have one column 'who'; there are source, target"),
        (EDGES, {"id": ["a", "a", "b", "c"]}, {}, "ids must differ; row 1 repeats 'a'"),
        (EDGES, {"id": ["a"]}, {}, "3 ends of edges name 2 unknown nodes, such as 'c', 'b'"),
        (EDGES, {"id": ["a", None]}, {}, "nodes, column id: row 1 is empty; each row needs an id"),
        (EDGES, {"id": [1, 2]}, {}, "nodes have ids of type int64, edges large_string"),
        (EDGES, {"name": ["a"]}, {}, "no column of the nodes is called id"),
        ({"source": [1], "target": ["b"]}, None, {}, "source holds int64 and target large_string"),
        ({"source": [1.5], "target": [2.0]}, None, {}, "ids must be text or whole numbers; got double"),
        ({"source": ["a", None], "target": ["a", "b"]}, None, {}, "edges, column source: row 1 is empty"),
        (EDGES, None, {"label": "kind"}, "columns of the node table; pass it as the second table"),
        (EDGES, NODES, {"features": ["kind"]}, "nodes, column kind: row 1 is empty; each row needs a number"),
        (EDGES, NODES, {"features": ["id"]}, "nodes, column id: features must be numbers"),
        (EDGES, NODES, {"time": "size"}, "nodes, column size: times must be whole numbers or dates; got double"),
        (EDGES, NODES, {"label": "size"}, "nodes, column size: classes must be whole numbers; node 0 has 1.5"),
        (EDGES, NODES, {"split": "id"}, "column id must hold train, val, test or nothing; row 0 holds 'c'"),
        (EDGES, {**NODES, "x": [[1, 2], [1], [1, 2]]}, {}, "lists must have one length; row 0 has 2, row 1 has 1"),
        (EDGES, {**NODES, "x": [["a"], ["b"], ["c"]]}, {}, "lists must hold numbers"),
        ({"source": [], "target": []}, None, {}, "at least one node"),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_named(edges: Any, nodes: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        Graph.from_arrow(arrow(**edges), None if nodes is None else arrow(**nodes), **options)


def test_a_pandas_column_of_mixed_kinds_and_a_doubled_column_are_errors() -> None:
    with pytest.raises(DataError, match="mixes kinds of values"):
        Graph.from_pandas(pd.DataFrame({"source": ["a", 1], "target": ["b", "b"]}))
    with pytest.raises(DataError, match="two columns are called 'source'"):
        Graph.from_pandas(pd.DataFrame([["a", "b", "c"]], columns=["source", "source", "target"]))
    with pytest.raises(DataError, match="takes DataFrames; got dict"):
        Graph.from_pandas(EDGES)
    with pytest.raises(DataError, match="edges must be an Arrow table; got list"):
        Graph.from_arrow([1])

"""Graphs of pandas, polars and Arrow tables. How cells are read is tested in tests/tables."""

import datetime
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch

from graphs import neighbor_lists
from graphsage.errors import DataError
from graphsage.graph.convert.frames import graph_and_splits
from graphsage.graph.graph import Graph

EDGES = {"source": ["a", "c"], "target": ["b", "b"]}
NODES = {"id": ["c", "b", "a"], "size": [1.5, 2, 3], "big": [True, False, True], "kind": ["x", None, "w"]}


def test_ids_of_the_node_table_give_the_rows() -> None:
    graph = Graph.from_pandas(pd.DataFrame(EDGES), pd.DataFrame(NODES), features=["size", "b*"], label="kind")
    assert graph.ids is not None
    assert list(graph.ids) == ["c", "b", "a"]
    assert neighbor_lists(graph) == {0: [1], 1: [0, 2], 2: [1]}
    assert graph.features is not None
    assert graph.features.tolist() == [[1.5, 1], [2, 0], [3, 1]]
    assert graph.class_names == ("w", "x")
    assert graph.labels is not None
    assert graph.labels.tolist() == [1, -1, 0]


def test_options_of_tables_are_passed_on() -> None:
    nodes = {"key": ["a", "b"]}
    assert neighbor_lists(Graph.from_arrow(EDGES, nodes, id="key", unknown_nodes="drop")) == {0: [1], 1: [0]}
    assert neighbor_lists(Graph.from_arrow(EDGES, directed=True)) == {0: [], 1: [0, 2], 2: []}


def test_categories_of_pandas_are_ids_and_classes() -> None:
    edges = pd.DataFrame(EDGES).astype("category")
    nodes = pd.DataFrame(NODES).astype({"id": "category", "kind": "category"})
    graph = Graph.from_pandas(edges, nodes, label="kind")
    assert graph.class_names == ("w", "x")
    assert graph.num_edges == 2


def test_dates_become_seconds_and_integers_stay() -> None:
    nodes = {"id": [0, 1], "born": [datetime.date(1970, 1, 2), datetime.date(1969, 12, 31)]}
    edges = {"source": [0], "target": [1], "when": pa.array([datetime.datetime(1970, 1, 1, 0, 0, 10, 900_000)])}
    graph = Graph.from_arrow(edges, nodes, time="born", edge_time="when")
    assert graph.time is not None
    assert graph.time.tolist() == [86_400, -86_400]
    assert graph.edge_time is not None
    assert graph.edge_time.tolist() == [10, 10]


def test_a_column_of_train_val_and_test_is_a_split() -> None:
    nodes = {"id": [0, 1, 2, 3], "part": ["train", "valid", "test", None]}
    _, splits = graph_and_splits({"source": [0], "target": [1]}, nodes, split="part")
    assert splits["given"].codes.tolist() == [0, 1, 2, 3]


def test_lists_are_features_and_many_labels() -> None:
    nodes = pd.DataFrame({"id": [5, 6], "x": [np.array([1.0, 2.0]), np.array([3.0, 4.0])], "y": [[0, 1], [1, 1]]})
    graph = Graph.from_pandas(pd.DataFrame({"from": [5], "to": [6]}), nodes)
    assert graph.features is not None
    assert graph.features.tolist() == [[1, 2], [3, 4]]
    assert graph.labels is not None
    assert graph.labels.tolist() == [[0, 1], [1, 1]]


def test_half_precision_stays() -> None:
    nodes = {"id": [5, 6], "a": np.ones(2, np.float16), "b": [np.zeros(2, np.float16)] * 2}
    edges = {"source": [5], "target": [6]}
    made = [Graph.from_arrow(edges, nodes, features=features).features for features in (["a", "b"], ["a", "id"])]
    assert made[0] is not None
    assert (made[0].dtype, made[0].shape) == (torch.float16, (2, 3))
    assert made[1] is not None
    assert made[1].dtype == torch.float32


def test_with_class_names_labels_are_their_numbers() -> None:
    nodes = {"id": ["a", "b", "c"], "kind": [-1, 1, None]}
    graph = Graph.from_arrow(EDGES, nodes, label="kind", class_names=["w", "x"])
    assert graph.labels is not None
    assert (graph.labels.tolist(), graph.class_names) == ([-1, 1, -1], ("w", "x"))
    with pytest.raises(DataError, match="nodes column 'kind' holds names; with class_names it must hold their numbers"):
        Graph.from_arrow(EDGES, NODES, label="kind", class_names=["w", "x"])


@pytest.mark.parametrize(
    ("nodes", "options", "message"),
    [
        (None, {"label": "kind"}, "columns of the node table; pass it as `nodes`"),
        (NODES, {"features": ["size", "none*"]}, "nodes has no column that matches 'none[*]'; its columns are 'id'"),
        ({**NODES, "size": [1, None, 2]}, {"features": "size"}, "nodes column 'size' row 2 is missing; fill it"),
        (
            {**NODES, "size": [1, 1e300, 2]},
            {"features": "size"},
            r"nodes column 'size' row 2 is 1e\+300, beyond float32",
        ),
        ({**NODES, "x": [[1, 2], [1], [1, 2]]}, {}, "nodes column 'x' row 2 has 1 numbers; 2 were expected"),
        ({**NODES, "y": [1, [2], 3]}, {}, "nodes cannot be read as a table"),
    ],
)
def test_what_cannot_be_used_is_named(nodes: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        Graph.from_arrow(EDGES, nodes, **options)


def test_without_class_names_minus_one_is_a_class_with_a_warning() -> None:
    nodes = {"id": ["a", "b", "c"], "kind": [-1, 1, None]}
    with pytest.warns(UserWarning, match="-1 is read as a class; leave the cell empty"):
        graph = Graph.from_arrow(EDGES, nodes, label="kind")
    assert graph.class_names == ("-1", "1")

"""Input that makes no graph is refused with the name of the offending row."""

import numpy as np
import pytest
import torch

from graphsage.errors import DataError, GraphError, GraphSageError
from graphsage.graph.build import from_edges

PAIR = [(0, 1)]


def features(row: int, value: float) -> np.ndarray:
    x = np.zeros((4, 2))
    x[row, 1] = value
    return x


BAD_EDGES = {
    "edge 1 points at node 4, but the graph has 4 nodes": {"edges": [(0, 3), (4, 1)], "num_nodes": 4},
    "edge 2 points at node -1": {"edges": [(0, 1), (1, 0), (1, -1)], "num_nodes": 2},
    "edge 0 points at node -5": {"edges": [(-5, -2)]},
    "edge 0 points at node -1": {"edges": [(-1, -1)]},
    f"edge 0 points at node {2**62}": {"edges": [(0, 2**62)], "num_nodes": 3},
    f"edge 1 points at node {2**63 + 5}": {"edges": np.array([[0, 1], [2**63 + 5, 0]], np.uint64), "num_nodes": 3},
    f"edge 1 points at node {2**50}": {"edges": [(0, 1), (2**50, 0)]},
    r"edges must be an \(E, 2\) array .*; got shape \(2, 3\)": {"edges": [(0, 1, 2), (1, 2, 3)]},
    r"got shape \(2,\)": {"edges": [0, 1]},
    "edges must hold integers; got float64": {"edges": [(0.0, 1.5)]},
    "edges must hold integers; got <U1": {"edges": [("a", "b")]},
    "at least one node": {"edges": []},
    "at least one node.*; got 0": {"edges": [], "num_nodes": 0},
    "at least one node.*; got -3": {"edges": [], "num_nodes": -3},
    r"edge_time must hold one number for each of the 1 edges; got shape \(2,\)": {"edges": PAIR, "edge_time": [1, 2]},
    "edge_time must hold integers": {"edges": PAIR, "edge_time": [0.5]},
}
BAD_ROWS = {
    "features of node 2 hold NaN": {"features": features(2, np.nan)},
    "features of node 3 hold NaN or infinity": {"features": features(3, -np.inf)},
    "features of node 1 hold": {"features": features(1, 1e300)},  # infinity in 32 bits
    r"features must be \(4, D\).*got shape \(3, 2\)": {"features": np.zeros((3, 2))},
    r"features must be \(4, D\).*got shape \(4,\)": {"features": np.zeros(4)},
    "at least one column": {"features": np.zeros((4, 0))},
    "features must be numbers; got <U1": {"features": [["a"], ["b"], ["c"], ["d"]]},
    "features must be numbers; got complex": {"features": np.zeros((4, 2), complex)},
    r"features must be numbers; got torch\.complex64": {"features": torch.zeros(4, 2, dtype=torch.complex64)},
    r"labels must have one row for each of the 4 nodes.*got shape \(2,\)": {"labels": [0, 1]},
    r"got shape \(4, 1, 1\)": {"labels": np.zeros((4, 1, 1), int)},
    r"got shape \(\)": {"labels": 3},
    "node 3 has -2": {"labels": [0, 1, -1, -2]},
    "classes must be integers.*float64": {"labels": [0.0, 1.0, 2.0, 3.0]},
    r"labels must have one row for each of the 4 nodes.*got shape \(3,\)": {"labels": ["a", "b", "c"]},
    "node 2 has 5 for label 1": {"labels": [[0, 1], [1, 0], [0, 5], [1, 1]]},
    "some labels of node 1 are unknown; give all": {"labels": [[0, 1], [np.nan, 0], [0, 1], [1, 1]]},
    "labels use 3 classes but class_names has 2": {"labels": [0, 1, 2, 0], "class_names": ["a", "b"]},
    "labels use 2 classes but class_names has 1": {"labels": [[0, 1]] * 4, "class_names": ["a"]},
    "ids must hold one id for each of the 4 nodes; got 3": {"ids": ["a", "b", "c"]},
    "row 2 repeats 'a'": {"ids": ["a", "b", "a", "d"]},
    "row 3 repeats 7": {"ids": [7, 8, 9, 7]},
    "row 1 is 2": {"ids": ["a", 2, "c", "d"]},
    "row 2 is None": {"ids": ["a", "b", None, "d"]},
    r"time must hold one number for each of the 4 nodes; got shape \(2,\)": {"time": [1, 2]},
    "time must hold integers": {"time": [0.5, 1, 2, 3]},
    "time must hold integers.*datetime64": {"time": np.zeros(4, "datetime64[D]")},
    "graph_number must hold one number": {"graph_number": [[1], [1], [1], [1]]},
}


@pytest.mark.parametrize("message", list(BAD_EDGES))
def test_wrong_edges_are_named(message: str) -> None:
    with pytest.raises(GraphError, match=message):
        from_edges(**BAD_EDGES[message])  # type: ignore[arg-type]


@pytest.mark.parametrize("message", list(BAD_ROWS))
def test_wrong_rows_are_named(message: str) -> None:
    with pytest.raises(GraphError, match=message):
        from_edges(PAIR, 4, **BAD_ROWS[message])  # type: ignore[arg-type]


def test_row_counts_that_differ_are_refused_also_without_num_nodes() -> None:
    with pytest.raises(GraphError, match="labels must have one row for each of the 2 nodes"):
        from_edges(PAIR, features=np.eye(2), labels=[0, 1, 1])
    with pytest.raises(GraphError, match="ids must hold one id for each of the 2 nodes; got 3"):
        from_edges(PAIR, features=np.eye(2), ids=[1, 2, 3])
    with pytest.raises(GraphError, match="ids must hold one id for each of the 4 nodes; got 3"):
        from_edges(PAIR, features=np.eye(2), ids=["a", "b"]).with_nodes(features=np.eye(2), edges=[], ids=["c"])


def test_a_row_far_into_a_large_table_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graphsage.graph.build._CHECK_ROWS", 3)
    x = np.zeros((10, 2), np.float32)
    x[7, 0] = np.nan
    with pytest.raises(GraphError, match="node 7"):
        from_edges(PAIR, features=x)


def test_errors_are_of_one_family_and_value_errors_too() -> None:
    with pytest.raises(ValueError, match="edge 0") as caught:
        from_edges([(0, 9)], 2)
    assert isinstance(caught.value, GraphError)
    assert isinstance(caught.value, DataError)
    assert isinstance(caught.value, GraphSageError)

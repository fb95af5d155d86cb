"""Adjacency matrices."""

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from graphs import neighbor_lists
from graphsage.errors import DataError, GraphError
from graphsage.graph.graph import Graph

ONE_WAY = np.array([[0, 1, 0], [0, 0, 1], [0, 0, 1]])


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csc_matrix, sparse.coo_array, sparse.lil_matrix])
def test_an_entry_u_v_is_an_edge_from_u_to_v_in_every_format(kind: Any) -> None:
    graph = Graph.from_scipy(kind(ONE_WAY))
    assert graph.directed
    assert neighbor_lists(graph) == {0: [], 1: [0], 2: [1, 2]}


def test_a_triangular_matrix_can_be_meant_undirected() -> None:
    graph = Graph.from_scipy(sparse.csr_array(ONE_WAY), directed=False)
    assert neighbor_lists(graph) == {0: [1], 1: [0, 2], 2: [1, 2]}
    assert not graph.directed


def test_a_symmetric_matrix_is_an_undirected_graph() -> None:
    assert not Graph.from_scipy(sparse.csr_array(ONE_WAY + ONE_WAY.T > 0)).directed


def test_stored_zeros_are_no_edges() -> None:
    matrix = sparse.coo_array(([0.0, 1.0], ([0, 1], [1, 0])), shape=(2, 2))
    assert neighbor_lists(Graph.from_scipy(matrix)) == {0: [1], 1: []}


def test_weights_are_left_behind_with_a_warning() -> None:
    with pytest.warns(UserWarning, match="values of the matrix not carried over: weights"):
        graph = Graph.from_scipy(sparse.csr_array(ONE_WAY * 0.5))
    assert graph.num_edges == 3


def test_values_are_weights_if_asked_for() -> None:
    graph = Graph.from_scipy(sparse.csr_array(ONE_WAY * 0.5), weights=True)
    assert graph.edge_weight is not None
    assert graph.edge_weight.tolist() == [0.5] * 3
    assert graph.directed


def test_weights_of_both_entries_of_an_undirected_edge_do_not_add_up() -> None:
    symmetric = sparse.csr_array(np.array([[4.0, 2, 0], [2, 0, 3], [0, 3, 0]]))
    for directed in (None, False):
        graph = Graph.from_scipy(symmetric, weights=True, directed=directed)
        assert not graph.directed
        assert graph.edge_weight is not None
        assert graph.edge_weight.tolist() == [4, 2, 2, 3, 3]
    lopsided = sparse.csr_array(np.array([[0, 2.0], [1, 0]]))
    assert Graph.from_scipy(lopsided, weights=True).directed
    merged = Graph.from_scipy(lopsided, weights=True, directed=False)
    assert merged.edge_weight is not None
    assert merged.edge_weight.tolist() == [3, 3]


@pytest.mark.parametrize("value", [-1, float("nan"), float("inf")])
def test_weights_that_are_none_are_refused(value: float) -> None:
    matrix = sparse.csr_array(np.array([[0, value], [1, 0]]))
    with pytest.raises(GraphError, match="weights are finite numbers from 0"):
        Graph.from_scipy(matrix, weights=True)


def test_edge_times_and_types_are_left_behind_with_a_warning() -> None:
    graph = Graph.from_edges([[0, 1], [0, 1]], edge_type=["a", "b"], edge_time=[1, 2], directed=True)
    with pytest.warns(UserWarning, match="edge attributes not carried over: time, type") as caught:
        made = graph.to_scipy()
    assert len(caught) == 1
    assert made.todense().tolist() == [[0, 1], [0, 0]]


def test_sparse_features_become_dense_and_labels_may_be_names() -> None:
    graph = Graph.from_scipy(
        sparse.csr_array(ONE_WAY),
        features=sparse.eye_array(3, format="csr"),
        labels=["b", "a", None],
        ids=["x", "y", "z"],
    )
    assert graph.features is not None
    assert graph.features.tolist() == np.eye(3).tolist()
    assert graph.class_names == ("a", "b")
    assert graph.labels is not None
    assert graph.labels.tolist() == [1, 0, -1]


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (np.eye(2), "takes a sparse matrix; got ndarray"),
        (sparse.csr_array((2, 3)), r"must be square; got shape \(2, 3\)"),
        (sparse.csr_array((0, 0)), "at least one node"),
    ],
)
def test_what_is_no_adjacency_is_an_error(matrix: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        Graph.from_scipy(matrix)


def test_features_too_wide_to_be_dense_are_refused_before_they_are_made() -> None:
    wide = sparse.csr_array((3, 2**40))
    with pytest.raises(DataError, match="too many to make dense"):
        Graph.from_scipy(sparse.csr_array(ONE_WAY), features=wide)


def test_ids_must_fit_the_matrix() -> None:
    with pytest.raises(GraphError, match="one id for each of the 3 nodes"):
        Graph.from_scipy(sparse.csr_array(ONE_WAY), ids=["a"])

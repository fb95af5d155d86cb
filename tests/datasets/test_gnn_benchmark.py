"""gnn-benchmark's `.npz` files, written here array by array."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from graphs import neighbor_lists
from graphsage.datasets.open import open_data
from graphsage.errors import DataError

DATA = Path(__file__).parents[2] / "../shared/data"
ADJACENCY = sparse.csr_matrix(np.array([[0, 1, 0], [0, 0, 1], [0, 0, 0]], np.float32))
FEATURES = sparse.csr_matrix(np.array([[0, 1], [2, 0], [0, 0]], np.float32))


def arrays(prefix: str, matrix: Any) -> dict[str, Any]:
    parts = {"data": matrix.data, "indices": matrix.indices, "indptr": matrix.indptr, "shape": np.array(matrix.shape)}
    return {f"{prefix}_{name}": array for name, array in parts.items()}


def write(path: Path, **more: Any) -> Path:
    content = {**arrays("adj", ADJACENCY), **arrays("attr", FEATURES), "labels": np.array([2, 0, 1]), **more}
    np.savez_compressed(path, **{name: value for name, value in content.items() if value is not None})
    return path


def test_graph_features_and_classes_are_read(tmp_path: Path) -> None:
    data = open_data(write(tmp_path / "toy.npz"))
    assert (data.name, data.splits, data.default_split) == ("toy", {}, "random")
    assert neighbor_lists(data.graph) == {0: [1], 1: [0, 2], 2: [1]}
    assert data.graph.features is not None
    assert data.graph.features.tolist() == FEATURES.toarray().tolist()
    assert data.graph.labels is not None
    assert data.graph.labels.tolist() == [2, 0, 1]


def test_names_are_read_unless_they_are_pickled(tmp_path: Path) -> None:
    names = {"class_names": np.array(["x", "y", "z"]), "node_names": np.array(["a", "b", "c"])}
    graph = open_data(write(tmp_path / "toy.npz", **names)).graph
    assert graph.class_names == ("x", "y", "z")
    assert graph.ids is not None
    assert list(graph.ids) == ["a", "b", "c"]
    pickled = {name: array.astype(object) for name, array in names.items()}
    graph = open_data(write(tmp_path / "toy.npz", **pickled)).graph
    assert (graph.class_names, graph.ids) == (None, None)


def test_dense_features_and_sparse_labels_are_read(tmp_path: Path) -> None:
    labels = arrays("labels", sparse.csr_matrix(np.array([[1, 0], [1, 1], [0, 0]])))
    none: dict[str, Any] = {f"attr_{name}": None for name in ("data", "indices", "indptr", "shape")}
    graph = open_data(write(tmp_path / "toy.npz", **none, labels=None, attr_matrix=np.eye(3), **labels)).graph
    assert graph.multilabel
    assert graph.num_features == 3


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"adj_shape": np.array([3, 4])}, "toy.npz: an adjacency matrix must be square"),
        ({"adj_indices": np.array([1, 7])}, "the sparse matrix adj_ is damaged"),
        ({"adj_indices": None}, "lacks the array 'adj_indices'"),
        ({"labels": np.array([0, 1])}, "toy.npz: labels must have one row for each of the 3 nodes"),
        ({"labels": np.array([0, 1, 2], object)}, "labels.npy holds Python objects"),
        ({"attr_shape": np.array([3, 2**40])}, "too many to make dense"),
        ({"attr_data": np.array([np.nan, 1], np.float32)}, "toy.npz: features of node 0 hold NaN"),
    ],
)
def test_broken_files_are_errors_that_name_the_file(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        open_data(write(tmp_path / "toy.npz", **change))


def test_a_file_cut_short_is_an_error(tmp_path: Path) -> None:
    path = write(tmp_path / "toy.npz")
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(DataError, match=r"toy.npz is not a whole .npz file"):
        open_data(path)


@pytest.mark.slow
@pytest.mark.data
def test_a_real_graph_has_its_known_size(tmp_path: Path) -> None:
    if not (DATA / "export.py").exists():
        pytest.skip("the data sets of ../shared/data are not here")
    subprocess.run([sys.executable, DATA / "export.py", "amazon_photo", tmp_path], check=True, timeout=200)
    edges = np.loadtxt(tmp_path / "edges.csv", np.int64, delimiter=",", skiprows=1)
    labels = np.loadtxt(tmp_path / "nodes.csv", np.int64, delimiter=",", skiprows=1, usecols=1)
    n = len(labels)
    adjacency = sparse.csr_matrix((np.ones(len(edges), np.float32), edges.T), shape=(n, n))
    features = sparse.load_npz(tmp_path / "features.npz")
    parts = {**arrays("adj", adjacency), **arrays("attr", features)}
    graph = open_data(write(tmp_path / "photo.npz", **parts, labels=labels)).graph
    assert (graph.num_nodes, graph.num_edges, graph.num_features, graph.num_classes) == (7650, 119_081, 745, 8)

"""GraphSAINT's folder, written here file by file."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy import sparse

from graphs import edge_set, neighbor_lists
from graphsage.datasets.open import open_data
from graphsage.errors import DataError
from graphsage.graph.graph import Graph
from graphsage.graph.split import training_graph

FULL = np.array([[0, 1, 1, 0], [1, 0, 0, 1], [1, 0, 0, 0], [0, 1, 0, 0]], bool)
ROLES = {"tr": [0, 1], "va": [2], "te": [3]}
CLASSES: dict[str, Any] = {"0": 1, "1": 0, "2": 2, "3": 1}
FEATURES = np.arange(8, dtype=np.float32).reshape(4, 2)


def write(folder: Path, full: Any = FULL, roles: Any = ROLES, classes: Any = CLASSES, features: Any = FEATURES) -> Path:
    seen = np.isin(np.arange(4), [0, 1])
    sparse.save_npz(folder / "adj_full.npz", sparse.csr_matrix(full))
    sparse.save_npz(folder / "adj_train.npz", sparse.csr_matrix(FULL & seen & seen[:, None]))
    (folder / "role.json").write_text(json.dumps(roles))
    (folder / "class_map.json").write_text(json.dumps(classes))
    if features is not None:
        np.save(folder / "feats.npy", features)
    return folder


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_graph_roles_classes_and_features_are_read(tmp_path: Path, kind: Any) -> None:
    data = open_data(write(tmp_path, features=FEATURES.astype(kind)))
    assert neighbor_lists(data.graph) == {0: [1, 2], 1: [0, 3], 2: [0], 3: [1]}
    assert not data.graph.directed
    assert data.split().codes.tolist() == [0, 0, 1, 2]
    assert data.graph.labels is not None
    assert data.graph.labels.tolist() == [1, 0, 2, 1]
    assert data.graph.features is not None
    assert data.graph.features.dtype == torch.float32
    assert data.graph.features.tolist() == FEATURES.tolist()


def test_the_training_graph_is_the_one_that_the_folder_holds(tmp_path: Path) -> None:
    data = open_data(write(tmp_path))
    held = Graph.from_scipy(sparse.load_npz(tmp_path / "adj_train.npz"))
    assert edge_set(training_graph(data.graph, data.split())) == edge_set(held)


def test_an_adjacency_of_one_direction_is_made_undirected(tmp_path: Path) -> None:
    graph = open_data(write(tmp_path, full=np.triu(FULL))).graph
    assert neighbor_lists(graph) == {0: [1, 2], 1: [0, 3], 2: [0], 3: [1]}
    assert not graph.directed


def test_lists_are_many_labels_and_a_missing_class_is_unknown(tmp_path: Path) -> None:
    assert open_data(write(tmp_path, classes={str(i): [1, i % 2] for i in range(4)})).graph.multilabel
    graph = open_data(write(tmp_path, classes={"0": 1}, features=None)).graph
    assert graph.labels is not None
    assert graph.labels.tolist() == [1, -1, -1, -1]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"roles": {"tr": [0], "va": [1]}}, "role.json must have a list of nodes as 'te'"),
        ({"roles": {**ROLES, "te": [4]}}, "role.json: te names node 4; nodes are 0 to 3"),
        ({"roles": {**ROLES, "te": ["3"]}}, "role.json: te names node '3'"),
        ({"roles": {**ROLES, "te": [0]}}, "te names a node that has another role"),
        ({"classes": {**CLASSES, "2": "x"}}, "class_map.json: the class of node 2 must be a number from 0 on; got 'x'"),
        ({"classes": {**CLASSES, "0": [0, 1]}}, "class_map.json: node 1 must have 2 labels of 0 and 1; got 0"),
        ({"features": FEATURES[:3]}, "feats.npy has 3 rows, but adj_full.npz has 4 nodes"),
        ({"features": np.full((4, 1), np.inf)}, "features of node 0 hold NaN or infinity"),
        ({"full": FULL[:, :3]}, "must be square"),
    ],
)
def test_broken_folders_are_errors_that_name_the_file(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        open_data(write(tmp_path, **change))


def test_a_node_that_the_class_map_lacks_is_unlabeled(tmp_path: Path) -> None:
    one = open_data(write(tmp_path, classes={"0": 1, "3": 0})).graph
    assert one.labels is not None
    assert one.labels.tolist() == [1, -1, -1, 0]
    many = open_data(write(tmp_path, classes={"0": [1, 0], "2": [0, 0]})).graph
    assert many.labels is not None
    assert many.labels.tolist() == [[1, 0], [255, 255], [0, 0], [255, 255]]

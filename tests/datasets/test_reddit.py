"""Reddit in PyG's and DGL's form, written here in small."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from graphs import neighbor_lists
from graphsage.datasets.open import open_data
from graphsage.errors import DataError

GRAPH = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
DATA: dict[str, Any] = {
    "feature": np.arange(6, dtype=np.float32).reshape(3, 2),
    "label": np.array([4, 0, 2]),
    "node_types": np.array([1, 2, 3]),
    "node_ids": np.array([70, 80, 90]),
}


def write(folder: Path, kind: str = "coo", packed: bool = True, **data: Any) -> Path:
    folder.mkdir(exist_ok=True)
    sparse.save_npz(folder / "reddit_graph.npz", sparse.coo_matrix(GRAPH).asformat(kind), compressed=packed)
    content = {name: value for name, value in {**DATA, **data}.items() if value is not None}
    (np.savez_compressed if packed else np.savez)(folder / "reddit_data.npz", **content)
    return folder


@pytest.mark.parametrize("kind", ["coo", "csr"])
@pytest.mark.parametrize("packed", [True, False])
def test_graph_types_classes_features_and_ids_are_read(tmp_path: Path, kind: str, packed: bool) -> None:
    data = open_data(write(tmp_path, kind, packed))
    graph = data.graph
    assert data.name == "reddit"
    assert neighbor_lists(graph) == {0: [1], 1: [0, 2], 2: [1]}
    assert not graph.directed
    assert data.split().codes.tolist() == [0, 1, 2]
    assert graph.labels is not None
    assert graph.labels.tolist() == [4, 0, 2]
    assert graph.features is not None
    assert graph.features.tolist() == DATA["feature"].tolist()
    assert graph.ids is not None
    assert list(graph.ids) == [70, 80, 90]


@pytest.mark.parametrize("ids", [None, np.arange(3), np.array([{}, {}, {}])])
def test_without_useful_ids_row_numbers_are_the_ids(tmp_path: Path, ids: Any) -> None:
    assert open_data(write(tmp_path, node_ids=ids)).graph.ids is None


def test_the_folder_above_raw_names_the_data_too(tmp_path: Path) -> None:
    write(tmp_path / "raw")
    assert open_data(tmp_path).graph.num_nodes == 3


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"label": np.array([1])}, "reddit_data.npz has 1 rows, but reddit_graph.npz has 3 nodes"),
        ({"feature": np.ones((2, 2))}, "reddit_data.npz has 2 rows, but reddit_graph.npz has 3 nodes"),
        ({"feature": np.full((3, 1), np.nan)}, "reddit_data.npz: features of node 0 hold NaN"),
        ({"feature": None}, "lacks the array 'feature'"),
        ({"node_types": np.array([1, 2, 9])}, "node_types must be 1"),
        ({"label": np.array([1, 2, 3], object)}, "label.npy holds Python objects"),
        ({"node_ids": np.array([7, 7, 8])}, "ids must differ"),
    ],
)
def test_broken_files_are_errors_that_name_the_file(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        open_data(write(tmp_path, **change))


def test_a_missing_graph_is_named(tmp_path: Path) -> None:
    (write(tmp_path) / "reddit_graph.npz").unlink()
    with pytest.raises(DataError, match=r"reddit_graph.npz does not exist"):
        open_data(tmp_path)

"""OGB's folders, written here file by file."""

import gzip
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphs import neighbor_lists
from graphsage.errors import DataError
from graphsage.graph.convert.ogb import graph_and_splits
from graphsage.graph.graph import Graph

RAW = {
    "edge": "0,1\n2,1\n",
    "num-node-list": "4\n",
    "num-edge-list": "2\n",
    "node-feat": "0.5,1\n2,3\n4,5\n6,7\n",
    "node-label": "3\n0\nnan\n1\n",
    "node_year": "2013\n2015\n2014\n2020\n",
}
PARTS = {"train": "0\n1\n", "valid": "2\n", "test": "3\n"}


def write(folder: Path, raw: dict[str, Any] | None = None, parts: dict[str, str] = PARTS, packed: bool = True) -> Path:
    for name, text in {**RAW, **(raw or {})}.items():
        put(folder / "raw" / f"{name}.csv", text, packed)
    for name, text in parts.items():
        put(folder / "split" / "time" / f"{name}.csv", text, packed)
    return folder


def put(path: Path, text: str | None, packed: bool) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if text is not None:
        path.with_name(path.name + ".gz" * packed).write_bytes(
            gzip.compress(text.encode()) if packed else text.encode()
        )


@pytest.mark.parametrize("packed", [True, False])
def test_raw_files_and_split_are_read(tmp_path: Path, packed: bool) -> None:
    graph, splits = graph_and_splits(write(tmp_path / "ogbn_toy", packed=packed))
    assert neighbor_lists(graph) == {0: [1], 1: [0, 2], 2: [1], 3: []}
    assert graph.features is not None
    assert graph.features.tolist() == [[0.5, 1], [2, 3], [4, 5], [6, 7]]
    assert graph.labels is not None
    assert graph.labels.tolist() == [3, 0, -1, 1]
    assert graph.time is not None
    assert graph.time.tolist() == [2013, 2015, 2014, 2020]
    assert list(splits) == ["time"]
    assert splits["time"].codes.tolist() == [0, 0, 1, 2]


def test_the_direction_of_citations_can_be_kept(tmp_path: Path) -> None:
    folder = write(tmp_path)
    assert neighbor_lists(Graph.from_ogb(folder, directed=True)) == {0: [], 1: [0, 2], 2: [], 3: []}
    assert neighbor_lists(Graph.from_ogb(folder / "raw", directed=True)) == {0: [], 1: [0, 2], 2: [], 3: []}


def test_many_label_columns_are_many_labels_and_features_may_be_missing(tmp_path: Path) -> None:
    graph = Graph.from_ogb(
        write(tmp_path, {"node-label": "0,1\n1,1\n0,0\n1,0\n", "node-feat": None, "node_year": None})
    )
    assert graph.multilabel
    assert graph.features is None
    assert graph.time is None


def test_the_binary_form_is_read(tmp_path: Path) -> None:
    raw = tmp_path / "raw"
    raw.mkdir()
    np.savez(
        raw / "data.npz",
        edge_index=np.array([[0, 2], [1, 1]]),
        node_feat=np.eye(4, dtype=np.float16),
        node_year=np.array([[1], [2], [3], [4]]),
        num_nodes_list=np.array([4]),
    )
    np.savez(raw / "node-label.npz", node_label=np.array([[np.nan], [1], [2], [0]], np.float32))
    graph = Graph.from_ogb(tmp_path)
    assert neighbor_lists(graph) == {0: [1], 1: [0, 2], 2: [1], 3: []}
    assert graph.labels is not None
    assert graph.labels.tolist() == [-1, 1, 2, 0]
    assert graph.num_features == 4


class Trap:
    def __reduce__(self) -> Any:
        return exec, ("raise SystemExit('executed')",)


def test_pickles_are_not_read(tmp_path: Path) -> None:
    (tmp_path / "processed").mkdir()
    (tmp_path / "processed" / "geometric_data_processed.pt").write_bytes(pickle.dumps(Trap()))
    with pytest.raises(DataError, match="only pickles, which can run code when read"):
        Graph.from_ogb(tmp_path)
    folder = write(tmp_path, parts={})
    (folder / "split" / "time").mkdir(parents=True)
    (folder / "split" / "time" / "split_dict.pt").write_bytes(pickle.dumps(Trap()))
    assert graph_and_splits(folder)[1] == {}


@pytest.mark.parametrize(
    ("raw", "parts", "message"),
    [
        ({"num-node-list": "4\n5\n"}, PARTS, "must hold the number of nodes of one graph"),
        ({"num-node-list": None}, PARTS, "num-node-list.csv.gz does not exist"),
        ({"node-feat": "1\n2\n"}, PARTS, "node-feat.csv.gz has 2 rows, but num-node-list says 4 nodes"),
        ({"node-feat": "1\nx\n3\n4\n"}, PARTS, "node-feat.csv.gz is not a whole table of numbers"),
        ({"node-feat": "1,2\n1\n3,4\n5,6\n"}, PARTS, "node-feat.csv.gz is not a whole table of numbers"),
        ({"edge": "0,1,2\n"}, PARTS, "edge.csv.gz must have 2 columns; got 3"),
        ({"edge": "0,9\n"}, PARTS, "edge 0 points at node 9"),
        ({"edge": "0,\n"}, PARTS, "edge.csv.gz has an empty cell"),
        ({}, {**PARTS, "test": "4\n"}, "test.csv.gz names a node outside 0 to 3"),
        ({}, {**PARTS, "test": "0\n"}, "test.csv.gz names a node that another part of the split has"),
        ({}, {"train": "0\n"}, "valid.csv.gz does not exist"),
        ({"num-node-dict": "1\n"}, PARTS, "is heterogeneous"),
    ],
)
def test_broken_folders_are_errors_that_name_the_file(
    tmp_path: Path, raw: dict[str, Any], parts: dict[str, str], message: str
) -> None:
    with pytest.raises(DataError, match=message):
        Graph.from_ogb(write(tmp_path, raw, parts))


@pytest.mark.parametrize("keep", [5, 20])
def test_a_file_cut_short_is_an_error(tmp_path: Path, keep: int) -> None:
    path = write(tmp_path) / "raw" / "node-feat.csv.gz"
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(DataError, match=r"node-feat.csv.gz"):
        Graph.from_ogb(tmp_path)


def test_a_graph_without_edges_is_read(tmp_path: Path) -> None:
    assert Graph.from_ogb(write(tmp_path, {"edge": ""})).num_edges == 0

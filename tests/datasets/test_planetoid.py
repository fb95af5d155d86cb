"""Planetoid's files, written here as Python 2 wrote them."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import python2
from scipy import sparse

from graphs import neighbor_lists
from graphsage.datasets.open import open_data
from graphsage.errors import DataError

ALLX = np.array([[1, 0], [0, 1], [1, 1], [0, 2]], np.float32)
TX = np.array([[5, 5], [6, 6]], np.float32)
PARTS: dict[str, Any] = {
    "x": sparse.csr_matrix(ALLX[:2]),
    "allx": sparse.csr_matrix(ALLX),
    "tx": sparse.csr_matrix(TX),
    "y": np.array([[1, 0, 0], [0, 1, 0]], np.int32),
    "ally": np.array([[1, 0, 0], [0, 1, 0], [0, 0, 0], [0, 0, 1]], np.int32),
    "ty": np.array([[0, 0, 1], [0, 1, 0]], np.int32),
    "graph": {0: [1, 1, 6], 1: [0, 1], 2: [], 3: [4], 4: [3], 5: [], 6: [0]},
}


def write(folder: Path, index: str = "6\n4\n", dumps: Any = python2.dumps, **parts: Any) -> Path:
    folder.mkdir(exist_ok=True)
    for part, value in {**PARTS, **parts}.items():
        if value is not None:
            (folder / f"ind.toy.{part}").write_bytes(value if isinstance(value, bytes) else dumps(value))
    (folder / "ind.toy.test.index").write_text(index)
    return folder / "ind.toy"


@pytest.mark.parametrize("dumps", [python2.dumps, pickle.dumps], ids=["python2", "python3"])
def test_nodes_edges_classes_and_split_are_where_they_belong(tmp_path: Path, dumps: Any) -> None:
    data = open_data(write(tmp_path, dumps=dumps))
    graph = data.graph
    assert data.name == "toy"
    assert neighbor_lists(graph) == {0: [1, 6], 1: [0], 2: [], 3: [4], 4: [3], 5: [], 6: [0]}
    assert graph.features is not None
    assert graph.features.tolist() == [*ALLX.tolist(), [6, 6], [0, 0], [5, 5]]
    assert graph.labels is not None
    assert graph.labels.tolist() == [0, 1, -1, 2, 1, -1, 2]
    assert [data.split().nodes(part).tolist() for part in ("train", "val", "test")] == [[0, 1], [2, 3], [4, 6]]


@pytest.mark.parametrize("spec", [".", "ind.toy", "ind.toy.graph", "ind.toy.test.index", "ind.toy.allx"])
def test_the_folder_the_prefix_and_each_file_name_the_data(tmp_path: Path, spec: str) -> None:
    write(tmp_path)
    assert open_data(tmp_path / spec).graph.num_nodes == 7


def test_the_folder_above_raw_names_the_data_too(tmp_path: Path) -> None:
    write(tmp_path / "raw")
    assert open_data(tmp_path).name == "toy"


def test_five_hundred_nodes_after_the_training_nodes_validate(tmp_path: Path) -> None:
    allx, ally = sparse.csr_matrix(np.ones((600, 1), np.float32)), np.ones((600, 1), np.int32)
    tx, ty = sparse.csr_matrix(np.ones((1, 1), np.float32)), np.ones((1, 1), np.int32)
    links = {node: [] for node in range(601)}
    prefix = write(tmp_path, "600\n", allx=allx, ally=ally, tx=tx, ty=ty, y=np.ones((20, 1), np.int32), graph=links)
    assert open_data(prefix).split().sizes() == {"train": 20, "val": 500, "test": 1}


class Trap:
    def __reduce__(self) -> Any:
        return exec, ("raise SystemExit('executed')",)


@pytest.mark.parametrize("part", ["allx", "ally", "tx", "ty", "y", "graph"])
def test_a_hostile_file_is_named_and_not_obeyed(tmp_path: Path, part: str) -> None:
    with pytest.raises(
        DataError, match=rf"ind.toy.{part} is not a pickle of plain arrays \(it asks for builtins.exec\)"
    ):
        open_data(write(tmp_path, **{part: pickle.dumps(Trap())}))


@pytest.mark.parametrize("part", ["allx", "ally", "tx", "ty", "y", "graph"])
def test_a_missing_file_is_named(tmp_path: Path, part: str) -> None:
    prefix = write(tmp_path)
    (tmp_path / f"ind.toy.{part}").unlink()
    with pytest.raises(DataError, match=f"ind.toy.{part} does not exist"):
        open_data(prefix)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"index": "6\n6\n"}, "test.index must name 2 different nodes"),
        ({"index": "6\nx\n"}, "test.index must hold one node a line"),
        ({"index": "3\n6\n"}, "test.index names node 3; test nodes come after the 4 nodes of allx"),
        ({"index": "4\n99999999999\n"}, "test.index names node 99999999999, but the files describe 7 nodes"),
        ({"ally": PARTS["ally"][:3]}, "ally has 3 rows, but the features have 4"),
        ({"ty": PARTS["ally"][:3]}, "ty has 3 rows, but the features have 2"),
        ({"tx": sparse.csr_matrix(np.ones((2, 3), np.float32))}, "tx has 3 columns, but allx has 2"),
        ({"y": np.zeros((5, 3), np.int32)}, "y has 5 training nodes, but allx only 4"),
        ({"ally": np.ones((4, 3), np.int32)}, "ally must hold one 1 a row; row 0 has 3"),
        ({"ally": {0: [1]}}, "ally must hold one row of 0 and 1"),
        ({"allx": {0: [1]}}, "allx must hold a matrix"),
        ({"graph": PARTS["ally"]}, "graph must hold a dictionary of lists"),
        ({"graph": {0: [7]}}, "ind.toy.graph: edge 0 points at node 7"),
    ],
)
def test_files_that_do_not_belong_together_are_errors(tmp_path: Path, parts: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        open_data(write(tmp_path, **parts))

"""PyG's and DGL's raw PPI folder, written here file by file."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphsage.datasets.open import open_data
from graphsage.datasets.ppi_folder import load_ppi_folder
from graphsage.errors import DataError

SIZES = {"train": 3, "valid": 2, "test": 1}
FILES = ("graph.json", "feats.npy", "labels.npy", "graph_id.npy")


def write(folder: Path, **changes: Any) -> Path:
    """Three parts of 3, 2 and 1 nodes, joined in a chain both ways; `valid_feats=...` replaces one file's content."""
    folder = folder / "proteins"
    folder.mkdir()
    for number, (part, size) in enumerate(SIZES.items()):
        chain = [(i, i + 1) for i in range(size - 1)]
        links = [{"source": u, "target": v} for a, b in chain for u, v in ((a, b), (b, a))] or [
            {"source": 0, "target": 0}
        ]
        content: dict[str, Any] = {
            "graph": {
                "directed": True,
                "multigraph": False,
                "graph": {},
                "nodes": [{"id": i} for i in range(size)],
                "links": links,
            },
            "feats": np.full((size, 2), float(number)),
            "labels": np.eye(size, 3, dtype=np.int64),
            "graph_id": np.full(size, 10 + number),
        }
        for name in content:
            content[name] = changes.get(f"{part}_{name}", content[name])
        (folder / f"{part}_graph.json").write_text(json.dumps(content.pop("graph")))
        for name, array in content.items():
            np.save(folder / f"{part}_{name}.npy", array)
    return folder


def test_parts_are_laid_one_after_another(tmp_path: Path) -> None:
    data = load_ppi_folder(write(tmp_path))
    graph = data.graph
    assert (data.name, data.default_split) == ("proteins", "given")
    assert [graph.neighbors(row).tolist() for row in range(6)] == [[1], [0, 2], [1], [4], [3], [5]]
    assert not graph.directed
    assert graph.features is not None
    assert graph.features.numpy().dtype == np.float32
    assert graph.features[:, 0].tolist() == [0, 0, 0, 1, 1, 2]
    assert graph.labels is not None
    assert graph.labels.numpy().dtype == np.uint8
    assert graph.labels.tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 0, 0], [0, 1, 0], [1, 0, 0]]
    assert graph.graph_number is not None
    assert graph.graph_number.tolist() == [10, 10, 10, 11, 11, 12]
    assert [data.split().nodes(part).tolist() for part in ("train", "val", "test")] == [[0, 1, 2], [3, 4], [5]]


def test_open_data_knows_the_folder(tmp_path: Path) -> None:
    assert open_data(write(tmp_path)).graph.num_nodes == 6


def links(*pairs: tuple[Any, Any]) -> dict[str, Any]:
    return {"nodes": [{"id": 0}, {"id": 1}], "links": [{"source": u, "target": v} for u, v in pairs]}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"valid_feats": np.ones((3, 2))}, r"valid_feats.npy has 3 rows, but valid_graph.json has 2 nodes"),
        ({"test_labels": np.ones((2, 3), int)}, r"test_labels.npy has 2 rows, but test_graph.json has 1 nodes"),
        ({"train_graph_id": np.ones(2, int)}, r"train_graph_id.npy has 2 rows, but train_graph.json has 3 nodes"),
        ({"train_graph_id": np.ones(3)}, r"train_graph_id.npy must hold integers"),
        (
            {"valid_feats": np.ones((2, 5))},
            r"feats.npy must have the same columns in each part; .*'valid_feats.npy': 5",
        ),
        ({"test_labels": np.ones((1, 5), int)}, r"labels.npy must have the same columns in each part"),
        ({"valid_feats": np.array([[0, 1], [0, np.inf]])}, r"valid_feats.npy row 2 holds NaN or infinity"),
        ({"valid_labels": np.array([[0, 1, 0], [0, 2, 0]])}, r"valid_labels.npy row 1 has 2 for label 1"),
        ({"valid_graph": links((0, 1), (1, 2))}, r"valid_graph.json: links row 1 points at 2; .* nodes are 0 to 1"),
        ({"valid_graph": links((-1, 1))}, r"valid_graph.json: links row 0 points at -1"),
        ({"valid_graph": links(("0", 1))}, r"valid_graph.json: links row 0 points at '0'"),
        ({"valid_graph": {"nodes": []}}, r"valid_graph.json lacks 'links'"),
    ],
)
def test_bad_content_is_an_error_that_names_file_and_row(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        load_ppi_folder(write(tmp_path, **changes))


@pytest.mark.parametrize("file", FILES)
def test_a_missing_file_is_named(tmp_path: Path, file: str) -> None:
    folder = write(tmp_path)
    (folder / f"test_{file}").unlink()
    with pytest.raises(DataError, match=f"test_{file} does not exist"):
        open_data(folder)


@pytest.mark.parametrize("file", FILES)
def test_a_file_cut_short_is_named(tmp_path: Path, file: str) -> None:
    folder = write(tmp_path)
    content = (folder / f"train_{file}").read_bytes()
    (folder / f"train_{file}").write_bytes(content[:-4])
    with pytest.raises(DataError, match=f"train_{file} is not"):
        load_ppi_folder(folder)

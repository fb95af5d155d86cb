"""The GraphSAGE release's format, written here file by file."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphsage.datasets.open import open_data
from graphsage.datasets.release import load_release
from graphsage.errors import DataError

NODES = [{"id": i, "val": i == 2, "test": i == 3} for i in range(4)]
LINKS = [{"source": 0, "target": 1}, {"source": 1, "target": 2}, {"source": 3, "target": 3}]
CLASSES = {"0": 1, "1": 0, "2": 2, "3": 0}
FEATURES = np.arange(8, dtype=np.float64).reshape(4, 2)


def write(
    folder: Path,
    *,
    nodes: Any = NODES,
    links: Any = LINKS,
    id_map: Any = None,
    classes: Any = CLASSES,
    features: Any = FEATURES,
    **graph: Any,
) -> Path:
    ids = [node["id"] for node in nodes if isinstance(node, dict) and "id" in node]
    id_map = {str(value): row for row, value in enumerate(ids)} if id_map is None else id_map
    content = {"directed": False, "multigraph": False, "graph": {}, "nodes": nodes, "links": links, **graph}
    (folder / "toy-G.json").write_text(json.dumps(content))
    (folder / "toy-id_map.json").write_text(json.dumps(id_map))
    (folder / "toy-class_map.json").write_text(json.dumps(classes))
    if features is not None:
        np.save(folder / "toy-feats.npy", features)
    return folder / "toy"


def test_graph_features_classes_and_split_are_read(tmp_path: Path) -> None:
    data = load_release(write(tmp_path))
    graph, split = data.graph, data.split()
    assert (data.name, data.default_split, list(data.splits)) == ("toy", "given", ["given"])
    assert [graph.neighbors(row).tolist() for row in range(4)] == [[1], [0, 2], [1], [3]]
    assert graph.features is not None
    assert graph.features.dtype.is_floating_point
    assert graph.features.numpy().dtype == np.float32
    assert graph.features.tolist() == FEATURES.tolist()
    assert graph.labels is not None
    assert graph.labels.tolist() == [1, 0, 2, 0]
    assert [split.nodes(part).tolist() for part in ("train", "val", "test")] == [[0, 1], [2], [3]]
    assert graph.graph_number is None


def test_lists_of_labels_make_a_multilabel_graph(tmp_path: Path) -> None:
    graph = load_release(write(tmp_path, classes={str(i): [i % 2, 1, 0] for i in range(4)})).graph
    assert graph.multilabel
    assert graph.labels is not None
    assert graph.labels.numpy().dtype == np.uint8
    assert graph.labels.tolist() == [[0, 1, 0], [1, 1, 0], [0, 1, 0], [1, 1, 0]]


def test_features_may_be_missing(tmp_path: Path) -> None:
    assert load_release(write(tmp_path, features=None)).graph.features is None


def test_id_map_says_which_row_of_features_is_whose(tmp_path: Path) -> None:
    nodes = [{"id": value, "val": False, "test": False} for value in (30, 10, 20)]
    links = [{"source": 30, "target": 20}]
    id_map = {"10": 2, "20": 0, "30": 3, "99": 1}
    classes = {"10": 1, "20": 2, "30": 3}
    graph = load_release(write(tmp_path, nodes=nodes, links=links, id_map=id_map, classes=classes)).graph
    assert graph.ids is not None
    assert list(graph.ids) == [30, 10, 20]
    assert graph.features is not None
    assert graph.features.tolist() == FEATURES[[3, 2, 0]].tolist()
    assert graph.labels is not None
    assert graph.labels.tolist() == [3, 1, 2]
    assert graph.neighbors(0).tolist() == [2]


@pytest.mark.parametrize("ends", [("b", "a"), (1, 0)])
def test_links_between_string_ids_are_ids_or_positions(tmp_path: Path, ends: tuple[Any, Any]) -> None:
    nodes = [{"id": value, "val": False, "test": False} for value in ("a", "b", "c")]
    links = [{"source": ends[0], "target": ends[1]}]
    prefix = write(tmp_path, nodes=nodes, links=links, classes={"a": 0, "b": 1, "c": 0}, features=None)
    graph = load_release(prefix).graph
    assert graph.ids is not None
    assert list(graph.ids) == ["a", "b", "c"]
    assert graph.neighbors(0).tolist() == [1]


def test_numbers_among_string_ids_that_are_digits_are_ids(tmp_path: Path) -> None:
    nodes = [{"id": value, "val": False, "test": False} for value in ("1", "0", "2")]
    prefix = write(tmp_path, nodes=nodes, links=[{"source": 0, "target": 2}], classes=CLASSES, features=None)
    assert load_release(prefix).graph.neighbors(1).tolist() == [2]


def test_a_directed_graph_stays_directed(tmp_path: Path) -> None:
    graph = load_release(write(tmp_path, directed=True)).graph
    assert graph.directed
    assert [graph.neighbors(row).tolist() for row in range(4)] == [[], [0], [1], [3]]


def test_newer_networkx_calls_links_edges(tmp_path: Path) -> None:
    prefix = write(tmp_path)
    content = json.loads((tmp_path / "toy-G.json").read_text())
    content["edges"] = content.pop("links")
    (tmp_path / "toy-G.json").write_text(json.dumps(content))
    assert load_release(prefix).graph.num_edges == 3


def test_a_graph_without_links_is_read(tmp_path: Path) -> None:
    assert load_release(write(tmp_path, links=[])).graph.num_edges == 0


def test_nodes_without_marks_are_in_no_part_and_may_have_no_class(tmp_path: Path) -> None:
    nodes = [*NODES[:3], {"id": 3}]
    data = load_release(write(tmp_path, nodes=nodes, classes={"0": 1, "1": 0, "2": 2}))
    assert data.split().sizes() == {"train": 2, "val": 1, "test": 0}
    assert data.graph.labels is not None
    assert data.graph.labels.tolist() == [1, 0, 2, -1]


def test_without_any_mark_the_split_is_random(tmp_path: Path) -> None:
    data = load_release(write(tmp_path, nodes=[{"id": i} for i in range(4)]))
    assert (data.splits, data.default_split) == ({}, "random")


@pytest.mark.parametrize("spec", ["toy", "toy-G.json", ""])
def test_open_data_finds_the_files(tmp_path: Path, spec: str) -> None:
    write(tmp_path)
    assert open_data(tmp_path / spec).graph.num_nodes == 4
    assert open_data(str(tmp_path / spec)).name == "toy"


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"features": FEATURES[:3]}, r"toy-feats.npy has 3 rows, but toy-id_map.json has 4 nodes"),
        ({"features": np.ones(4)}, r"toy-feats.npy must hold numbers of shape"),
        ({"features": np.array([["a"]] * 4)}, r"toy-feats.npy must hold numbers"),
        ({"features": np.array([[1.0], [2.0], [np.nan], [4.0]])}, r"toy-feats.npy row 3 holds NaN"),
        ({"features": np.array([[1.0], [1e300], [3.0], [4.0]])}, r"toy-feats.npy row 2 holds NaN or infinity"),
        ({"classes": {"0": 1, "1": 0, "2": 2}}, r"toy-class_map.json has no entry for node 3"),
        ({"classes": {**CLASSES, "1": [0, 1]}}, r"class of node 1 must be a number from 0 on; got \[0, 1\]"),
        ({"classes": {**CLASSES, "1": "x"}}, r"class of node 1 must be a number from 0 on; got 'x'"),
        (
            {"classes": {**CLASSES, "1": -2}},
            r"toy-class_map.json: the class of node 1 must be a number from 0 on; got -2",
        ),
        ({"classes": {**CLASSES, "1": 10**30}}, r"class of node 1 must be a number from 0 on; got 1000"),
        ({"classes": {"0": [0, 1], "1": [1], "2": [0, 0], "3": [0, 0]}}, r"node 1 must have 2 labels of 0 and 1"),
        ({"classes": {str(i): [0, i] for i in range(4)}}, r"toy-class_map.json: node 2 must have 2 labels of 0 and 1"),
        ({"classes": [1, 0]}, r"toy-class_map.json must hold a JSON object"),
        ({"id_map": {"0": 0, "1": 1, "2": 2}}, r"node 3: .*toy-id_map.json has no entry for it"),
        ({"id_map": {"0": 0, "1": 1, "2": 2, "3": "3"}}, r"node 3: .*maps it to '3', not to 0 to 3"),
        ({"id_map": {"0": 0, "1": 1, "2": 2, "3": 2}}, r"toy-id_map.json maps two nodes to row 2"),
        ({"id_map": {"0": 0, "1": 1, "2": 2, "3": 4}}, r"node 3: .*maps it to 4, not to 0 to 3"),
        ({"links": [*LINKS, {"source": 0, "target": 9}]}, r"toy-G.json: links row 3 points at 9, which is not among"),
        ({"links": [{"source": [0], "target": 1}]}, r"links row 0 points at \[0\]"),
        ({"links": [*LINKS, {"source": 0}]}, r"toy-G.json: links row 4 lacks 'target'"),
        ({"links": {}}, r"'links' must be a list"),
        ({"links": [3]}, r"links row 1 must be an object; got 3"),
        ({"nodes": []}, r"toy-G.json has no nodes"),
        ({"nodes": [*NODES, {"id": 0}]}, r"toy-G.json: nodes row 4 repeats the id 0"),
        ({"nodes": [*NODES, {"val": True}]}, r"toy-G.json: nodes row 5 lacks 'id'"),
        ({"nodes": [*NODES, {"id": 1.5}]}, r"nodes row 4 has the id 1.5"),
        ({"nodes": [*NODES[:3], {"id": 3, "val": True, "test": True}]}, r"nodes row 3 is marked val and test"),
    ],
)
def test_bad_content_is_an_error_that_names_file_and_row(tmp_path: Path, files: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        load_release(write(tmp_path, **files))


@pytest.mark.parametrize("name", ["toy-G.json", "toy-id_map.json", "toy-class_map.json"])
def test_a_missing_file_is_named(tmp_path: Path, name: str) -> None:
    prefix = write(tmp_path)
    (tmp_path / name).unlink()
    with pytest.raises(DataError, match=f"{name} does not exist"):
        open_data(prefix)


@pytest.mark.parametrize("name", ["toy-G.json", "toy-id_map.json", "toy-class_map.json", "toy-feats.npy"])
@pytest.mark.parametrize("keep", [0, 5, -3])
def test_a_file_cut_short_is_named(tmp_path: Path, name: str, keep: int) -> None:
    prefix = write(tmp_path)
    content = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(content[:keep])
    with pytest.raises(DataError, match=f"{name} is not"):
        load_release(prefix)


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"[" * 100_000, b"{}"])
def test_a_graph_file_that_is_none_is_an_error(tmp_path: Path, content: bytes) -> None:
    prefix = write(tmp_path)
    (tmp_path / "toy-G.json").write_bytes(content)
    with pytest.raises(DataError, match=r"toy-G.json"):
        load_release(prefix)

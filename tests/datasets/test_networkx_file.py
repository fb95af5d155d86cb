"""Files that networkx reads."""

import sys
from pathlib import Path

import networkx as nx
import pytest

from graphs import neighbor_lists
from graphsage.datasets.open import open_data
from graphsage.errors import ConfigError, DataError

PATH = {0: [1], 1: [0, 2], 2: [1]}


@pytest.mark.parametrize("suffix", ["gml", "graphml", "edgelist"])
def test_graphs_are_read_with_their_ids(tmp_path: Path, suffix: str) -> None:
    made = nx.relabel_nodes(nx.path_graph(3), dict(enumerate("abc")))
    path = tmp_path / f"toy.{suffix}"
    getattr(nx, f"write_{suffix}")(made, path)
    data = open_data(path)
    assert (data.name, data.default_split) == ("toy", "random")
    assert neighbor_lists(data.graph) == PATH
    assert data.graph.ids is not None
    assert list(data.graph.ids) == ["a", "b", "c"]


def test_classes_and_times_of_nodes_are_read(tmp_path: Path) -> None:
    made = nx.DiGraph([("a", "b")])
    for node, kind in (("a", "x"), ("b", "y")):
        made.nodes[node].update(y=kind, time=7)
    nx.write_graphml(made, tmp_path / "toy.graphml")
    graph = open_data(tmp_path / "toy.graphml").graph
    assert graph.class_names == ("x", "y")
    assert graph.directed
    assert graph.time is not None


def test_gml_without_labels_has_numbers_as_ids(tmp_path: Path) -> None:
    (tmp_path / "toy.gml").write_text("graph [ node [ id 5 ] node [ id 9 ] edge [ source 5 target 9 ] ]")
    graph = open_data(tmp_path / "toy.gml").graph
    assert graph.ids is not None
    assert list(graph.ids) == [5, 9]


@pytest.mark.parametrize("suffix", ["gml", "graphml", "edgelist"])
def test_what_is_no_such_file_is_an_error(tmp_path: Path, suffix: str) -> None:
    (tmp_path / f"toy.{suffix}").write_bytes(b"\xff\xfe garbage")
    with pytest.raises(DataError, match=rf"toy.{suffix}"):
        open_data(tmp_path / f"toy.{suffix}")


def test_a_missing_library_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "toy.edgelist").write_text("a b\n")
    monkeypatch.setitem(sys.modules, "networkx", None)
    with pytest.raises(ConfigError, match="pip install networkx"):
        open_data(tmp_path / "toy.edgelist")

"""`graphsage data convert`."""

from pathlib import Path

import networkx as nx
import pytest
import torch

from command_line import Command
from graphs import facts
from graphsage.datasets.open import FORMATS, open_data


def test_what_is_converted_opens_as_the_same_data(graphsage: Command, data: Path, tmp_path: Path) -> None:
    answer = graphsage("data", "convert", data, tmp_path / "out", "--json")
    assert answer.json == {
        "data": str(data),
        "out": str(tmp_path / "out"),
        "nodes": 90,
        "edges": open_data(data).graph.num_edges,
        "features": 7,
        "classes": 3,
        "splits": ["given", "empty"],
    }
    before, after = open_data(data), open_data(tmp_path / "out")
    assert facts(before.graph) == facts(after.graph)
    assert torch.equal(before.split("given").codes, after.split("given").codes)


def test_other_formats_become_graph_folders(graphsage: Command, tmp_path: Path) -> None:
    nx.write_edgelist(nx.path_graph(4), tmp_path / "path.edgelist")
    answer = graphsage("data", "convert", tmp_path / "path.edgelist", tmp_path / "out")
    assert "path: 4 nodes, 3 edges" in answer.out
    assert open_data(tmp_path / "out").graph.num_edges == 3


@pytest.mark.usefixtures("texts")
def test_features_from_text_are_computed_and_it_is_said_on_which_nodes(graphsage: Command, tmp_path: Path) -> None:
    answer = graphsage("data", "convert", "setmm", tmp_path / "out")
    assert "fitted on training nodes of split random" in answer.err
    assert open_data(tmp_path / "out").graph.features is not None


def test_an_existing_folder_is_kept_unless_told_otherwise(graphsage: Command, data: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "precious").touch()
    for words in ((), ("--overwrite",)):
        assert "not written by" in graphsage("data", "convert", data, tmp_path / "out", *words).error
    (tmp_path / "out" / "precious").unlink()
    assert graphsage("data", "convert", data, tmp_path / "out").code == 0
    assert "already exists; replace it with --overwrite" in graphsage("data", "convert", data, tmp_path / "out").error
    assert graphsage("data", "convert", data, tmp_path / "out", "--overwrite").code == 0
    assert open_data(tmp_path / "out").graph.num_nodes == 90


def test_what_cannot_be_opened_is_an_error_and_leaves_nothing(graphsage: Command, tmp_path: Path) -> None:
    missing = graphsage("data", "convert", tmp_path / "no", tmp_path / "out")
    assert "does not exist; looked for a graph folder" in missing.error
    (tmp_path / "broken.npz").write_bytes(b"x")
    assert "broken.npz is not a whole" in graphsage("data", "convert", tmp_path / "broken.npz", tmp_path / "out").error
    assert not (tmp_path / "out").exists()


def test_data_list_names_every_format(graphsage: Command) -> None:
    listed = graphsage("data", "list", "--json").json["formats"]
    assert [form["format"] for form in listed] == [form.name for form in FORMATS]
    assert "PATH/adj_full.npz" in graphsage("data", "list").out

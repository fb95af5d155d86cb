"""`graphsage info` and `graphsage data`."""

from pathlib import Path

import pytest
import torch

from command_line import KINDS, Command
from graphsage.cli.info import data_facts
from graphsage.datasets import setmm
from graphsage.datasets.dataset import Dataset
from graphsage.graph.graph import Graph
from graphsage.inference.model import load


def test_info_counts_what_is_in_a_graph() -> None:
    graph = Graph.from_edges(
        [[0, 1], [1, 2], [1, 3], [4, 4], [5, 6]], 8, labels=[0, 0, 1, 1, 1, 2, -1, -1], class_names=["a", "b", "c"]
    )
    facts = data_facts(Dataset("tiny", graph, {}, "random"))
    wanted = {
        "kind": "data",
        "data": "tiny",
        "nodes": 8,
        "edges": 5,
        "directed": False,
        "relations": {},
        "isolated_nodes": 1,
        "self_loops": 1,
        "degree": {"min": 0, "median": 1.0, "mean": 9 / 8, "max": 3},
        "components": 4,
        "features": 0,
        "columns": None,
        "multilabel": False,
        "targets": None,
        "num_classes": 3,
        "unlabeled_nodes": 2,
        "classes": [{"name": "b", "nodes": 3}, {"name": "a", "nodes": 2}, {"name": "c", "nodes": 1}],
        "splits": {"random": {"train": 6, "val": 1, "test": 1}},
        "default_split": "random",
    }
    assert facts == wanted


def test_components_of_a_directed_graph_ignore_directions() -> None:
    graph = Graph.from_edges([[0, 1], [2, 1]], 4, directed=True)
    assert data_facts(Dataset("tiny", graph, {}, "random"))["components"] == 2


def test_counts_of_many_labels_are_counts_of_nodes() -> None:
    graph = Graph.from_edges([[0, 1]], 2, labels=torch.tensor([[1, 1], [0, 1]]), class_names=["x", "y"])
    assert data_facts(Dataset("tiny", graph, {}, "random"))["classes"] == [
        {"name": "y", "nodes": 2},
        {"name": "x", "nodes": 1},
    ]


def test_info_shows_data(graphsage: Command, data: Path) -> None:
    answer = graphsage("info", data)
    assert "nodes        90 (0 isolated)" in answer.out
    assert "features     7" in answer.out
    assert "  given (default)   train 54   val 18   test 18" in answer.out
    assert graphsage("info", data, "--json").json["num_classes"] == 3


def test_info_shows_a_run(graphsage: Command, run: Path, data: Path) -> None:
    facts = graphsage("info", run, "--json").json
    model = load(run)
    assert model.head is not None
    count = sum(p.numel() for module in (model.encoder, model.head) for p in module.parameters())
    wanted = {
        "kind": "run",
        "finished": True,
        "data": str(data),
        "split": "given",
        "bundle_format": 7,
        "parameters": count,
        "features": 7,
        "dim": 8,
        "classes": list(KINDS),
        "num_classes": 3,
    }
    assert {name: facts[name] for name in wanted} == wanted
    assert facts["settings"]["sample_sizes"] == [4, 3]
    shown = graphsage("info", run).out
    assert f"parameters    {count:,}" in shown
    assert "3 (algebra, logic, topology)" in shown


def test_info_of_nothing_is_an_error(graphsage: Command, tmp_path: Path) -> None:
    assert "does not exist" in graphsage("info", tmp_path / "nothing").error


def test_data_list_says_what_each_built_in_is(graphsage: Command) -> None:
    assert graphsage("data", "list").out.startswith("setmm   theorems of Metamath's set.mm")
    listed = graphsage("data", "list", "--json").json["data"]
    assert [one["name"] for one in listed] == ["setmm"]
    assert all(one["about"] for one in listed)


def test_data_build_hands_over_source_and_folder(
    graphsage: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []
    monkeypatch.setattr(setmm, "build_setmm", lambda source, out: seen.append((source, out)))
    answer = graphsage("data", "build", "setmm", "--from", tmp_path / "set.mm", "--out", tmp_path / "out", "--json")
    assert answer.json["out"] == str(tmp_path / "out")
    assert seen == [(tmp_path / "set.mm", tmp_path / "out")]


def test_data_build_refuses_what_it_cannot_read(graphsage: Command, tmp_path: Path) -> None:
    words = ("--from", tmp_path / "none.mm", "--out", tmp_path / "out")
    assert "none.mm" in graphsage("data", "build", "setmm", *words).error
    assert "No such command 'cora'" in graphsage("data", "build", "cora", *words).error

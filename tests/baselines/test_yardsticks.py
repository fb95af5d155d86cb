"""Yardsticks of unsupervised embeddings: five rows, two probes, no leak, kept with the run."""

from pathlib import Path

import pytest
import torch

import graphsage as gs
from graphsage.baselines import yardsticks as module
from graphsage.baselines.yardsticks import FILE, yardsticks
from graphsage.datasets.dataset import Dataset
from graphsage.errors import DataError
from graphsage.graph.split import Split
from planted import SMALL, planted_graph, planted_split

NAMES = [
    "embeddings",
    "features",
    "features + 2 hops of neighbor means",
    "untrained encoder",
    "DeepWalk + features",
]
OPTIONS = {**SMALL, "task": "unsupervised", "steps": 4}


def test_five_rows_by_two_probes_and_kept_with_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = planted_graph()
    split = planted_split(graph)
    model = gs.train(graph, split, out=tmp_path / "run", **OPTIONS)
    told: list[tuple[int, int]] = []
    rows = yardsticks(model, graph, split, keep_in=model.folder, on_row=lambda done, total: told.append((done, total)))
    assert [row.name for row in rows] == NAMES
    assert told == [(number, 5) for number in range(6)]
    for row in rows:
        assert row.note is None
        assert row.paper is not None
        assert row.tuned is not None
        assert set(row.paper) == set(row.tuned) == {"val", "test"}
    assert rows[0].paper is not None
    assert rows[0].paper["test"] == round(model.evaluate(graph, split, "test").micro, 4)
    again = gs.train(graph, split, **{**OPTIONS, "steps": 1, "lr": 1e-12})
    untrained = yardsticks(again, graph, split)
    assert untrained[0].paper == untrained[3].paper == rows[3].paper
    monkeypatch.setattr(module, "_rows", lambda *given: pytest.fail("made again"))
    assert yardsticks(gs.load(tmp_path / "run"), graph, split, keep_in=tmp_path / "run") == rows
    monkeypatch.undo()
    (tmp_path / "run" / FILE).write_text("{}")
    assert yardsticks(model, graph, split, keep_in=model.folder) == rows
    other = planted_graph(seed=3)
    assert yardsticks(model, other, planted_split(other), keep_in=model.folder) != rows


def test_rows_that_cannot_be_made_say_why() -> None:
    graph = planted_graph()
    number = (torch.arange(120) >= 60).long()
    pairs = torch.stack([graph.edge_rows, graph.indices.long()], dim=1)
    inside = pairs[number[pairs[:, 0]] == number[pairs[:, 1]]]
    two = gs.Graph.from_edges(inside, 120, features=graph.features, labels=graph.labels, graph_number=number)
    model = gs.train(two, planted_split(two), **OPTIONS)
    rows = yardsticks(model, two, planted_split(two))
    assert rows[-1].paper is None
    assert rows[-1].note is not None
    assert "DeepWalk cannot be applied to graphs" in rows[-1].note
    model = gs.train(graph, planted_split(graph), **OPTIONS)
    with pytest.raises(DataError, match="the data has none; give a graph with labels"):
        yardsticks(model, graph.replace(labels=None), planted_split(graph))


def test_without_validation_nodes_some_training_nodes_choose_the_penalty() -> None:
    graph = planted_graph(classes=3, multilabel=True)
    split = Split.random(120, (0.7, 0.0, 0.3))
    rows = yardsticks(gs.train(graph, split, **OPTIONS), graph, split)
    assert all(row.tuned is not None and set(row.tuned) == {"test"} for row in rows)


def test_a_graph_without_features_is_measured_by_its_structure() -> None:
    graph = planted_graph().replace(features=None)
    split = planted_split(graph)
    rows = yardsticks(gs.train(Dataset("planted", graph, {"own": split}, "own"), "own", **OPTIONS), graph, split)
    assert all(row.paper is not None for row in rows)

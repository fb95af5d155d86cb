"""What a run keeps of its data, from Python."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphsage as gs
from graphsage.datasets.dataset import Dataset
from graphsage.errors import BundleError, DataError, OutputError
from graphsage.graph.ids import NodeIds
from graphsage.graph.split import NONE, Split
from graphsage.inference import run_data
from graphsage.inference.fingerprint import file_fingerprint, has_changed
from graphsage.training import train as training
from planted import planted_graph, planted_split

SMALL: dict[str, Any] = {"dim": 8, "sample_sizes": (3, 2), "steps": 2, "device": "cpu", "max_degree": 4}


@pytest.mark.parametrize("task", ["supervised", "unsupervised"])
@pytest.mark.parametrize("ids", [None, "text", "numbers"])
def test_a_graph_made_in_python_comes_back_with_its_split(tmp_path: Path, task: str, ids: str | None) -> None:
    graph, names = planted_graph(), {"text": str, "numbers": lambda row: 7 * row}
    if ids is not None:
        graph = graph.replace(ids=NodeIds.of([names[ids](row) for row in range(graph.num_nodes)]))
    split = planted_split(graph)
    model = gs.train(graph, split, task=task, out=tmp_path / "run", **SMALL)
    loaded = gs.load(tmp_path / "run")
    own = loaded.run_graph()
    for name in ("indptr", "indices", "features", "labels"):
        assert getattr(own, name).equal(getattr(graph, name))
    assert (own.ids, own.class_names) == (graph.ids, graph.class_names)
    assert loaded.run_split().codes.equal(split.codes)
    assert loaded.embed().equal(model.embed(graph))
    assert model.embed().equal(model.embed(graph))  # the trained model reads its run, too
    assert loaded.evaluate(own, loaded.run_split()) == model.evaluate(graph, split)
    assert loaded.run_data().split_name == "own"


def test_above_the_size_only_a_reference_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = planted_graph()
    size = run_data.graph_bytes(graph)
    for limit, kept in ((size, True), (size - 1, False)):
        for module in (run_data, training):
            monkeypatch.setattr(module, "KEEP_BYTES", limit)
        gs.train(graph, planted_split(graph), out=tmp_path / "run", **SMALL)
        assert (tmp_path / "run" / "data" / "graph").exists() == kept
    with pytest.raises(gs.GraphSageError, match="does not say what it was trained on; give the graph"):
        gs.load(tmp_path / "run").embed()
    for module in (run_data, training):
        monkeypatch.setattr(module, "KEEP_BYTES", 1)
    gs.train(graph, planted_split(graph), out=tmp_path / "other", **SMALL)
    assert not (tmp_path / "other" / "data" / "capped").exists()
    gs.train(graph, planted_split(graph), out=tmp_path / "other", keep_graph=True, **SMALL)
    assert (tmp_path / "other" / "data" / "capped").exists()


def test_columns_come_back_cell_by_cell(tmp_path: Path) -> None:
    graph = planted_graph()
    n = graph.num_nodes
    columns: dict[str, Any] = {
        "text": [None if row % 5 == 0 else f"word {row}" for row in range(n)],
        "number": np.where(np.arange(n) % 3, np.arange(n) / 7, np.nan),
        "count": [None if row % 4 == 0 else row for row in range(n)],
        "vector": np.arange(3.0 * n, dtype=np.float32).reshape(n, 3),
    }
    mixed = ["a", 1, None] * (n // 3) + ["a"] * (n % 3)
    data = Dataset("mine", graph, {"given": planted_split(graph)}, "given", {**columns, "mixed": mixed})
    gs.train(data, out=tmp_path / "run", **SMALL)
    kept = gs.load(tmp_path / "run").run_data()
    assert (kept.dataset.name, kept.split_name) == ("mine", "given")
    for name, column in columns.items():
        np.testing.assert_array_equal(np.asarray(kept.dataset.columns[name]), np.asarray(column))
    assert kept.dataset.columns["mixed"] == [None if cell is None else str(cell) for cell in mixed]


def test_the_split_follows_the_ids_to_another_graph(tmp_path: Path) -> None:
    graph = planted_graph()
    graph = graph.replace(ids=NodeIds.of([f"n{row}" for row in range(graph.num_nodes)]))
    split = planted_split(graph)
    gs.train(graph, split, out=tmp_path / "run", **SMALL)
    model = gs.load(tmp_path / "run")
    other = gs.Graph.from_edges([[0, 1]], 3, ids=["n5", "stranger", "n0"])
    assert model.run_split(other).codes.tolist() == [int(split.codes[5]), NONE, int(split.codes[0])]
    for ids in (None, [1, 2, 3]):
        with pytest.raises(DataError, match="the ids of this graph are not of the type of the run's"):
            model.run_split(gs.Graph.from_edges([[0, 1]], 3, ids=ids))


def test_saving_a_loaded_model_into_its_run_keeps_the_graph_and_elsewhere_does_not(tmp_path: Path) -> None:
    graph = planted_graph()
    gs.train(graph, planted_split(graph), out=tmp_path / "run", **SMALL)
    model = gs.load(tmp_path / "run")
    model.save(tmp_path / "run")
    assert gs.load(tmp_path / "run").run_graph().num_nodes == graph.num_nodes
    model.save(tmp_path / "elsewhere")
    with pytest.raises(BundleError, match="elsewhere keeps no graph; name the data, or train again"):
        gs.load(tmp_path / "elsewhere").run_graph()


def test_data_of_another_training_is_refused(tmp_path: Path) -> None:
    graph = planted_graph()
    for seed in (0, 1):
        gs.train(graph, Split.random(graph.num_nodes, seed=seed), out=tmp_path / str(seed), **SMALL)
    (tmp_path / "0" / "data").rename(tmp_path / "0" / "old")
    (tmp_path / "1" / "data").rename(tmp_path / "0" / "data")
    with pytest.raises(BundleError, match="does not belong to this model; train again"):
        gs.load(tmp_path / "0").embed()


def test_a_newer_format_asks_for_an_upgrade(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = planted_graph()
    gs.train(graph, planted_split(graph), out=tmp_path / "run", **SMALL)
    for ours, advice in ((0, "upgrade graphsage"), (2, "train again")):
        monkeypatch.setattr(run_data, "FORMAT", ours)
        with pytest.raises(BundleError, match=f"has format 1, and this version reads format {ours}; {advice}"):
            gs.load(tmp_path / "run").run_graph()


def test_a_folder_of_the_user_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "run" / "data").mkdir(parents=True)
    (tmp_path / "run" / "data" / "mine.txt").touch()
    graph = planted_graph()
    with pytest.raises(OutputError, match="holds what is not ours to replace"):
        gs.train(graph, planted_split(graph), out=tmp_path / "run", **SMALL)
    assert (tmp_path / "run" / "data" / "mine.txt").exists()


def test_an_unchanged_graph_that_the_cap_leaves_alone_has_no_second_copy(tmp_path: Path) -> None:
    graph = planted_graph()
    gs.train(graph, planted_split(graph), out=tmp_path / "run", **{**SMALL, "max_degree": None})
    assert not (tmp_path / "run" / "data" / "capped").exists()
    own = gs.load(tmp_path / "run").run_data()
    assert own.capped is own.graph


def test_a_file_larger_than_the_limit_is_sampled_and_its_time_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    for limit in (10, 1_000):
        monkeypatch.setattr("graphsage.inference.fingerprint.WHOLE_BYTES", limit)
        path.write_bytes(bytes(100))
        before = file_fingerprint(path)
        assert not has_changed(path, before)
        os.utime(path, (1, 1))
        assert has_changed(path, before) == (limit == 10)
        path.write_bytes(bytes(99) + b"x")
        assert has_changed(path, before)
        path.write_bytes(bytes(101))
        assert has_changed(path, before)


def test_a_model_outside_a_run_does_not_guess_its_split(tmp_path: Path) -> None:
    graph, split = planted_graph(), planted_split(planted_graph())
    model = gs.train(Dataset("mine", graph, {}, "random", about={"data": "mine"}), split, **SMALL)
    assert model.run_split() is split
    model.save(tmp_path)
    with pytest.raises(BundleError, match="keeps no graph; name the data, or train again"):
        gs.load(tmp_path).run_split()
    model._trained = None
    with pytest.raises(DataError, match="does not know its split; load it from a run, or give the split"):
        model.run_split()

"""`graphsage evaluate`, `embed` and `predict`: a trained model on its own data and on other data."""

import io
import json
import sys
from pathlib import Path

import numpy as np
import pyarrow.csv
import pyarrow.parquet
import pytest
import torch

from command_line import KINDS, SMALL, Command, N, planted, split
from graphsage.datasets.dataset import Dataset
from graphsage.features.text import TfidfSvd
from graphsage.graph.split import Split
from graphsage.graph.storage import save_graph
from graphsage.inference.model import load


def test_evaluate_has_the_promised_shape(graphsage: Command, run: Path, data: Path) -> None:
    answer = graphsage("evaluate", run, "--part", "test", "--json").json
    assert {name: answer[name] for name in ("split", "nodes", "seed", "data", "inference", "classifier")} == {
        "split": "test",
        "nodes": 18,
        "seed": 0,
        "data": str(data),
        "inference": "exact",
        "classifier": "head",
    }
    expected = load(run).evaluate(planted(), split(), "test")
    assert answer["micro_f1"] == expected.micro
    assert answer["macro_f1"] == expected.macro
    assert expected.micro > 0.8


@pytest.mark.parametrize(("part", "nodes"), [("train", 54), ("val", 18), ("all", 90)])
def test_evaluate_scores_the_part_asked_for(graphsage: Command, run: Path, part: str, nodes: int) -> None:
    assert graphsage("evaluate", run, "--part", part, "--json").json["nodes"] == nodes


def test_evaluate_speaks_plainly_without_json(graphsage: Command, run: Path) -> None:
    lines = graphsage("evaluate", run).out.splitlines()
    assert "split        test of given" in lines
    assert any(line.startswith("micro_f1     ") for line in lines)


def test_other_data_is_scored_by_its_own_split(graphsage: Command, run: Path, tmp_path: Path) -> None:
    save_graph(planted(seed=8), tmp_path / "other", {"mine": Split.random(N, (0.5, 0.0, 0.5))})
    answer = graphsage("evaluate", run, tmp_path / "other", "--json").json
    assert answer["nodes"] == N // 2
    assert answer["split_name"] == "mine"
    assert answer["micro_f1"] > 0.8
    assert graphsage("evaluate", run, tmp_path / "other", "--split", "random", "--json").json["nodes"] == N // 5


def test_classes_are_matched_by_name_not_by_number(graphsage: Command, run: Path, tmp_path: Path) -> None:
    graph = planted()
    assert graph.labels is not None
    turned = graph.replace(labels=(graph.labels + 1) % 3, class_names=(KINDS[2], KINDS[0], KINDS[1]))
    save_graph(turned, tmp_path / "turned", {"given": split()})
    here = graphsage("evaluate", run, "--json").json
    there = graphsage("evaluate", run, tmp_path / "turned", "--json").json
    assert there["micro_f1"] == here["micro_f1"]
    save_graph(graph.replace(class_names=("cooking", "sports", "law")), tmp_path / "strange")
    assert "'cooking'" in graphsage("evaluate", run, tmp_path / "strange").error


def test_a_class_that_the_model_does_not_know_counts_as_wrong(graphsage: Command, run: Path, tmp_path: Path) -> None:
    graph = planted()
    save_graph(graph.replace(class_names=("algebra", "logic", "cooking")), tmp_path / "strange", {"given": split()})
    said = graphsage("evaluate", run, tmp_path / "strange", "--json", "--part", "all")
    assert "does not know the class 'cooking' of 30 nodes; it counts as wrong" in said.err
    known = graphsage("evaluate", run, "--json", "--part", "all").json["micro_f1"]
    assert 0 < said.json["micro_f1"] <= min(known, 60 / 90)


def test_embed_writes_the_models_vectors_in_every_format(graphsage: Command, run: Path, tmp_path: Path) -> None:
    z = load(run).embed(planted()).numpy()
    answer = graphsage("embed", run, "--out", tmp_path / "z.parquet", "--json").json
    assert answer == {
        "nodes": N,
        "dim": 8,
        "inference": "exact",
        "data": answer["data"],
        "files": [str(tmp_path / "z.parquet")],
    }
    table = pyarrow.parquet.read_table(tmp_path / "z.parquet")
    assert table["id"].to_pylist() == [f"node-{row}" for row in range(N)]
    assert np.array_equal(np.array(table["embedding"].to_pylist(), np.float32), z)
    assert graphsage("embed", run, "--out", tmp_path / "z.npy").code == 0
    assert np.array_equal(np.load(tmp_path / "z.npy"), z)
    assert json.loads((tmp_path / "z.ids.json").read_text())[:2] == ["node-0", "node-1"]
    assert graphsage("embed", run, "--out", tmp_path / "z.csv").code == 0
    rows = pyarrow.csv.read_csv(tmp_path / "z.csv")
    assert rows.column_names == ["id", *(f"embedding_{d}" for d in range(8))]
    np.testing.assert_allclose(rows["embedding_3"].to_numpy(), z[:, 3], rtol=1e-6)


@pytest.mark.parametrize("way", ["file", "stdin"])
def test_chosen_nodes_come_in_the_order_asked(
    graphsage: Command, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    wanted = "node-7\n\n  node-2 \r\nnode-7\n"
    (tmp_path / "ids.txt").write_text(wanted)
    monkeypatch.setattr(sys, "stdin", io.StringIO(wanted))
    nodes = tmp_path / "ids.txt" if way == "file" else "-"
    assert graphsage("embed", run, "--node-ids", nodes, "--out", tmp_path / "z.parquet").code == 0
    table = pyarrow.parquet.read_table(tmp_path / "z.parquet")
    assert table["id"].to_pylist() == ["node-7", "node-2", "node-7"]
    z = load(run).embed(planted(), [7, 2, 7]).numpy()
    assert np.array_equal(np.array(table["embedding"].to_pylist(), np.float32), z)


def test_sampled_inference_can_be_asked_for(graphsage: Command, run: Path, tmp_path: Path) -> None:
    assert graphsage("embed", run, "--inference", "sampled", "--out", tmp_path / "z.npy").code == 0
    assert np.array_equal(np.load(tmp_path / "z.npy"), load(run).embed(planted(), inference="sampled").numpy())
    assert "exact or sampled" in graphsage("embed", run, "--inference", "best", "--out", tmp_path / "y.npy").error


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_predict_names_the_class_and_every_probability(
    graphsage: Command, run: Path, tmp_path: Path, suffix: str
) -> None:
    out = tmp_path / f"p.{suffix}"
    assert graphsage("predict", run, "--out", out, "--json").json["classes"] == 3
    table = pyarrow.parquet.read_table(out) if suffix == "parquet" else pyarrow.csv.read_csv(out)
    assert table.column_names == ["id", "class", "probability", "p_algebra", "p_logic", "p_topology"]
    p = load(run).predict_proba(planted()).numpy()
    np.testing.assert_allclose(np.stack([table[f"p_{kind}"].to_numpy() for kind in KINDS], axis=1), p, rtol=1e-5)
    assert table["class"].to_pylist() == [KINDS[c] for c in p.argmax(axis=1)]
    np.testing.assert_allclose(table["probability"].to_numpy(), p.max(axis=1), rtol=1e-5)


def test_predict_lists_the_labels_where_there_are_many(graphsage: Command, tmp_path: Path) -> None:
    save_graph(planted(multilabel=True), tmp_path / "many", {"given": split()})
    words = ("--lr", "0.05", "--epochs", "6", "--head-scale")
    assert graphsage("train", tmp_path / "many", "--out", tmp_path / "run", *SMALL, *words).code == 0
    assert graphsage("predict", tmp_path / "run", "--out", tmp_path / "p.parquet").code == 0
    table = pyarrow.parquet.read_table(tmp_path / "p.parquet")
    assert table.column_names == ["id", "labels", "probability", "p_algebra", "p_logic", "p_topology"]
    p = load(tmp_path / "run").predict_proba(planted(multilabel=True)).numpy()
    assert table["labels"].to_pylist() == [[KINDS[c] for c in np.flatnonzero(row > 0.5)] for row in p]
    assert any(table["labels"].to_pylist())
    assert graphsage("predict", tmp_path / "run", "--out", tmp_path / "p.csv").code == 0
    assert graphsage("evaluate", tmp_path / "run", "--json").json["nodes"] == 18


def test_a_model_without_labels_predicts_nothing(graphsage: Command, data: Path, tmp_path: Path) -> None:
    words = ("--task", "unsupervised", "--steps", "2")
    assert graphsage("train", data, "--out", tmp_path / "run", *SMALL, *words).code == 0
    assert "trained without labels" in graphsage("predict", tmp_path / "run", "--out", tmp_path / "p.csv").error


def test_unsupervised_results_come_with_yardsticks(graphsage: Command, data: Path, tmp_path: Path) -> None:
    words = (*SMALL, "--task", "unsupervised", "--steps", "2")
    done = graphsage("train", data, *words, "--out", tmp_path / "z")
    lines = done.out.splitlines()
    at = next(n for n, line in enumerate(lines) if line.startswith("micro F1 of val nodes "))
    assert [line.split("  ")[0] for line in lines[at + 1 :]] == [
        "embeddings",
        "features",
        "features + 2 hops of neighbor means",
        "untrained encoder",
        "DeepWalk + features",
    ]
    answer = graphsage("evaluate", tmp_path / "z", "--json").json
    assert answer["yardsticks"][0]["paper"]["test"] == round(answer["micro_f1"], 4)
    assert (tmp_path / "z" / "yardsticks.json").exists()
    assert "micro F1 of test nodes" in graphsage("evaluate", tmp_path / "z").out
    assert "yardsticks" not in graphsage("evaluate", tmp_path / "z", "--no-yardsticks", "--json").json
    assert "yardsticks" not in graphsage("evaluate", tmp_path / "z", "--part", "train", "--json").json


def test_without_labels_there_are_no_yardsticks(graphsage: Command, tmp_path: Path) -> None:
    save_graph(planted().replace(labels=None, class_names=None), tmp_path / "graph", {"given": split()})
    done = graphsage("train", tmp_path / "graph", *SMALL, "--task", "unsupervised", "--out", tmp_path / "z")
    assert done.code == 0
    assert "no yardsticks: the yardsticks are scored on labels, and the data has none" in done.err


def test_text_becomes_features_by_the_recipe_of_training_never_by_a_new_fit(
    graphsage: Command, texts: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained = graphsage("train", "setmm", "--out", tmp_path / "run", *SMALL, "--epochs", "6", "--lr", "0.05")
    assert trained.code == 0
    assert "features from comment, formula" in trained.err

    def no_new_fit(*_: object) -> None:
        raise AssertionError("fitted again")

    monkeypatch.setattr(TfidfSvd, "fit", no_new_fit)
    monkeypatch.setenv("GRAPHSAGE_CACHE", str(tmp_path / "empty"))
    assert graphsage("evaluate", tmp_path / "run", "--json").json["micro_f1"] > 0.8
    assert graphsage("embed", tmp_path / "run", "--out", tmp_path / "z.npy").code == 0
    model = load(tmp_path / "run")
    assert model.features is not None
    x = torch.from_numpy(model.features.transform(texts.columns))
    assert np.array_equal(np.load(tmp_path / "z.npy"), model.embed(texts.graph.replace(features=x)).numpy())


def test_a_model_of_texts_refuses_data_without(graphsage: Command, texts: Dataset, data: Path, tmp_path: Path) -> None:
    assert graphsage("train", "setmm", "--out", tmp_path / "run", *SMALL).code == 0
    error = graphsage("embed", tmp_path / "run", data, "--out", tmp_path / "z.npy").error
    assert "reads nodes' columns (comment, formula), and planted has none" in error


def test_embeddings_come_with_labels_and_predictions_on_request(graphsage: Command, run: Path, tmp_path: Path) -> None:
    out = tmp_path / "z.parquet"
    assert graphsage("embed", run, "--with-label", "--with-prediction", "--out", out).code == 0
    table = pyarrow.parquet.read_table(out)
    assert table.column_names == ["id", "embedding", "label", "prediction"]
    graph = planted()
    assert graph.labels is not None
    assert table["label"].to_pylist() == [KINDS[label] for label in graph.labels.tolist()]
    assert table["prediction"].to_pylist() == [KINDS[c] for c in load(run).predict(graph).tolist()]
    for name in ("z.npy", "z.txt"):
        assert ".parquet, .csv" in graphsage("embed", run, "--with-label", "--out", tmp_path / name).error
    assert sorted(path.name for path in tmp_path.iterdir()) == ["z.parquet"]


def test_labels_that_are_not_known_stay_empty_and_many_are_lists(graphsage: Command, run: Path, tmp_path: Path) -> None:
    graph = planted()
    assert graph.labels is not None
    save_graph(graph.replace(labels=graph.labels.index_fill(0, torch.tensor([1]), -1)), tmp_path / "holes")
    assert graphsage("embed", run, tmp_path / "holes", "--with-label", "--out", tmp_path / "z.csv").code == 0
    assert pyarrow.csv.read_csv(tmp_path / "z.csv")["label"].to_pylist()[:3] == [KINDS[0], "", KINDS[2]]
    save_graph(graph.replace(labels=None, class_names=None), tmp_path / "bare")
    assert "no labels" in graphsage("embed", run, tmp_path / "bare", "--with-label", "--out", tmp_path / "y.csv").error
    save_graph(planted(multilabel=True), tmp_path / "many", {"given": split()})
    assert graphsage("train", tmp_path / "many", "--out", tmp_path / "run", *SMALL).code == 0
    words = ("--with-label", "--with-prediction", "--out", tmp_path / "m.parquet")
    assert graphsage("embed", tmp_path / "run", *words).code == 0
    table = pyarrow.parquet.read_table(tmp_path / "m.parquet")
    assert table["label"].to_pylist() == [[KINDS[row % 3]] for row in range(N)]
    assert {name for row in table["prediction"].to_pylist() for name in row} <= set(KINDS)


def test_each_class_has_its_scores_in_a_table_in_json_and_in_a_picture(
    run: Path, graphsage: Command, tmp_path: Path
) -> None:
    picture = tmp_path / "classes.png"
    answer = graphsage("evaluate", run, "--per-class", "--picture", picture)
    assert answer.code == 0, answer.err
    lines = answer.out.splitlines()
    head = next(place for place, line in enumerate(lines) if line.startswith("class "))
    assert lines[head].split() == ["class", "precision", "recall", "F1", "support", "predicted"]
    assert [line.split()[0] for line in lines[head + 1 : head + 4]] == list(KINDS)
    assert picture.read_bytes().startswith(b"\x89PNG")
    found = graphsage("evaluate", run, "--per-class", "--json").json
    assert [each["name"] for each in found["classes"]] == list(KINDS)
    assert sum(each["support"] for each in found["classes"]) == found["nodes"]
    right = sum(each["recall"] * each["support"] for each in found["classes"])
    assert right / found["nodes"] == pytest.approx(found["micro_f1"])
    assert 0 <= found["ece"] <= 1
    assert "classes" not in graphsage("evaluate", run, "--json").json
    assert "must end in .png" in graphsage("evaluate", run, "--picture", tmp_path / "no.pdf").error

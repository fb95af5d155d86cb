"""Links from the command line: training, scores beside yardsticks, and refusals in one sentence."""

from pathlib import Path

import pytest

from command_line import SMALL, Command
from graphsage.cli.main import main

METHODS = ["popularity", "common neighbors", "resource allocation", "nearest vote"]


@pytest.fixture(scope="module")
def linked(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("links") / "run"
    assert main(["train", str(data), "--task", "links", *SMALL, "--out", str(run)]) == 0
    return run


def test_training_prints_the_links_and_the_yardsticks(data: Path, graphsage: Command, tmp_path: Path) -> None:
    answer = graphsage("train", data, "--task", "links", *SMALL, "--out", tmp_path / "run")
    assert answer.code == 0
    assert "split " not in answer.err  # no node is held out
    assert "links   train " in answer.err
    assert "both directions of a pair count once" in answer.err
    assert "val MRR" in answer.err
    assert "validation MRR" in answer.out
    assert all(f"\n{name}" in answer.out for name in ("model", *METHODS))
    again = graphsage("train", "--resume", "--out", tmp_path / "run", "--epochs", "3")
    assert again.code == 0, again.err
    assert "epoch 3/3" in again.err


def test_links_without_a_time_are_told_of_the_split_that_has_one(graphsage: Command, tmp_path: Path) -> None:
    rows = "".join(f"{v},{(v + step) % 30},{v}\n" for v in range(30) for step in (1, 2, 3))
    (tmp_path / "edges.csv").write_text("source,target,when\n" + rows, encoding="utf-8")
    words = ("--edges", tmp_path / "edges.csv", "--edge-time", "when", "--task", "links", "--identity-dim", "4", *SMALL)
    answer = graphsage("train", *words, "--out", tmp_path / "run")
    assert answer.code == 0, answer.err
    assert "note    only --link-split time leaves later edges out of training" in answer.err


def test_evaluation_ranks_held_out_links(linked: Path, graphsage: Command) -> None:
    found = graphsage("evaluate", linked, "--json").json
    assert found["link_split"] == "edges"
    assert list(found["yardsticks"]) == METHODS
    assert {"mrr", "hits@10", "hits@50", "recall@10", "recall@50", "auc", "ap", "sources"} <= set(found)
    assert set(found["yardsticks"]["popularity"]) <= set(found)
    shown = graphsage("evaluate", linked, "--part", "val", "--no-yardsticks").out
    assert "val links of" in shown
    assert "popularity" not in shown


def test_links_of_new_nodes_are_held_out_by_a_split(data: Path, graphsage: Command, tmp_path: Path) -> None:
    words = ("--task", "links", "--link-split", "nodes", "--split", "given", "--source-encoder", "features", *SMALL)
    assert graphsage("train", data, *words, "--out", tmp_path / "run").code == 0
    assert graphsage("evaluate", tmp_path / "run", "--json").json["split_name"] == "given"


def test_another_graph_is_asked_for_its_own_links(linked: Path, data: Path, graphsage: Command) -> None:
    assert (
        graphsage("evaluate", linked, data, "--json").json["mrr"] == graphsage("evaluate", linked, "--json").json["mrr"]
    )


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--split", "given"), "--link-split edges holds out links and no nodes, so --split has no effect"),
        (("--link-split", "time"), "--link-split time needs edges with times, and the graph has none"),
        (("--degree-features",), "--degree-features does not fit --task links"),
        (("--max-degree", "5"), "--max-degree does not fit --task links"),
        (("--metric", "accuracy"), "use one of mrr, hits@10, recall@50"),
        (("--workers", "2"), "--task links trains in one process"),
    ],
)
def test_what_does_not_fit_is_one_sentence(
    data: Path, graphsage: Command, tmp_path: Path, words: tuple[str, ...], sentence: str
) -> None:
    answer = graphsage("train", data, "--task", "links", *SMALL, *words, "--out", tmp_path / "run")
    assert answer.code == 2
    assert sentence in answer.err
    assert "Traceback" not in answer.err


@pytest.mark.parametrize("words", [("--per-class",), ("--picture", "a.png"), ("--part", "train")])
def test_evaluation_refuses_what_is_for_classes(linked: Path, graphsage: Command, words: tuple[str, ...]) -> None:
    assert graphsage("evaluate", linked, *words).error


def test_a_model_of_links_predicts_nothing_else(linked: Path, graphsage: Command, tmp_path: Path) -> None:
    assert "predicts links" in graphsage("predict", linked, "--out", tmp_path / "p.csv").error
    assert graphsage("embed", linked, "--out", tmp_path / "z.npy").code == 0
    assert graphsage("info", linked).code == 0

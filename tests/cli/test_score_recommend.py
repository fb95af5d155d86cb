"""`graphsage score` and `graphsage recommend`, on a run of links."""

import csv
from pathlib import Path

import pytest

from command_line import SMALL, Command
from graphsage.cli.main import main


@pytest.fixture(scope="module")
def linked(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("links") / "run"
    assert main(["train", str(data), "--task", "links", "--no-yardsticks", *SMALL, "--out", str(run)]) == 0
    return run


def pairs(folder: Path, *rows: str) -> Path:
    path = folder / "pairs.csv"
    path.write_text("\n".join(["source,target", *rows]) + "\n", encoding="utf-8")
    return path


def test_pairs_are_scored_in_their_order(linked: Path, graphsage: Command, tmp_path: Path) -> None:
    file = pairs(tmp_path, "node-1,node-2", "node-7,node-3", "node-2,node-1")
    lines = list(csv.DictReader(graphsage("score", linked, file).out.splitlines()))
    assert [(line["source"], line["target"]) for line in lines] == [
        ("node-1", "node-2"),
        ("node-7", "node-3"),
        ("node-2", "node-1"),
    ]
    found = graphsage("score", linked, file, "--json").json
    assert [one["score"] for one in found["scores"]] == [float(line["score"]) for line in lines]
    assert graphsage("score", linked, file, "--out", tmp_path / "s.parquet").code == 0
    assert (tmp_path / "s.parquet").exists()


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        (("node-1,node-2", "node-1,nobody"), "1 pair names a node that the graph does not have, such as 'nobody'"),
        (("node-1,node-2", "node-3,node-3"), "pair 2 joins 'node-3' with itself"),
        ((), "no row"),
    ],
)
def test_one_wrong_pair_refuses_all(
    linked: Path, graphsage: Command, tmp_path: Path, rows: tuple[str, ...], sentence: str
) -> None:
    answer = graphsage("score", linked, pairs(tmp_path, *rows), "--out", tmp_path / "out.csv")
    assert sentence in answer.error
    assert not (tmp_path / "out.csv").exists()


def test_a_node_gets_its_best_unknown_links(linked: Path, graphsage: Command, tmp_path: Path) -> None:
    found = graphsage("recommend", linked, "node-5", "-k", "3", "--json").json
    assert found["id"] == "node-5"
    assert found["recall"] == 1.0
    scores = [one["score"] for one in found["recommended"]]
    assert scores == sorted(scores, reverse=True)
    file = pairs(tmp_path, *(f"node-5,{one['id']}" for one in found["recommended"]))
    again = graphsage("score", linked, file, "--json").json
    assert again["linked"] == 0
    assert [one["score"] for one in again["scores"]] == pytest.approx(scores, abs=1e-4)
    assert len(graphsage("recommend", linked, "node-5", "-k", "3").out.splitlines()) == 3


def test_new_nodes_get_answers_each(linked: Path, graphsage: Command, tmp_path: Path) -> None:
    new = tmp_path / "new.jsonl"
    new.write_text('{"id": "a", "features": [0,0,0,0,1,0,0]}\n{"id": "b", "features": [0,0,0,0,0,1,0]}\n')
    found = graphsage("recommend", linked, "--new-nodes", new, "-k", "2", "--json").json
    assert [one["id"] for one in found["nodes"]] == ["a", "b"]
    assert all(len(one["recommended"]) == 2 for one in found["nodes"])
    assert graphsage("recommend", linked, "--new-nodes", new).out.startswith("a ")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((), "one of them"),
        (("nobody",), "nobody"),
        (("node-1", "--new-nodes", "new.csv"), "one of them"),
    ],
)
def test_what_cannot_be_answered_is_one_sentence(
    linked: Path, graphsage: Command, words: tuple[str, ...], sentence: str
) -> None:
    assert sentence in graphsage("recommend", linked, *words).error


def test_a_model_of_classes_knows_no_links(run: Path, graphsage: Command, tmp_path: Path) -> None:
    assert "--task links" in graphsage("recommend", run, "node-1").error
    assert "--task links" in graphsage("score", run, pairs(tmp_path, "node-1,node-2")).error

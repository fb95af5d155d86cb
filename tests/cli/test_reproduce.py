"""graphsage reproduce."""

import json
from pathlib import Path

import pytest

from command_line import Command, planted, split
from graphsage.experiments import profile as profiles
from graphsage.experiments.profile import Profile
from graphsage.graph.storage import save_graph

SMALL = {"dim": 8, "sample_sizes": (4, 3), "batch_size": 16, "steps": 5}
TINY = Profile(
    name="tiny",
    seeds=1,
    forms=("paper",),
    training={"supervised": SMALL, "unsupervised": SMALL},
    rates={"supervised": (0.01,), "unsupervised": (0.001,)},
    deepwalk={"passes": 1, "num_walks": 2, "dim": 8},
    deepwalk_rates=(0.8,),
)


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setitem(profiles.PROFILES, "tiny", TINY)
    save_graph(planted(), tmp_path / "graph", {"given": split()})
    return f"planted={tmp_path / 'graph'}"


def test_a_piece_of_table_1_is_made_and_reported(graphsage: Command, data: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = ("reproduce", "table1", "--data", data, "--profile", "tiny", "--out", out, "--jobs", "1")
    answer = graphsage(*words, "--only", "supervised,mean", "--json")
    assert answer.json["written"] == [str(out / "table1.json")]
    rows = json.loads((out / "table1.json").read_text())["rows"]
    assert {row["row"] for row in rows} == {
        "Random",
        "Raw features",
        "Hop means",
        "GCN smoothing",
        "DeepWalk",
        "DeepWalk, five passes",
        "DeepWalk + features",
        "DeepWalk + features, five passes",
        "GraphSAGE-mean",
    }
    report = graphsage("reproduce", "report", "--out", out)
    assert report.out.strip() == str(out / "report.html")
    page = (out / "report.html").read_text()
    assert "GraphSAGE-mean" in page
    assert "data:image/png;base64," in page
    assert "<script" not in page
    assert (out / "table1.png").read_bytes().startswith(b"\x89PNG")


def test_a_sitting_that_is_over_ends_with_code_3(graphsage: Command, data: str, tmp_path: Path) -> None:
    answer = graphsage(
        "reproduce", "table1", "--data", data, "--profile", "tiny", "--out", tmp_path / "out", "--minutes", "0"
    )
    assert answer.code == 3
    assert "run the same command again" in answer.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["table9", "--data", "setmm"], "there is no experiment 'table9'"),
        (["table1"], "give at least one data set"),
        (["table1", "--data", "ppi"], "--data ppi needs a path"),
        (["table1", "--data", "ppi=/nowhere"], "/nowhere does not exist"),
        (["table1", "--data", "setmm", "--profile", "huge"], "--profile must be one of quick, full"),
        (["table1", "--data", "setmm", "--only", "max"], "--only takes unsupervised, supervised, paper"),
        (["table1", "--data", "setmm", "--device", "cpu", "--tf32"], "--tf32 needs a GPU"),
        (["figure2b", "--data", "setmm", "--only", "gcn"], "--only and --small choose a piece of table1"),
        (["depth", "--data", "setmm", "--small"], "--only and --small choose a piece of table1"),
        (["facts", "--data", "debian=tests"], "must hold nodes.csv and edges.csv"),
        (["report", "--out", "/nowhere/at/all"], "holds no result"),
    ],
)
def test_mistakes_are_named(graphsage: Command, tmp_path: Path, words: list[str], message: str) -> None:
    assert message in graphsage("reproduce", *words, *([] if "--out" in words else ["--out", tmp_path])).error


def test_an_interrupted_run_says_that_nothing_is_lost(
    graphsage: Command, data: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("graphsage.experiments.reproduce.reproduce", interrupt)
    answer = graphsage("reproduce", "facts", "--data", data, "--out", tmp_path)
    assert answer.code == 130
    assert "finished trials are kept: run the same command again" in answer.err

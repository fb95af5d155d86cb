"""`graphsage sweep` end to end: files, words, mistakes, interruption."""

import csv
import json
import os
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from typing import Any

import pytest

from command_line import Command
from graphsage.graph.storage import save_graph
from graphsage.inference.model import load
from graphsage.training.score import Score, Scorer
from planted import planted_graph, planted_split

BASE = "dim = 8\nsample_sizes = [4, 3]\nbatch_size = 16\nepochs = 2\n"
SPACE = f"{BASE}[space]\nlr = [0.05, 0.0001]\nhead_scale = [true, false]\n"


@pytest.fixture
def space(tmp_path: Path) -> Path:
    path = tmp_path / "sweep.toml"
    path.write_text(SPACE)
    return path


def test_a_sweep_leaves_a_table_a_picture_and_settings_that_train(
    graphsage: Command, data: Path, space: Path, tmp_path: Path
) -> None:
    words = (
        "sweep",
        data,
        "--space",
        space,
        "--sampler",
        "grid",
        "--pruner",
        "none",
        "--seeds",
        "2",
        "--device",
        "cpu",
    )
    answer = graphsage(*words, "--out", tmp_path / "out")
    assert answer.code == 0, answer.err
    assert answer.err.count("val F1") == 4
    assert "test" not in answer.err.replace("test 18", "")  # sizes of the split apart, test is not shown on the way
    assert "test F1" in answer.out
    record = json.loads((tmp_path / "out" / "sweep.json").read_text())
    best = max(record["trials"], key=lambda trial: (trial["val_score"], -trial["trial"]))
    assert record["winner"]["trial"] == best["trial"]
    assert len(record["winner"]["test"]["values"]) == 2
    assert record["winner"]["val"]["values"][0] == pytest.approx(best["val_score"], abs=1e-4)
    assert not any("test" in name for trial in record["trials"] for name in trial)
    with (tmp_path / "out" / "trials.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [(row["lr"], row["head_scale"], row["state"]) for row in rows] == [
        (lr, scale, "complete") for lr in ("0.05", "0.0001") for scale in ("True", "False")
    ]
    assert (tmp_path / "out" / "sweep.png").read_bytes().startswith(b"\x89PNG")
    chosen = tomllib.loads((tmp_path / "out" / "best.toml").read_text())
    assert {name: chosen[name] for name in ("lr", "head_scale", "dim", "split")} == {
        **best["settings"],
        "dim": 8,
        "split": "given",
    }
    trained = graphsage("train", "--config", tmp_path / "out" / "best.toml", "--out", tmp_path / "run", "--json")
    assert trained.json["val_score"] == pytest.approx(best["val_score"])
    again = graphsage(*words, "--out", tmp_path / "out", "--json")
    assert "4 are done already" in again.err
    assert again.json["winner"] == record["winner"]


def test_trials_read_relations_and_weights(graphsage: Command, tmp_path: Path) -> None:
    graph = planted_graph(direction="both", weighted=True)
    save_graph(graph, tmp_path / "graph", {"given": planted_split(graph)})
    space = tmp_path / "sweep.toml"
    space.write_text(f"{BASE}[space]\nlr = [0.05, 0.0001]\n")
    words = ("--space", space, "--sampler", "grid", "--pruner", "none", "--seeds", "1", "--device", "cpu")
    answer = graphsage("sweep", tmp_path / "graph", *words, "--out", tmp_path / "out", "--json")
    assert answer.code == 0, answer.err
    trials = json.loads((tmp_path / "out" / "sweep.json").read_text())["trials"]
    trained = graphsage("train", "--config", tmp_path / "out" / "best.toml", "--out", tmp_path / "run", "--json")
    assert trained.json["val_score"] == pytest.approx(max(trial["val_score"] for trial in trials))
    config = load(tmp_path / "run").encoder.config
    assert (config.relations, config.weighted) == (("in", "out"), True)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """The parts of the data that each scored trial is asked for."""
    asked: list[tuple[str, ...]] = []
    made = Scorer.score

    def watched(scorer: Scorer, settings: dict[str, Any], parts: tuple[str, ...], *more: Any) -> Score:
        asked.append(parts)
        return made(scorer, settings, parts, *more)

    monkeypatch.setattr(Scorer, "score", watched)
    return asked


def test_test_labels_do_not_reach_the_choice(
    graphsage: Command, data: Path, space: Path, tmp_path: Path, asked: list[tuple[str, ...]]
) -> None:
    words = ("sweep", data, "--space", space, "--sampler", "grid", "--device", "cpu", "--out", tmp_path / "out")
    assert graphsage(*words, "--seeds", "0").code == 0
    assert asked == [()] * 4
    assert graphsage(*words, "--seeds", "1").code == 0
    assert asked[4:] == [("val", "test")]


def test_the_papers_grid_is_a_space(graphsage: Command, data: Path, tmp_path: Path) -> None:
    fixed = [
        word for pair in ("dim=8", "sample_sizes=[4,3]", "epochs=1", "aggregator=mean") for word in ("--set", pair)
    ]
    answer = graphsage("sweep", data, "--space", "paper", *fixed, "--out", tmp_path / "out", "--json", "--seeds", "0")
    record = json.loads((tmp_path / "out" / "sweep.json").read_text())
    assert answer.json["counts"] == {"complete": 3}
    assert [trial["settings"] for trial in record["trials"]] == [{"lr": 0.01}, {"lr": 0.001}, {"lr": 0.0001}]


def test_unsupervised_trials_are_compared_by_the_probe(
    graphsage: Command, data: Path, space: Path, tmp_path: Path
) -> None:
    space.write_text(BASE + 'task = "unsupervised"\nsteps = 3\n[space]\nlr = [0.01, 0.001]\n')
    answer = graphsage("sweep", data, "--space", space, "--trials", "2", "--out", tmp_path / "out", "--json")
    assert answer.json["counts"] == {"complete": 2}
    assert 0 < answer.json["winner"]["test"]["mean"] <= 1


def test_what_fails_is_told_and_a_sweep_of_nothing_but_failures_is_an_error(
    graphsage: Command, data: Path, space: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    space.write_text(BASE + "steps = 3\n[space]\ntask = ['supervised', 'unsupervised']\npatience = ['none', 1]\n")
    words = ("sweep", data, "--space", space, "--sampler", "grid", "--device", "cpu", "--json")
    answer = graphsage(*words, "--out", tmp_path / "one")
    assert answer.json["counts"] == {"complete": 3, "failed": 1}
    assert "failed: ConfigError: --patience needs a validation score" in answer.err

    def broken(*_: Any) -> Score:
        raise MemoryError("no room")

    monkeypatch.setattr(Scorer, "score", broken)
    error = graphsage(*words, "--out", tmp_path / "two").error
    assert "no trial could be finished: MemoryError: no room" in error


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (BASE, "has no table [space]"),
        ("[space]\nlr = 0.1\n", "lr must be a list of choices or a range"),
        ("[space]\nrate = [0.1]\n", "there is no setting 'rate'"),
        ("[space]\nrate = {low = 0.1, high = 1.0}\n", "there is no setting 'rate'"),
        ("[space]\nlr = ['fast']\n", "lr: input should be a valid number; got 'fast'"),
        ("[space]\ndim = [8.5]\n", "dim: input should be a valid integer; got 8.5"),
        ("[space]\nbias = ['yes']\n", "bias: input should be a valid boolean"),
        ("[space]\nlr = {low = 0.1}\n", "lr: a range needs low and high; high is missing"),
        ("[space]\nlr = {low = 0.1, hi = 1.0}\n", "a range has low, high, log and step; got hi"),
        ("[space]\nlr = {low = 0.1, high = 'x'}\n", "input should be a valid number; got 'x'"),
        ("[space]\nlr = {low = 0.1, high = 1.0, log = 1}\n", "log must be true or false; got 1"),
        ("[space]\ndim = {low = 8, high = 16, step = 0.5}\n", "step must be a whole number; got 0.5"),
        ("[space]\nlr = {low = 0.1, high = 1.0, step = 'x'}\n", "step must be a number; got 'x'"),
        ("[space]\nhidden_dim = {low = 'none', high = 16}\n", "low and high must be numbers"),
        ("[space]\naggregator = {low = 1, high = 2}\n", "aggregator is not a number and has no range"),
        ("[space]\nsample_sizes = {low = 1, high = 2}\n", "sample_sizes is not a number and has no range"),
        ("[space]\nlr = {low = 1.0, high = 0.1}\n", "low must be below high"),
        ("[space]\naggregator = ['max']\n", "aggregator must be one of"),
        ("lr = 0.1\n[space]\nlr = [0.1, 0.2]\n", "lr is in [space] and also fixed to 0.1"),
        ("epoch = 1\n[space]\nlr = [0.1, 0.2]\n", "there is no setting 'epoch'"),
        ("[space\n", "is not TOML"),
    ],
)
def test_a_bad_space_is_one_sentence(graphsage: Command, data: Path, space: Path, text: str, message: str) -> None:
    space.write_text(text)
    error = graphsage("sweep", data, "--space", space).error
    assert message in error
    assert str(space) in error or "space" in error


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--minutes", "0"), "there was no time for one"),
        (("--set", "task=joint"), "there is no space for --task joint yet"),
        (("--space", "missing.toml"), "missing.toml does not exist; --space takes a TOML file"),
        (
            ("--space", "paper", "--sampler", "tpe"),
            "the space paper is a list of points; --sampler grid tries them all",
        ),
        (("--space", "paper", "--set", "lr=0.1"), "the paper's grid chooses lr"),
        (("--space", "paper", "--pruner", "saw"), "--pruner must be one of median, halving, none"),
        (("--space", "paper", "--device", "moon"), "device must be auto, cpu or cuda"),
        (("--space", "paper", "--split", "moon"), "no split 'moon'"),
        (("--space", "paper", "--trials", "0"), "--trials"),
        (("--space", "paper", "--split", "empty"), "the split has no labeled one"),
    ],
)
def test_a_bad_command_is_one_sentence(
    graphsage: Command, data: Path, tmp_path: Path, words: tuple[str, ...], message: str
) -> None:
    assert message in graphsage("sweep", data, "--out", tmp_path / "out", *words).error


def test_a_sweep_needs_data(graphsage: Command, space: Path) -> None:
    assert "nothing to train on" in graphsage("sweep", "--space", space).error


def test_optuna_is_named_where_it_is_missing(
    graphsage: Command, data: Path, space: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    assert "pip install 'graphsage[cluster]'" in graphsage("sweep", data, "--space", space).error


def test_ray_is_named_where_it_is_missing(
    graphsage: Command, data: Path, space: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    error = graphsage("sweep", data, "--space", space, "--out", tmp_path / "out", "--ray", "auto").error
    assert "--ray needs Ray: pip install 'graphsage[cluster]'" in error


def test_minutes_end_a_sitting(graphsage: Command, data: Path, space: Path, tmp_path: Path) -> None:
    words = ("sweep", data, "--space", space, "--trials", "2", "--device", "cpu", "--out", tmp_path / "out", "--json")
    late = graphsage(*words, "--minutes", "0")
    assert late.code == 3
    assert "2 trials are left; the same command continues" in late.err
    assert graphsage(*words).json["counts"] == {"complete": 2}


def test_a_sweep_without_a_space_ends_beside_the_default_and_the_yardsticks_with_a_model(
    graphsage: Command, data: Path, tmp_path: Path, asked: list[tuple[str, ...]]
) -> None:
    fixed = [word for pair in ("dim=8", "sample_sizes=[4,3]", "epochs=2") for word in ("--set", pair)]
    words = ("sweep", data, *fixed, "--sampler", "random", "--out", tmp_path / "out", "--device", "cpu")
    answer = graphsage(*words, "--minutes", "0.03")
    assert answer.code == 0, answer.err
    record = json.loads((tmp_path / "out" / "sweep.json").read_text())
    assert "dim" not in record["space"]["axes"]
    assert record["space"]["fixed"]["whole_batches"] == 1
    names = ["default settings", "features", "features + 2 hops of neighbor means"]
    assert [row["name"] for row in record["beside"]] == names
    assert all(0 <= row[part]["mean"] <= 1 for row in record["beside"] for part in ("val", "test"))
    assert asked == [()] * len(record["trials"]) + [("val", "test")] * 2  # test nodes: the winner and the default
    for name in ("winner", *names):
        assert name in answer.out
    evaluated = graphsage("evaluate", tmp_path / "out" / "run", "--json").json
    assert evaluated["micro_f1"] == pytest.approx(record["winner"]["test"]["mean"], abs=1e-4)


@pytest.mark.slow
def test_two_jobs_make_the_trials_and_the_winners_seeds(
    graphsage: Command, data: Path, space: Path, tmp_path: Path
) -> None:
    words = ("sweep", data, "--space", space, "--trials", "4", "--device", "cpu", "--out", tmp_path / "out", "--json")
    done = graphsage(*words, "--jobs", "2", "--seeds", "2", "--pruner", "none")
    assert done.json["counts"] == {"complete": 4}
    assert len(done.json["winner"]["test"]["values"]) == 2


@pytest.mark.skipif(sys.platform != "linux", reason="sends signals")
def test_ctrl_c_keeps_what_was_tried(data: Path, space: Path, tmp_path: Path) -> None:
    space.write_text(SPACE.replace("epochs = 2", "epochs = 100000"))
    words = [
        sys.executable,
        "-m",
        "graphsage",
        "sweep",
        str(data),
        "--space",
        str(space),
        "--out",
        str(tmp_path / "out"),
    ]
    sweeping = subprocess.Popen(
        words,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a shell's background jobs ignore it
    )
    running = tmp_path / "out" / "running" / "0"
    end = time.monotonic() + 120
    try:
        while time.monotonic() < end and not (running.exists() and running.read_text()):
            time.sleep(0.1)
        sweeping.send_signal(signal.SIGINT)
        _, err = sweeping.communicate(timeout=60)
    finally:
        sweeping.kill()
    # Python ends by the signal itself, although it was handled, if it fell into an `exec`, such as that of a dataclass.
    assert sweeping.returncode in (130, -signal.SIGINT)
    assert "interrupted; 0 of 50 trials are kept" in err
    assert "Traceback" not in err

"""`graphsage train`: runs, resuming, what is kept."""

import os
import signal
import tomllib
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file

from command_line import SMALL, Command
from graphsage.cli.output import TrainingDisplay


def weights(run: Path) -> dict[str, Any]:
    return {name: value.tolist() for name, value in load_file(run / "model.safetensors").items()}


def test_training_reports_on_stderr_and_answers_on_stdout(graphsage: Command, data: Path, tmp_path: Path) -> None:
    answer = graphsage("train", data, "--out", tmp_path / "run", *SMALL)
    assert answer.code == 0
    assert len(answer.out.splitlines()) == 1
    assert str(tmp_path / "run") in answer.out
    assert "validation F1 0." in answer.out
    assert "data    planted: 90 nodes" in answer.err
    assert "split   given: train 54, val 18, test 18" in answer.err
    assert "epoch 1/2   loss " in answer.err
    assert "epoch 2/2   loss " in answer.err


def test_json_is_one_object(graphsage: Command, data: Path, tmp_path: Path) -> None:
    answer = graphsage("train", data, "--out", tmp_path / "run", *SMALL, "--seed", "3", "--json")
    assert set(answer.json) == {"run", "data", "split", "task", "seed", "steps", "seconds", "metric", "val_score"}
    assert answer.json["seed"] == 3
    assert answer.json["steps"] == 8
    assert 0 <= answer.json["val_score"] <= 1


def test_the_same_seed_gives_the_same_model(graphsage: Command, data: Path, tmp_path: Path) -> None:
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        assert graphsage("train", data, "--out", tmp_path / name, *SMALL, "--seed", seed).code == 0
    assert weights(tmp_path / "a") == weights(tmp_path / "b")
    assert weights(tmp_path / "a") != weights(tmp_path / "c")


@pytest.mark.parametrize("task", ["unsupervised", "joint"])
def test_every_task_trains_and_is_scored(graphsage: Command, data: Path, tmp_path: Path, task: str) -> None:
    trained = graphsage(
        "train",
        data,
        "--out",
        tmp_path / "run",
        *SMALL,
        "--task",
        task,
        "--steps",
        "6",
        "--set",
        "num_walks=2",
        "--json",
    )
    assert trained.json["task"] == task
    assert (trained.json["val_score"] is None) == (task == "unsupervised")
    scored = graphsage("evaluate", tmp_path / "run", "--json").json
    assert scored["classifier"] == ("logistic probe" if task == "unsupervised" else "head")


@pytest.mark.parametrize("aggregator", ["gcn", "lstm", "pool", "meanpool"])
def test_every_aggregator_has_a_name(graphsage: Command, data: Path, tmp_path: Path, aggregator: str) -> None:
    width = () if aggregator in ("mean", "gcn") else ("--hidden-dim", "8")
    words = ("--aggregator", aggregator, "--form", "reference", *width, "--steps", "2")
    assert graphsage("train", data, "--out", tmp_path / "run", *SMALL, *words).code == 0
    settings = graphsage("info", tmp_path / "run", "--json").json["settings"]
    assert settings["aggregator"] == aggregator
    assert settings["combine"] == "halves"


def test_an_existing_run_is_kept_unless_told_otherwise(graphsage: Command, data: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert graphsage("train", data, "--out", run, *SMALL).code == 0
    before = weights(run)
    (run / "notes.txt").write_text("mine")
    assert "--resume" in graphsage("train", data, "--out", run, *SMALL, "--seed", "5").error
    assert weights(run) == before
    assert graphsage("train", data, "--out", run, *SMALL, "--seed", "5", "--overwrite").code == 0
    assert weights(run) != before
    assert (run / "notes.txt").read_text() == "mine"


def test_a_folder_with_other_files_is_not_written_into(graphsage: Command, data: Path, tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    assert "thesis.tex" in graphsage("train", data, "--out", tmp_path, *SMALL, "--overwrite").error
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_longer_run_continues_a_shorter_one(graphsage: Command, data: Path, tmp_path: Path) -> None:
    assert graphsage("train", data, "--out", tmp_path / "once", *SMALL, "--epochs", "4").code == 0
    assert graphsage("train", data, "--out", tmp_path / "twice", *SMALL, "--epochs", "2").code == 0
    resumed = graphsage("train", "--out", tmp_path / "twice", "--resume", "--epochs", "4", "--device", "cpu")
    assert resumed.code == 0
    assert "epoch 1/4" not in resumed.err
    assert "epoch 3/4" in resumed.err
    assert weights(tmp_path / "once") == weights(tmp_path / "twice")


def test_ctrl_c_keeps_the_run_and_resume_ends_as_if_nothing_happened(
    graphsage: Command, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert graphsage("train", data, "--out", tmp_path / "quiet", *SMALL).code == 0
    with monkeypatch.context() as patch:
        shown = TrainingDisplay.__call__

        def press_ctrl_c(display: TrainingDisplay, event: Any) -> None:
            shown(display, event)
            if event.step == 3:
                os.kill(os.getpid(), signal.SIGINT)

        patch.setattr(TrainingDisplay, "__call__", press_ctrl_c)
        stopped = graphsage("train", data, "--out", tmp_path / "stopped", *SMALL)
    assert stopped.code == 130
    assert stopped.out == ""
    assert "interrupted; continue with --resume" in stopped.err
    assert "not finished" in graphsage("info", tmp_path / "stopped").out
    assert "--resume" in graphsage("evaluate", tmp_path / "stopped").error
    assert graphsage("train", "--out", tmp_path / "stopped", "--resume", "--device", "cpu").code == 0
    assert weights(tmp_path / "stopped") == weights(tmp_path / "quiet")


def test_resuming_with_other_settings_is_refused(graphsage: Command, data: Path, tmp_path: Path) -> None:
    assert graphsage("train", data, "--out", tmp_path / "run", *SMALL).code == 0
    assert "other settings" in graphsage("train", "--out", tmp_path / "run", "--resume", "--lr", "0.5").error
    assert "no checkpoint" in graphsage("train", data, "--out", tmp_path / "new", "--resume").error


def test_run_toml_repeats_the_run(graphsage: Command, data: Path, tmp_path: Path) -> None:
    words = ("--form", "reference", "--cap", "off", "--no-standardize", "--dropout", "0.25", "--set", "clip=0.5")
    assert graphsage("train", data, "--out", tmp_path / "a", *SMALL, *words).code == 0
    kept = tomllib.loads((tmp_path / "a" / "run.toml").read_text())
    assert kept["data"] == str(data)
    assert kept["split"] == "given"
    assert (kept["form"], kept["cap"], "max_degree" in kept) == ("reference", "off", False)
    again = graphsage("train", "--config", tmp_path / "a" / "run.toml", "--out", tmp_path / "b", "--device", "cpu")
    assert again.code == 0
    assert weights(tmp_path / "a") == weights(tmp_path / "b")


@pytest.mark.parametrize(
    ("words", "reported"),
    [(["--patience", "1"], 0.9), ([], 0.9), (["--form", "paper"], 0.8), (["--keep-weights", "last"], 0.8)],
)
def test_the_score_reported_is_that_of_the_weights_kept(
    graphsage: Command, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], reported: float
) -> None:
    scores = iter([0.7, 0.9, 0.8])
    module = import_module("graphsage.training.train")
    monkeypatch.setattr(module, "_validator", lambda *_: lambda: next(scores))
    answer = graphsage("train", data, "--out", tmp_path / "run", *SMALL, "--epochs", "3", *words, "--json")
    assert answer.json["val_score"] == reported


def test_a_refused_resume_leaves_the_runs_settings_alone(graphsage: Command, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    assert graphsage("train", data, "--out", out, *SMALL).code == 0
    before = (out / "run.toml").read_text()
    assert "other settings" in graphsage("train", "--out", out, "--resume", "--lr", "0.5").error
    assert (out / "run.toml").read_text() == before
    assert graphsage("train", "--out", out, "--resume", "--epochs", "3").code == 0


def test_without_out_the_run_has_a_name_of_its_own(
    graphsage: Command, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert graphsage("train", data, *SMALL, "--aggregator", "gcn").code == 0
    assert (tmp_path / "runs" / f"{data.name}-gcn-0" / "config.json").exists()
    assert "--resume needs the run's folder" in graphsage("train", "--resume").error


def test_a_recipe_fills_in_settings_that_flags_override(graphsage: Command, data: Path, tmp_path: Path) -> None:
    words = ("--recipe", "small-graph", "--dim", "8", "--epochs", "2", "--device", "cpu")
    assert graphsage("train", data, "--out", tmp_path / "run", *words).code == 0
    kept = tomllib.loads((tmp_path / "run" / "run.toml").read_text())
    assert (kept["dim"], kept["epochs"], kept["whole_batches"], kept["layer_norm"]) == (8, 2, 1, True)
    answer = graphsage("train", data, "--out", tmp_path / "other", "--recipe", "big-graph")
    assert (answer.code, answer.err) == (2, "error: --recipe must be ppi or small-graph; got 'big-graph'\n")

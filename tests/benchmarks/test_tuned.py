"""Settings chosen on validation, and the Debian measurement on a few packages."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import tuned
from graphsage.datasets.debian import RELEASES
from graphsage.training.score import Score
from graphsage.training.trials import TrialStore

KINDS = {"games": "a game to play with friends", "libs": "a shared library of functions", "doc": "a manual to read"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """60 packages of three sections over all releases, each related to two of its own section."""
    kinds = list(KINDS.items()) * 20
    releases = [RELEASES[min(number // 10, 4)] for number in range(60)]
    with (tmp_path / "nodes.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "release", "section", "description"])
        writer.writerows([f"p{i}", releases[i], kind, f"{text} {i}"] for i, (kind, text) in enumerate(kinds))
    edges = [(u, v) for u in range(60) for v in (u - 3, u - 6) if v >= 0]
    with (tmp_path / "edges.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["source", "target", "release"])
        writer.writerows([f"p{u}", f"p{v}", releases[u]] for u, v in edges)
    return tmp_path


def test_settings_are_chosen_before_the_test_packages_are_looked_at(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tuned, "EPOCHS", (1, 6))
    monkeypatch.setattr(tuned, "POINTS", [{"dim": 8, "lr": 0.01}, {"dim": 16, "lr": 0.02}])
    monkeypatch.setattr(tuned, "cost", lambda *_: {})

    def made(name: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((folder / f"{name}.json").read_text())
        return found

    store = TrialStore(folder / "trials")
    tuned.debian(folder, folder, store, 2, "cpu")
    (row,) = made("debian")["rows"]
    assert len(made("debian-sweep")["points"]) == 4
    assert row["settings"] == made("debian-sweep")["chosen"]
    assert row["seeds"] == [0, 1]
    assert row["test_micro_f1"]["mean"] > 0.6
    assert list(made("debian-baselines")["baselines"].values()) == [1.0, 1.0]
    monkeypatch.delattr(tuned.Scorer, "score")  # all runs are in the store
    tuned.debian(folder, folder, store, 2, "cpu")
    assert made("debian")["rows"] == [row]


@pytest.mark.slow
def test_the_whole_command_is_measured(folder: Path) -> None:
    cost = tuned.cost(folder, {"dim": 8, "epochs": 1, "head_scale": True, "max_degree": None})
    assert "--dim 8 --epochs 1 --head-scale --max-degree none --out run" in cost["typed"][0]
    assert 0 < cost["reading_and_featurizing_seconds_at_most"] < cost["seconds"]
    assert cost["cpu_seconds"] > 0
    assert 0 < cost["peak_gib"] < 4


def test_a_failing_command_is_no_measurement(folder: Path) -> None:
    with pytest.raises(SystemExit):
        tuned.cost(folder, {"dim": -1})


def score(settings: dict[str, object], *curve: float) -> Score:
    return Score(settings, {}, {}, curve, 1.0)


def test_the_best_mean_over_seeds_wins() -> None:
    scores = [score({"lr": 1, "seed": 0}, 0.9), score({"lr": 1, "seed": 1}, 0.1), score({"lr": 2, "seed": 0}, 0.6)]
    found = tuned.chosen(scores)
    assert found["chosen"] == {"lr": 2}
    assert found["points"] == [{"lr": 2, "val_micro_f1": 0.6}, {"lr": 1, "val_micro_f1": 0.5}]


def test_a_long_run_includes_shorter_ones() -> None:
    scores = [score({"lr": 1, "epochs": 3}, 0.1, 0.8, 0.3), score({"lr": 2, "epochs": 3}, 0.2, 0.4, 0.7)]
    found = tuned.chosen(scores, epochs=(2, 3))
    assert found["chosen"] == {"lr": 1, "epochs": 2}
    assert [point["val_micro_f1"] for point in found["points"]] == [0.8, 0.7, 0.4, 0.3]


def test_a_row_has_the_spread_of_what_was_measured() -> None:
    scores = [
        Score({"lr": 1, "seed": 0}, {"val": (0.1, 0.0), "test": (0.2, 0.3)}, {"test": 0.5}, (), 6.0),
        Score({"lr": 1, "seed": 1}, {"val": (0.3, 0.0), "test": (0.4, 0.5)}, {"test": 0.7}, (), 8.0),
    ]
    made = tuned.row("a", scores)
    assert (made["label"], made["settings"], made["seeds"]) == ("a", {"lr": 1}, [0, 1])
    assert made["test_micro_f1"]["mean"] == pytest.approx(0.3)
    assert made["sampled_test_micro_f1"]["values"] == [0.5, 0.7]
    assert made["test_macro_f1"]["values"] == [0.3, 0.5]
    other = tuned.row("b", [Score({"seed": 0}, {"val": (0.9, 0.8)}, {}, (), 1.0)])
    assert other["val_micro_f1"]["mean"] == 0.9
    assert not {"test_micro_f1", "sampled_test_micro_f1"} & set(other)

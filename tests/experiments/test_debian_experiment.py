"""The Debian experiment on a few packages."""

import csv
from pathlib import Path

import pytest

from graphsage.experiments import debian
from graphsage.experiments.scored import unfinished

KINDS = {"games": "a game to play with friends", "libs": "a shared library of functions", "doc": "a manual to read"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """60 packages of three sections over all releases, each related to two of its own section."""
    kinds = list(KINDS.items()) * 20
    releases = [debian.RELEASES[min(number // 10, 4)] for number in range(60)]
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
    monkeypatch.setattr(debian, "EPOCHS", (1, 2))
    monkeypatch.setattr(debian, "POINTS", [{"dim": 8, "lr": 0.01}, {"dim": 8, "lr": 0.02}])
    with unfinished(folder / "unfinished") as score_all:
        found = debian.sweep(folder, score_all, "cpu")
        (row,) = debian.final(folder, score_all, "cpu", 2, {"dim": 16, "epochs": 10})["rows"]
    assert len(found["points"]) == 4
    assert found["chosen"] == {k: v for k, v in found["points"][0].items() if k != "val_micro_f1"}
    assert row["seeds"] == [0, 1]
    assert row["test_micro_f1"]["mean"] > 0.6
    assert list(debian.baselines(folder)["baselines"].values()) == [1.0, 1.0]


@pytest.mark.slow
def test_the_whole_command_is_measured(folder: Path) -> None:
    cost = debian.cost(folder, {"dim": 8, "epochs": 1, "head_scale": True, "max_degree": None})
    assert "--dim 8 --epochs 1 --head-scale --max-degree none --out run" in cost["typed"][0]
    assert 0 < cost["reading_and_featurizing_seconds_at_most"] < cost["seconds"]
    assert cost["cpu_seconds"] > 0
    assert 0 < cost["peak_gib"] < 4


def test_a_failing_command_is_no_measurement(folder: Path) -> None:
    with pytest.raises(SystemExit):
        debian.cost(folder, {"dim": -1})

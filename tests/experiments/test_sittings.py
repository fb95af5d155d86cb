"""A reproduction in several sittings: what each of them leaves."""

import dataclasses
from pathlib import Path

import pytest

from graphsage.experiments.data import Source
from graphsage.experiments.reproduce import main, reproduce
from graphsage.training.trials import Unfinished
from reproduction import read, session


def test_a_sitting_that_is_over_says_what_is_left(sources: tuple[Source, ...], tmp_path: Path) -> None:
    with pytest.raises(Unfinished, match="continue"):
        reproduce("table1", session(sources[:1], tmp_path / "out", minutes=0))
    assert not (tmp_path / "out" / "table1.json").exists()


def test_a_sitting_that_is_over_puts_together_what_there_is(sources: tuple[Source, ...], tmp_path: Path) -> None:
    """`all` goes on to the ledger and the report, and a figure has the rates and seeds that were made for it."""
    out = tmp_path / "out"
    with pytest.raises(Unfinished):
        reproduce("all", session(sources[:1], out, minutes=0))
    assert (out / "report.html").exists()
    assert not (out / "figure2b.json").exists()  # not even a part is there
    reproduce("figure2b", session(sources[:1], out, rates=(0.001,), seeds=2))
    (out / "figure2b.json").unlink()
    with pytest.raises(Unfinished, match="2 trials are left"):  # the other rate of both sizes
        reproduce("figure2b", session(sources[:1], out, minutes=0))
    points = read(out, "figure2b")["points"]
    assert [(p["lr"], p["tried"], len(p["test_micro_f1"]["values"])) for p in points] == [(0.001, [0.001], 2)] * 2


def test_putting_together_again_keeps_the_time_that_the_trials_took(
    sources: tuple[Source, ...], tmp_path: Path
) -> None:
    made = session(sources[:1], tmp_path)
    reproduce("pooling", dataclasses.replace(made, began=made.began - 1000))
    reproduce("pooling", session(sources[:1], tmp_path, minutes=0))
    time = read(tmp_path, "pooling")["time"]
    assert (time["trials"], time["sitting_seconds"] >= 1000) == (4, True)


def test_the_ledger_has_the_profile_of_what_it_read(sources: tuple[Source, ...], tmp_path: Path) -> None:
    reproduce("facts", session(sources[:1], tmp_path))
    assert main(["claims", "--profile", "full", "--out", str(tmp_path)]) == 0
    assert read(tmp_path, "claims")["profile"] == "tiny"

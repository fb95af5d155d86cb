"""A search: continued, shared, pruned, and honest about what failed."""

import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from graphsage.errors import ConfigError, DataError
from graphsage.file_lock import FileLock
from graphsage.training.search import ATTEMPTS, Report, Search, finished, left, settings_of, winner, work
from graphsage.training.space import Choice, Space, make_range
from graphsage.training.trials import Result

SPACE = Space(
    {"epochs": 3},
    {
        "lr": make_range("lr", 0.001, 0.1, log=True),
        "dim": make_range("dim", 8, 64, step=8, whole=True),
        "sample_sizes": Choice(((5, 3), (4,))),
        "dropout": make_range("dropout", 0.0, 0.6, step=0.1),
    },
)
GRID = Space({}, {"lr": Choice((0.1, 0.01, 0.001)), "dim": Choice((8, 16))})


def hill(settings: dict[str, Any], report: Report) -> float:
    """A made-up score, best near lr 0.01."""
    value = 1.0 - abs(settings["lr"] - 0.01) - settings.get("dropout", 0.0) / 10
    for epoch in range(1, 4):
        report(epoch, value * epoch / 3)
    return value


def tried(search: Search) -> list[tuple[str, dict[str, Any], float | None]]:
    return [(result["state"], result["point"], result["val"]) for result in found(search)]


def found(search: Search) -> list[Result]:
    return finished(search.open())


def search_in(folder: Path, space: Space = SPACE, trials: int = 12, **options: Any) -> Search:
    return Search(folder, space, {"data": "here", "split": "random"}, trials, **options)


@pytest.mark.parametrize("sampler", ["tpe", "random", "grid"])
def test_an_interrupted_search_ends_with_the_same_trials(tmp_path: Path, sampler: str) -> None:
    space = GRID if sampler == "grid" else SPACE
    whole = search_in(tmp_path / "whole", space, sampler=sampler)
    work(whole, hill)
    pieces = search_in(tmp_path / "pieces", space, sampler=sampler)
    for good in (0, 2, 1):  # so many trials in each sitting before one is cut short
        made: list[float] = []

        def cut(settings: dict[str, Any], report: Report, good: int = good, made: list[float] = made) -> float:
            if len(made) == good:
                raise KeyboardInterrupt
            made.append(hill(settings, report))
            return made[-1]

        with pytest.raises(KeyboardInterrupt):
            work(pieces, cut)
    assert left(pieces, pieces.open()) == pieces.total - 3
    work(pieces, hill)
    assert tried(pieces) == tried(whole)


def test_a_grid_tries_each_point_once_and_more_trials_add_nothing(tmp_path: Path) -> None:
    search = search_in(tmp_path, GRID, 100, sampler="grid", pruner="none")
    work(search, hill)
    work(search, hill)
    assert [params for _, params, _ in tried(search)] == GRID.grid()
    best = winner(search.open())
    assert best is not None
    assert settings_of(search, best["point"]) == {"lr": 0.01, "dim": 8}  # the first of equals


def test_settings_come_back_as_they_were_written(tmp_path: Path) -> None:
    seen: list[dict[str, Any]] = []
    work(search_in(tmp_path, pruner="none"), lambda settings, report: seen.append(settings) or 0.5)
    assert {settings["sample_sizes"] for settings in seen} == {(5, 3), (4,)}
    assert all(settings["epochs"] == 3 and type(settings["dim"]) is int for settings in seen)
    assert {len(str(settings["dropout"])) for settings in seen} == {3}  # 0.3, not 0.30000000000000004


def test_fewer_trials_than_were_made_leave_none(tmp_path: Path) -> None:
    work(search_in(tmp_path, trials=4), hill)
    fewer = search_in(tmp_path, trials=2)
    work(fewer, hill)
    assert left(fewer, fewer.open()) == 0


def test_more_trials_go_on_where_fewer_ended(tmp_path: Path) -> None:
    work(search_in(tmp_path, trials=3), hill)
    first = tried(search_in(tmp_path))
    work(search_in(tmp_path, trials=7), hill)
    assert tried(search_in(tmp_path))[:3] == first
    assert len(tried(search_in(tmp_path))) == 7


@pytest.mark.parametrize("pruner", ["median", "halving", "none"])
def test_a_trial_that_is_behind_is_given_up_unless_pruning_is_off(tmp_path: Path, pruner: str) -> None:
    epochs: list[int] = []

    def falling(settings: dict[str, Any], report: Report) -> float:
        """Each trial is worse than the ones before."""
        epochs.append(0)
        for epoch in range(1, 10):
            epochs[-1] = epoch
            report(epoch, 1.0 / len(epochs))
        return 1.0 / len(epochs)

    search = search_in(tmp_path, pruner=pruner)
    work(search, falling)
    states = [state for state, _, _ in tried(search)]
    assert states[0] == "complete"
    assert states.count("pruned") == {"median": 7, "halving": 11, "none": 0}[pruner]
    assert {e for e, state in zip(epochs, states, strict=True) if state == "pruned"} == {
        "median": {2},
        "halving": {1},
        "none": set(),
    }[pruner]
    best = winner(search.open())
    assert best is not None
    assert best["number"] == 0


def test_a_failed_trial_is_recorded_and_the_others_go_on(tmp_path: Path) -> None:
    def broken(settings: dict[str, Any], report: Report) -> float:
        if settings["lr"] == 0.1:
            raise DataError("the loss of step 3 is nan")
        return settings["lr"]

    search = search_in(tmp_path, GRID, sampler="grid")
    work(search, broken)
    assert [result["state"] for result in found(search)] == ["failed"] * 2 + ["complete"] * 4
    assert found(search)[0]["error"] == "DataError: the loss of step 3 is nan"
    assert left(search, search.open()) == 0


def test_a_trial_that_keeps_killing_its_process_is_given_up(tmp_path: Path) -> None:
    search = search_in(tmp_path, GRID, sampler="grid")

    def deadly(settings: dict[str, Any], report: Report) -> float:
        if settings == GRID.grid()[1]:
            raise SystemExit  # leaves the trial as a kill does
        return hill(settings, report)

    for _ in range(ATTEMPTS):
        with pytest.raises(SystemExit):
            work(search, deadly)
    work(search, deadly)
    assert [result["number"] for result in found(search) if result["state"] == "failed"] == [1]
    assert "died 3 times" in found(search)[1]["error"]


def test_ctrl_c_within_an_import_ends_the_search(tmp_path: Path) -> None:
    """Python may raise another exception in the place of the interrupt, as `__set_name__` of a class does."""

    def interrupted(settings: dict[str, Any], report: Report) -> float:
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt as error:
            raise RuntimeError("Error calling __set_name__") from error

    search = search_in(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        work(search, interrupted)
    assert not found(search)


def test_a_trial_that_a_person_interrupts_again_and_again_is_not_given_up(tmp_path: Path) -> None:
    search = search_in(tmp_path, GRID, sampler="grid")

    def interrupted(settings: dict[str, Any], report: Report) -> float:
        raise KeyboardInterrupt

    for _ in range(ATTEMPTS + 1):
        with pytest.raises(KeyboardInterrupt):
            work(search, interrupted)
    work(search, hill)
    assert {result["state"] for result in found(search)} == {"complete"}


def slow_hill(settings: dict[str, Any], report: Report) -> float:
    time.sleep(0.05)
    return hill(settings, report)


def endless(settings: dict[str, Any], report: Report) -> float:
    time.sleep(600)
    return 0.0


@pytest.mark.parametrize("sampler", ["tpe", "grid"])
def test_processes_share_a_folder_and_make_each_trial_once(tmp_path: Path, sampler: str) -> None:
    space = Space({}, {"lr": Choice(tuple(k / 100 for k in range(1, 31)))}) if sampler == "grid" else SPACE
    search = search_in(tmp_path, space, 30, sampler=sampler, pruner="none")
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=work, args=(search, slow_hill)) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(120)
    assert [worker.exitcode for worker in workers] == [0, 0]
    made = tried(search)
    assert [state for state, _, _ in made] == ["complete"] * 30
    if sampler == "grid":
        assert [point for _, point, _ in made] == space.grid()
    assert {result["attempts"] for result in found(search)} == {1}


def test_a_killed_process_loses_its_trial_to_the_next_one(tmp_path: Path) -> None:
    search = search_in(tmp_path, GRID, sampler="grid", pruner="none")
    worker = multiprocessing.get_context("fork").Process(target=work, args=(search, endless))
    worker.start()
    assert soon(lambda: (tmp_path / "running" / "0").exists() and bool((tmp_path / "running" / "0").read_text()))
    assert worker.pid is not None
    os.kill(worker.pid, signal.SIGKILL)
    worker.join()
    work(search, hill)
    assert [result["state"] for result in found(search)] == ["complete"] * 6
    assert [result["attempts"] for result in found(search)] == [2, 1, 1, 1, 1, 1]


def soon(happened: Callable[[], bool], seconds: float = 60.0) -> bool:
    end = time.monotonic() + seconds
    while not happened() and time.monotonic() < end:
        time.sleep(0.05)
    return happened()


def test_a_trial_that_somebody_makes_is_left_to_him(tmp_path: Path) -> None:
    search = search_in(tmp_path, GRID, sampler="grid")
    with pytest.raises(KeyboardInterrupt):
        work(search, lambda settings, report: (_ for _ in ()).throw(KeyboardInterrupt))
    with FileLock(tmp_path / "running" / "0"):
        work(search, hill)
        assert [result["number"] for result in found(search)] == [1, 2, 3, 4, 5]
        assert left(search, search.open()) == 1
    work(search, hill)
    assert left(search, search.open()) == 0


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"space": GRID}, "space"),
        ({"about": {"data": "there", "split": "random"}}, "data"),
        ({"about": {"data": "here", "split": "time"}}, "split"),
        ({"sampler": "random"}, "sampler"),
    ],
)
def test_a_folder_belongs_to_one_search(tmp_path: Path, change: dict[str, Any], what: str) -> None:
    search = search_in(tmp_path, trials=2)
    work(search, hill)
    with pytest.raises(ConfigError, match=f"holds a sweep with another {what}; choose another folder"):
        replace(search, **change).open()


def test_a_damaged_trial_is_named(tmp_path: Path) -> None:
    search = search_in(tmp_path, trials=2)
    work(search, hill)
    path = tmp_path / "trials.jsonl"
    path.write_text(path.read_text().replace('"complete"', '"pruned"', 1))
    with pytest.raises(DataError, match=r"line 1 of .*trials\.jsonl cannot be trusted"):
        found(search)


@pytest.mark.parametrize("sampler", ["random", "grid"])
def test_only_tpe_needs_optuna(tmp_path: Path, sampler: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    work(search_in(tmp_path / "a", GRID, 4, sampler=sampler), hill)
    with pytest.raises(ConfigError, match="sampler='tpe' needs Optuna"):
        work(search_in(tmp_path / "b", GRID, 4), hill)


def test_random_draws_cover_a_range_and_stay_inside(tmp_path: Path) -> None:
    space = Space(
        {},
        {
            "lr": make_range("lr", 0.001, 0.1, log=True),
            "dim": make_range("dim", 2, 5, whole=True),
            "dropout": make_range("dropout", 0.0, 0.5),
        },
    )
    work(search := search_in(tmp_path, space, 200, sampler="random"), lambda settings, report: 0.5)
    points = [point for _, point, _ in tried(search)]
    assert {point["dim"] for point in points} == {2, 3, 4, 5}
    assert all(0.001 <= point["lr"] <= 0.1 and 0 <= point["dropout"] <= 0.5 for point in points)
    assert 60 < sum(point["lr"] < 0.01 for point in points) < 140  # half of them, by the logarithm


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sampler": "best"}, "sampler must be one of tpe, random, grid; got 'best'"),
        ({"pruner": "axe"}, "pruner must be one of median, halving, none; got 'axe'"),
        ({"trials": 0}, "trials must be at least 1"),
        ({"space": Space({}, {"lr": Choice((0.1,))}, ({"lr": 0.1},))}, "sampler='grid' tries them all"),
    ],
)
def test_a_search_that_cannot_be_made_is_refused(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        replace(search_in(tmp_path), **change)


def test_a_sweep_of_an_older_version_is_refused(tmp_path: Path) -> None:
    (tmp_path / "journal.log").write_text("{}\n")
    with pytest.raises(ConfigError, match="older graphsage version; choose another folder"):
        search_in(tmp_path).open()

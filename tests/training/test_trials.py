import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graphsage.errors import DataError, OutputError
from graphsage.training.space import Choice, Space, paper_space
from graphsage.training.trials import Result, Runner, Trial, TrialStore, Unfinished, sweep, swept


def hill(trial: Trial) -> Result:
    """A made-up score: best at lr 0.01 on validation, while test prefers 0.1."""
    lr, seed = trial.settings["lr"], trial.settings["seed"]
    return {"val": 1.0 - abs(lr - 0.01) + 0.001 * seed, "test": lr + seed}


def runner(folder: Path, evaluate: Callable[[Trial], Result] = hill, *more: Any, **options: Any) -> Runner:
    return Runner(TrialStore(folder), evaluate, *more, **options)


def lines(folder: Path) -> int:
    return sum(len(path.read_text().splitlines()) for path in folder.iterdir())


SPACE = Space({}, {"lr": Choice((0.1, 0.01, 0.001))})


@pytest.mark.parametrize("jobs", [1, 2])
def test_the_best_point_on_validation_is_made_with_every_seed(tmp_path: Path, jobs: int) -> None:
    trials = runner(tmp_path, hill, jobs)
    cells = {"a": Trial("a", {"name": "a"}), "b": Trial("b", {"name": "b"})}
    grids = {"a": SPACE, "b": SPACE.subset(lambda point: point["lr"] == 0.1)}
    sweep(trials, cells, grids, 3)
    a, b = (swept(trials, cells[name], grids[name], 3) for name in cells)
    assert a is not None
    assert b is not None
    assert a.chosen == {"lr": 0.01}
    assert [run["test"] for run in a.results] == [0.01, 1.01, 2.01]
    assert [point["val"] for point in a.points] == pytest.approx([0.91, 1.0, 0.991])
    assert b.chosen == {"lr": 0.1}
    assert lines(tmp_path) == (3 + 2) + (1 + 2)


def test_a_narrow_piece_does_not_forget_what_a_wide_one_found(tmp_path: Path) -> None:
    trials = runner(tmp_path, hill)
    cells = {"a": Trial("a", {"name": "a"})}
    sweep(trials, cells, {"a": SPACE}, 3)
    sweep(trials, cells, {"a": SPACE.subset(lambda point: point["lr"] == 0.001)}, 1, {"a": SPACE})
    found = swept(trials, cells["a"], SPACE, 1)
    assert found is not None
    assert found.chosen == {"lr": 0.01}
    assert list(found.runs) == [0, 1, 2]
    assert len(found.points) == 3
    assert len(found.records) == 3 + 2


def test_what_a_folder_holds_is_put_together_without_making_anything(tmp_path: Path) -> None:
    trials = runner(tmp_path, hill, about={"hardware": "an abacus"})
    cell = Trial("a", {"name": "a"})
    assert swept(trials, cell, SPACE, 3) is None
    trials.run([cell.with_settings(lr=0.1, seed=0), cell.with_settings(lr=0.001, seed=0)])
    trials.run(cell.with_settings(lr=0.001, seed=seed) for seed in (2, 3))
    found = swept(trials, cell, SPACE, 3)
    assert found is not None
    assert found.chosen == {"lr": 0.001}
    assert [point["lr"] for point in found.points] == [0.1, 0.001]
    assert list(found.runs) == [0, 2, 3]  # seed 1 was not made; seed 3 is more than was asked for
    assert {record["hardware"] for record in found.records} == {"an abacus"}
    assert lines(tmp_path) == 4


def threads(trial: Trial) -> Result:
    import torch

    return {"val": float(torch.get_num_threads())}


def test_the_threads_of_a_trial_do_not_depend_on_how_many_are_left(tmp_path: Path) -> None:
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        asked = [Trial("t", {"seed": seed}) for seed in range(3)]
        at_once = [result["val"] for result in runner(tmp_path / "a", threads, jobs=2).run(asked)]
        resumed = runner(tmp_path / "b", threads, jobs=2)
        in_pieces = [resumed.run([trial])[0]["val"] for trial in asked]
        assert at_once == in_pieces == [1.0, 1.0, 1.0]
        assert runner(tmp_path / "c", threads, jobs=2).run(asked, alone=True)[0]["val"] == 3.0
        assert runner(tmp_path / "d", threads).run(asked)[0]["val"] == 3.0
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)


SCRIPT = """
import sys, time
from pathlib import Path
from graphsage.training.trials import Runner, Trial, TrialStore
def forever(trial):
    Path(sys.argv[1], str(trial.settings["seed"])).write_text(str(__import__("os").getpid()))
    time.sleep(600)
if __name__ == "__main__":
    Runner(TrialStore(Path(sys.argv[1], "trials")), forever, jobs=2).run(Trial("t", {"seed": s}) for s in range(2))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
def test_no_worker_outlives_a_killed_sweep(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    sweeping = subprocess.Popen([sys.executable, str(tmp_path / "script.py"), str(tmp_path)])
    notes = [tmp_path / "0", tmp_path / "1"]
    try:
        assert soon(lambda: all(note.exists() and note.read_text() for note in notes), 120)
    finally:
        sweeping.kill()
        sweeping.wait()
    workers = [Path("/proc", note.read_text()) for note in notes]
    assert soon(lambda: not any(worker.exists() for worker in workers), 60)


def soon(happened: Callable[[], bool], seconds: float) -> bool:
    end = time.monotonic() + seconds
    while not happened() and time.monotonic() < end:
        time.sleep(0.1)
    return happened()


def test_a_finished_trial_is_not_made_again(tmp_path: Path) -> None:
    made: list[str] = []

    def counted(trial: Trial) -> Result:
        made.append(trial.label)
        return {"val": 0.5}

    trials = runner(tmp_path, counted)
    one = Trial("One Run", {"seed": 0})
    first = trials.run([one, one])
    assert trials.run([one, one.with_settings(seed=1)])[0] == first[0]
    assert made == ["One Run", "One Run"]


def test_a_sitting_ends_at_its_deadline_and_the_next_one_continues(tmp_path: Path) -> None:
    asked = [Trial("t", {"lr": 0.1, "seed": seed}) for seed in range(3)]
    trials = runner(tmp_path, hill, on_done=lambda *_: setattr(trials, "deadline", time.monotonic() - 1))
    for left in (2, 1):
        trials.deadline = None
        with pytest.raises(Unfinished) as caught:
            trials.run(asked)
        assert caught.value.left == left
    trials.deadline = None
    assert len(trials.run(asked)) == 3


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_trial_that_would_end_too_late_waits_for_the_next_sitting(tmp_path: Path, jobs: int) -> None:
    """What is expected of a label is what its longest trial took, under the same conditions."""
    here, there = {"hardware": "an abacus"}, {"hardware": "a slide rule"}
    for about, label, seed, seconds in (
        (here, "long", 0, 1000.0),
        (here, "long", 1, 1.0),
        (there, "short", 0, 1000.0),
        (here, "short", 1, 0.1),
        (here, "short one", 0, 1000.0),
    ):
        TrialStore(tmp_path).add(Trial(label, {"seed": seed}), about, {"val": 0.0, "seconds": seconds})
    made: list[str] = []
    asked = [Trial(label, {"lr": 0.1, "seed": seed}) for seed in range(2) for label in ("short", "long")]
    trials = runner(tmp_path, hill, jobs, time.monotonic() + 100, lambda trial, *_: made.append(trial.label), here)
    with pytest.raises(Unfinished) as caught:
        trials.run(asked)
    assert (made, caught.value.left) == (["short", "short"], 2)


def test_a_sitting_makes_its_first_trial_however_long(tmp_path: Path) -> None:
    asked = [Trial("long", {"lr": 0.1, "seed": seed}) for seed in range(3)]
    TrialStore(tmp_path).add(asked[0], {}, {"val": 0.0, "seconds": 1000.0})
    for left in (1, 0):
        trials = runner(tmp_path, hill, deadline=time.monotonic() + 100)
        if left:
            with pytest.raises(Unfinished, match="1 trials are left"):
                trials.run(asked)
        else:
            assert len(trials.run(asked)) == 3


def test_a_trial_is_a_line_with_its_type_and_a_damaged_line_is_named(tmp_path: Path) -> None:
    trials = [Trial("PPI, mean", {"lr": 0.01, "seed": seed}, "graphsage", 2, "table1") for seed in range(2)]
    runner(tmp_path, about={"hardware": "an abacus"}).run(trials)
    path = tmp_path / "table1.jsonl"
    whole = path.read_text()
    first, second = whole.splitlines()
    record = json.loads(first)
    assert (record["type"], record["version"], record["hardware"]) == ("graphsage", 2, "an abacus")
    assert (record["label"], record["settings"]) == ("PPI, mean", {"lr": 0.01, "seed": 0})
    for damaged in (second[:-9], second.replace("0.01", "0.02"), second.replace('"val"', '"value"'), "{}", ""):
        path.write_text(f"{first}\n{damaged}\n")
        with pytest.raises(DataError, match=r"line 2 of .*table1\.jsonl .*delete it, and it is made again"):
            runner(tmp_path).run(trials[:1])
    path.write_text(f"{second}\n{first}\n")  # the order of lines has no meaning
    assert [result["test"] for result in runner(tmp_path).run(trials)] == [0.01, 1.01]


def test_a_line_that_a_killed_process_left_unfinished_is_made_again(tmp_path: Path) -> None:
    trials = [Trial("t", {"lr": 0.01, "seed": seed}) for seed in range(2)]
    results = runner(tmp_path).run(trials)
    path = tmp_path / "trials.jsonl"
    first, second = path.read_text().splitlines(keepends=True)
    for length in (1, len(second) // 2, len(second) - 1):
        path.write_text(first + second[:length])
        again = runner(tmp_path)
        assert [result["test"] for result in again.run(trials)] == [result["test"] for result in results]
        assert again.made == 1
        assert len(path.read_text().splitlines()) == 2


def test_a_new_version_of_a_type_invalidates_the_trials_of_that_type_only(tmp_path: Path) -> None:
    old = [Trial("t", {"lr": 0.1, "seed": 0}, type) for type in ("mean", "pool")]
    runner(tmp_path).run(old)
    later = runner(tmp_path)
    later.run([old[0], Trial("t", {"lr": 0.1, "seed": 0}, "pool", version=2)])
    assert (later.made, lines(tmp_path)) == (1, 3)


def test_processes_share_a_folder(tmp_path: Path) -> None:
    """Each store appends under the lock, sees the lines of the others, and keeps the first result of a trial."""
    asked = [Trial("t", {"seed": seed}) for seed in range(20)]
    stores = [TrialStore(tmp_path) for _ in range(4)]

    def fill(number: int) -> None:
        for trial in asked:
            stores[number].add(trial, {}, {"val": float(number)})

    threads = [threading.Thread(target=fill, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert lines(tmp_path) == 20
    kept = [[store.get(trial) for trial in asked] for store in stores]
    assert kept[0] == kept[1] == kept[2] == kept[3]


def test_a_folder_that_cannot_be_written_is_named_before_a_trial_is_made(tmp_path: Path) -> None:
    made: list[str] = []

    def evaluate(trial: Trial) -> Result:
        made.append(trial.label)
        return {"val": 0.0}

    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="cannot write"):
        runner(tmp_path / "file" / "trials", evaluate).run([Trial("a", {})])
    assert made == []


def test_a_trial_is_its_settings_whatever_their_order() -> None:
    trial = Trial("t", {"lr": 0.01, "sizes": (25, 10)})
    assert trial.key == Trial("t", {"sizes": [25, 10], "lr": 0.01}).key
    assert trial.key != trial.with_settings(lr=0.1).key


def test_the_grid_is_the_appendixs_and_the_rates_are_the_same_for_all() -> None:
    def grid(task: str, aggregator: str) -> list[dict[str, Any]]:
        return paper_space({"task": task, "aggregator": aggregator}).grid()

    assert grid("supervised", "mean") == [{"lr": 0.01}, {"lr": 0.001}, {"lr": 0.0001}]
    assert {p["hidden_dim"] for p in grid("supervised", "pool")} == {512, 1024}
    assert {p["hidden_dim"] for p in grid("unsupervised", "lstm")} == {128, 256}
    rates = {a: {p["lr"] for p in grid("unsupervised", a)} for a in ("gcn", "mean", "lstm", "pool")}
    assert all(found == {2e-6, 2e-7, 2e-8, 1e-3, 1e-4, 1e-5} for found in rates.values())


def test_of_equal_scores_the_first_is_chosen(tmp_path: Path) -> None:
    trials = runner(tmp_path, lambda trial: {"val": float(trial.settings["lr"] < 0.05)})
    sweep(trials, {"a": Trial("a", {})}, {"a": SPACE}, 1)
    found = swept(trials, Trial("a", {}), SPACE, 1)
    assert found is not None
    assert found.chosen == {"lr": 0.01}


def test_trials_of_an_older_protocol_serve_until_they_are_made_again(tmp_path: Path) -> None:
    """They are read and chosen from, but `run` makes them again; seeds of two versions are never averaged."""
    old = Trial("a", {"lr": 0.1}, version=1)
    new = Trial("a", {"lr": 0.1}, version=3)
    runner(tmp_path, lambda trial: {"val": 0.1}).run([old.with_settings(seed=seed) for seed in range(2)])
    trials = runner(tmp_path, lambda trial: {"val": 0.3})
    found = trials.seeds(new, 2)
    assert [(record["version"], record["result"]["val"]) for record in found.values()] == [(1, 0.1), (1, 0.1)]
    assert trials.record(Trial("a", {"lr": 0.1, "seed": 0}, version=0)) is None  # a newer one serves no older code
    (result,) = trials.run([new.with_settings(seed=0)])
    assert (result["val"], trials.made) == (0.3, 1)
    assert {seed: record["version"] for seed, record in trials.seeds(new, 2).items()} == {0: 3}
    late = runner(tmp_path, lambda trial: {"val": 0.3})
    late.deadline = 0.0
    with pytest.raises(Unfinished):
        late.run([new.with_settings(seed=1)])


def worse(trial: Trial) -> Result:
    """A later protocol, under which every score is lower."""
    return {name: value - 1.0 for name, value in hill(trial).items()}


def test_settings_that_an_older_protocol_chose_are_rerun_without_a_sweep(tmp_path: Path) -> None:
    old, new = Trial("a", {"name": "a"}), Trial("a", {"name": "a"}, version=2)
    sweep(runner(tmp_path), {"a": old}, {"a": SPACE}, 3)
    again = runner(tmp_path, worse)
    sweep(again, {"a": new}, {"a": SPACE}, 3, chosen_only=True)
    found = swept(again, new, SPACE, 3)
    assert found is not None
    assert again.made == 3
    assert found.chosen == {"lr": 0.01}  # the scores of two protocols are not compared
    assert [record["version"] for record in found.tried] == [1, 1, 1]
    assert [record["version"] for record in found.runs.values()] == [2, 2, 2]
    assert [run["test"] for run in found.results] == pytest.approx([-0.99, 0.01, 1.01])
    sweep(again, {"a": new}, {"a": SPACE}, 3)
    whole = swept(again, new, SPACE, 3)
    assert whole is not None
    assert [record["version"] for record in whole.tried] == [2, 2, 2]

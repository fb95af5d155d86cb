"""Trials: make each run of an experiment once, keep it as a file of its own, and choose settings on validation only.

A trial is a label and JSON settings; what makes it, `evaluate`, returns JSON, with `val` where settings are chosen by
it. Its file is named by both and written whole, so that an interrupted sweep continues where it stopped, in as many
sittings as it takes.
"""

import hashlib
import itertools
import json
import multiprocessing
import os
import re
import threading
import time
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import torch

from graphsage.atomic import make_folder
from graphsage.errors import DataError
from graphsage.sealed import read_sealed, write_sealed

SUPERVISED_RATES = (0.01, 0.001, 0.0001)
UNSUPERVISED_RATES = {"as printed": (2e-6, 2e-7, 2e-8), "times the batch size": (1e-3, 1e-4, 1e-5)}
"""Appendix C prints the first. They are said to be corrected for a division by the batch size of 512, which Adam does
not feel: the second ones are those before the correction."""
SIZES = {"pool": (512, 1024), "meanpool": (512, 1024), "lstm": (128, 256)}
"""Small and big models, where an aggregator has a width of its own."""

Result = dict[str, Any]
Key = TypeVar("Key", bound=Hashable)


def paper_grid(task: str, aggregator: str) -> list[dict[str, Any]]:
    """Every point that Appendix C sweeps for an aggregator, the same rates for all."""
    rates = SUPERVISED_RATES if task == "supervised" else sum(UNSUPERVISED_RATES.values(), ())
    widths: list[dict[str, Any]] = [{"hidden_dim": width} for width in SIZES.get(aggregator, ())] or [{}]
    return [{"lr": lr, **width} for width in widths for lr in rates]


@dataclass(frozen=True)
class Trial:
    """One run to make. `settings` decide its result together with the code, and nothing else does."""

    label: str
    settings: Mapping[str, Any]

    def file_name(self) -> str:
        text = json.dumps(self.settings, sort_keys=True, allow_nan=False)
        words = re.sub(r"[^a-z0-9.]+", "-", self.label.lower()).strip("-")
        return f"{words}-{hashlib.sha256(text.encode()).hexdigest()[:12]}.json"

    def with_settings(self, **changes: Any) -> "Trial":
        return Trial(self.label, {**self.settings, **changes})


class Unfinished(Exception):
    """The time for this sitting is over; what was made is kept. `left` is the number of trials still to make."""

    def __init__(self, left: int) -> None:
        super().__init__(f"{left} trials are left; run the same command again to continue")
        self.left = left


@dataclass
class Trials:
    """The finished trials of a folder, and the making of others."""

    folder: Path
    evaluate: Callable[[Trial], Result]
    """A function of a module, so that other processes can call it."""
    jobs: int = 1
    deadline: float | None = None
    """A moment of time.monotonic(): no trial is begun after it, nor one that is expected to end after it, unless it
    is the first one of these Trials, so that every sitting makes something."""
    on_done: Callable[[Trial, Result, int, int], None] | None = None
    """Told of every trial that was made just now, with how many are done and how many there are."""
    about: Mapping[str, Any] = field(default_factory=dict)
    """Kept with every trial, such as the hardware."""
    pool: Executor | None = None
    """Makes the trials instead of processes of this machine: a cluster's workers."""
    used: set[str] = field(default_factory=set)
    """Names of the files that were read or made."""
    made: int = 0
    """How many were made, not read."""
    _begun: bool = field(default=False, init=False)

    def run(self, trials: Iterable[Trial], *, alone: bool = False) -> list[Result]:
        """Results in order; those that the folder has are read. Raises Unfinished at the deadline.

        With several jobs each trial has one thread, also the last one that is left: the number of threads decides the
        last digits of a result, so it must not depend on where an earlier sitting was stopped. `alone` is for trials
        that are timed: here, one after another, with all threads.
        """
        asked = list(trials)
        known = {trial.file_name(): self.read(trial) for trial in asked}
        todo = {trial.file_name(): trial for trial in asked if known[trial.file_name()] is None}
        total = len(known)
        if todo:
            make_folder(self.folder)  # a trial of many minutes must not end where nothing can be written

        def keep(trial: Trial, result: Result) -> None:
            known[trial.file_name()] = result
            self._write(trial, result)
            self.made += 1
            if self.on_done is not None:
                self.on_done(trial, result, sum(r is not None for r in known.values()), total)

        if alone or (self.pool is None and (self.jobs == 1 or len(todo) < 2)):
            make = _timed if alone or self.jobs == 1 else _one_thread
            for trial in todo.values():
                if self._begin(trial):
                    keep(trial, make(self.evaluate, trial))
        else:
            self._in_parallel(list(todo.values()), keep)
        left = sum(result is None for result in known.values())
        if left:
            raise Unfinished(left)
        return [known[trial.file_name()] or {} for trial in asked]

    def read(self, trial: Trial) -> Result | None:
        """The result of a trial that was made before."""
        record = self.record(trial)
        return None if record is None else record["result"]

    def record(self, trial: Trial) -> dict[str, Any] | None:
        """All that is kept of a trial: its `result`, and what `about` said where it was made."""
        path = self.folder / trial.file_name()
        if not self.has(trial):
            return None
        record = read_sealed(path)
        if record["settings"] != json.loads(json.dumps(trial.settings)):
            raise DataError(f"{path} has other settings than its name says; delete it, and it is made again")
        absent = [name for name in self.about if name not in record]
        if absent:
            raise DataError(f"{path} does not say its {' and '.join(absent)}; delete it, and it is made again")
        self.used.add(path.name)
        return record

    def has(self, trial: Trial) -> bool:
        return (self.folder / trial.file_name()).exists()

    def seeds(self, trial: Trial, asked: int) -> dict[int, dict[str, Any]]:
        """The records of a trial by its seed: those of the `asked` seeds that there are, and of any that follow."""
        found: dict[int, dict[str, Any]] = {}
        for seed in itertools.count():
            record = self.record(trial.with_settings(seed=seed))
            if record is not None:
                found[seed] = record
            elif seed >= asked:
                break
        return found

    def _in_parallel(self, todo: Sequence[Trial], keep: Callable[[Trial, Result], None]) -> None:
        waiting = list(reversed(todo))
        running: dict[Future[Result], Trial] = {}
        with self._workers() as pool:
            while waiting or running:
                while waiting and len(running) < self.jobs:
                    trial = waiting.pop()
                    if self._begin(trial):
                        running[pool.submit(_one_thread, self.evaluate, trial)] = trial
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    keep(running.pop(future), future.result())

    def _workers(self) -> AbstractContextManager[Executor]:
        if self.pool is not None:
            return nullcontext(self.pool)
        context = multiprocessing.get_context("spawn")
        return ProcessPoolExecutor(self.jobs, mp_context=context, initializer=die_with, initargs=(os.getpid(),))

    def _begin(self, trial: Trial) -> bool:
        """Whether there is time for a trial; if so, it is taken for begun."""
        if self.deadline is not None:
            left = self.deadline - time.monotonic()
            if left < 0 or (self._begun and self._expected(trial) > left):
                return False
        self._begun = True
        return True

    def _expected(self, trial: Trial) -> float:
        """Seconds that the longest trial of the same label took under the same conditions; 0 where none was made."""
        longest = 0.0
        for path in self.folder.glob(f"{trial.file_name().rpartition('-')[0]}-*.json"):
            record = read_sealed(path)
            if record["label"] == trial.label and all(record.get(name) == value for name, value in self.about.items()):
                longest = max(longest, float(record["result"].get("seconds", 0.0)))
        return longest

    def _write(self, trial: Trial, result: Result) -> None:
        record = {"label": trial.label, "settings": dict(trial.settings), **self.about, "result": result}
        write_sealed(self.folder / trial.file_name(), record)
        self.used.add(trial.file_name())


@dataclass(frozen=True)
class Swept:
    """What a folder holds of a sweep: every point that was made with its validation score, and the best one's runs."""

    chosen: dict[str, Any]
    points: list[dict[str, Any]]
    runs: dict[int, Result]
    """By seed."""
    records: list[dict[str, Any]]
    """Of all trials that took part."""


def sweep(trials: Trials, cells: Mapping[Key, Trial], grids: Mapping[Key, Sequence[Mapping[str, Any]]], seeds: int,
          whole: Mapping[Key, Sequence[Mapping[str, Any]]]) -> None:  # fmt: skip
    """For each cell: make every point of its grid with seed 0, then the best on validation with all seeds.

    All cells' points are made together, so that no process waits for the end of one cell. `grids` may be pieces of the
    `whole` ones: points that other pieces made take part in the choice.
    """
    trials.run(cells[name].with_settings(**point, seed=0) for name in cells for point in grids[name])
    first = {name: swept(trials, cells[name], whole[name], seeds) for name in cells}
    chosen = {name: cells[name].with_settings(**found.chosen) for name, found in first.items() if found is not None}
    trials.run(trial.with_settings(seed=seed) for trial in chosen.values() for seed in range(seeds))


def swept(trials: Trials, cell: Trial, grid: Sequence[Mapping[str, Any]], seeds: int) -> Swept | None:
    """Put together what there is of a cell, and make nothing; None where no point of `grid` was made."""
    records = [(dict(point), trials.record(cell.with_settings(**point, seed=0))) for point in grid]
    made = [(point, record) for point, record in records if record is not None]
    if not made:
        return None
    chosen = best([(float(record["result"]["val"]), point) for point, record in made])
    runs = trials.seeds(cell.with_settings(**chosen), seeds)
    return Swept(
        chosen,
        [{**point, "val": float(record["result"]["val"])} for point, record in made],
        {seed: record["result"] for seed, record in runs.items()},
        [record for _, record in made] + [record for seed, record in runs.items() if seed],
    )


def best(points: Sequence[tuple[float, dict[str, Any]]]) -> dict[str, Any]:
    """The point with the highest validation score; the first of equals."""
    return max(points, key=lambda pair: pair[0])[1]


def _timed(evaluate: Callable[[Trial], Result], trial: Trial) -> Result:
    began, busy = time.monotonic(), time.process_time()
    result = evaluate(trial)
    spent = {"seconds": time.monotonic() - began, "cpu_seconds": time.process_time() - busy}
    torch.cuda.empty_cache()  # of the GPU's memory the others need what this one would keep; nothing without a GPU
    return {**result, **{name: round(value, 3) for name, value in spent.items()}}


def die_with(parent: int) -> None:
    """End this process soon after the one that started it: a long trial must not go on for nobody."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _one_thread(evaluate: Callable[[Trial], Result], trial: Trial) -> Result:
    """As in a process among others, where threads would fight over the cores."""
    from graphsage.kernels.threads import one_thread

    with one_thread():
        return _timed(evaluate, trial)

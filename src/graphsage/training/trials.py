"""Trials: each run of an experiment is made once and kept, and settings are chosen on validation only.

A `Trial` describes one run. `TrialStore` keeps finished trials in one JSON-lines file per experiment. `Runner` makes
the missing ones: in this process, in a process pool, or on a Ray cluster. An interrupted experiment continues where it
stopped.
"""

import itertools
import json
import multiprocessing
import os
import threading
import time
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import torch

from graphsage.atomic import make_folder, writing
from graphsage.checksummed_json import verified, with_checksum
from graphsage.file_lock import FileLock
from graphsage.training.space import Space

Result = dict[str, Any]
Record = dict[str, Any]
"""A line of the store: type, version, label, settings, result, and where it was made."""
Key = TypeVar("Key", bound=Hashable)
TrialKey = tuple[str, str]


@dataclass(frozen=True)
class Trial:
    """One run to make. Its result depends on its settings and on the code of its type, and on nothing else."""

    label: str
    settings: Mapping[str, Any]
    type: str = "train"
    version: int = 1
    """Of the protocol of this type. Raising it invalidates the kept trials of this type, and of no other."""
    experiment: str = "trials"
    """Name of the store's file."""

    @cached_property
    def key(self) -> TrialKey:
        return self.experiment, _identity(self.type, self.version, self.label, self.settings)

    def with_settings(self, **changes: Any) -> "Trial":
        return replace(self, settings={**self.settings, **changes})


def _identity(*fields: Any) -> str:
    return json.dumps(fields, sort_keys=True, allow_nan=False)


class TrialStore:
    """Finished trials, one line each in `FOLDER/EXPERIMENT.jsonl`. Several processes may share the folder.

    Lines are appended under a lock and synced to disk. A line without its newline is the rest of a process that was
    killed while writing: it is ignored, and removed by the next write. Any other damaged or edited line is an error.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._records: dict[str, dict[TrialKey, Record]] = {}
        self._read: dict[str, tuple[int, int]] = {}
        """Bytes and lines of each file that were read."""

    def get(self, trial: Trial) -> Record | None:
        return self._refreshed(trial.experiment).get(trial.key)

    def newest(self, trial: Trial) -> Record | None:
        """The record of a trial under the newest protocol version, up to its own, that it was made under."""
        records = (self.get(replace(trial, version=version)) for version in range(trial.version, 0, -1))
        return next((record for record in records if record is not None), None)

    def have(self, version: int, trials: Iterable[Trial]) -> bool:
        """Whether all trials were made under this protocol version."""
        return all(self.get(replace(trial, version=version)) is not None for trial in trials)

    def records(self, experiment: str) -> list[Record]:
        return list(self._refreshed(experiment).values())

    def add(self, trial: Trial, about: Mapping[str, Any], result: Result) -> Record:
        """Keep a result and return its record: another process's, if that was first."""
        path = self._path(trial.experiment)
        record = {
            "type": trial.type,
            "version": trial.version,
            "label": trial.label,
            "settings": dict(trial.settings),
            **about,
            "result": result,
        }
        line = json.dumps(with_checksum(record), ensure_ascii=False, allow_nan=False) + "\n"
        with writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            with FileLock(path), path.open("r+b") as file:
                known = self._refreshed(trial.experiment)
                if trial.key not in known:
                    file.seek(self._read.get(trial.experiment, (0, 0))[0])
                    file.truncate()
                    file.write(line.encode())
                    file.flush()
                    os.fsync(file.fileno())
            return self._refreshed(trial.experiment)[trial.key]

    def _path(self, experiment: str) -> Path:
        return self.folder / f"{experiment}.jsonl"

    def _refreshed(self, experiment: str) -> dict[TrialKey, Record]:
        """All records of a file, read as far as it has grown since the last call."""
        path = self._path(experiment)
        known = self._records.setdefault(experiment, {})
        size = path.stat().st_size if path.exists() else 0
        start, lines = self._read.get(experiment, (0, 0))
        if size < start:
            known.clear()
            start, lines = 0, 0
        if size > start:
            with path.open("rb") as file:
                file.seek(start)
                *complete, _ = file.read().split(b"\n")
            for line in complete:
                start, lines = start + len(line) + 1, lines + 1
                record = verified(line, f"line {lines} of {path}")
                names = ("type", "version", "label", "settings")
                known[experiment, _identity(*(record[name] for name in names))] = record
        self._read[experiment] = start, lines
        return known


class Unfinished(Exception):
    """The time budget is spent; finished trials are kept. `left` is the number of trials still to make."""

    def __init__(self, left: int) -> None:
        super().__init__(f"{left} trials are left; run the same command again to continue")
        self.left = left


@dataclass
class Runner:
    """Returns the results of trials: reads those that the store has, and makes the others."""

    store: TrialStore
    evaluate: Callable[[Trial], Result]
    """A function of a module, so that other processes can call it."""
    jobs: int = 1
    deadline: float | None = None
    """A time of time.monotonic(). No trial is started after it, or if it is expected to end after it. The first trial
    of a Runner is always started before the deadline, so that each command makes progress."""
    on_done: Callable[[Trial, Result, int, int], None] | None = None
    """Called after each trial that was made, with the number of finished trials and of all."""
    about: Mapping[str, Any] = field(default_factory=dict)
    """Kept with every trial, such as the hardware."""
    pool: Executor | None = None
    """Makes the trials instead of processes of this machine: the workers of a Ray cluster."""
    used: dict[TrialKey, Record] = field(default_factory=dict)
    """Trials that were read or made."""
    made: int = 0
    """Trials that were made, not read."""
    _begun: bool = field(default=False, init=False)

    def run(self, trials: Iterable[Trial], *, alone: bool = False) -> list[Result]:
        """Results in order. Raises Unfinished at the deadline.

        With several jobs each trial has one thread, also if it is the only one left: the number of threads changes the
        last digits of a result, so it must not depend on where an earlier command stopped. `alone` is for timed
        trials: in this process, one after another, with all threads.
        """
        asked = list(trials)
        todo = {trial.key: trial for trial in asked if self.store.get(trial) is None}
        total = len({trial.key for trial in asked})
        left = len(todo)
        if todo:
            make_folder(self.store.folder)  # fail before the first trial, not after it

        def keep(trial: Trial, result: Result) -> None:
            nonlocal left
            self.used[trial.key] = self.store.add(trial, self.about, result)
            self.made += 1
            left -= 1
            if self.on_done is not None:
                self.on_done(trial, result, total - left, total)

        if alone or (self.pool is None and (self.jobs == 1 or len(todo) < 2)):
            make = _timed if alone or self.jobs == 1 else _one_thread
            for trial in todo.values():
                if self._begin(trial):
                    keep(trial, make(self.evaluate, trial))
        else:
            self._in_parallel(list(todo.values()), keep)
        if left:
            raise Unfinished(left)
        return [record["result"] for trial in asked if (record := self.record(trial)) is not None]

    def record(self, trial: Trial) -> Record | None:
        """The record of a trial if it was made: its `result`, and `about` of the machine that made it.

        One that was made only under an older version of its protocol counts too. `run` makes it again.
        """
        record = self.store.newest(trial)
        if record is not None:
            self._use(trial, record)
        return record

    def _use(self, trial: Trial, record: Record) -> None:
        self.used[replace(trial, version=record["version"]).key] = record

    def seeds(self, trial: Trial, asked: int) -> dict[int, Record]:
        """The records of a trial by seed: those of the `asked` seeds that were made, and any that follow.

        All are of one protocol version, the newest that any of the seeds was made under.
        """
        found: dict[int, Record] = {}
        for seed in itertools.count():
            record = self.store.newest(trial.with_settings(seed=seed))
            if record is not None:
                found[seed] = record
            elif seed >= asked:
                break
        newest = max((record["version"] for record in found.values()), default=0)
        found = {seed: record for seed, record in found.items() if record["version"] == newest}
        for seed, record in found.items():
            self._use(trial.with_settings(seed=seed), record)
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
        """Whether there is time for a trial; if so, it counts as started."""
        if self.deadline is not None:
            left = self.deadline - time.monotonic()
            if left < 0 or (self._begun and self._expected(trial) > left):
                return False
        self._begun = True
        return True

    def _expected(self, trial: Trial) -> float:
        """Seconds of the longest trial with the same label and `about`; 0 if there is none."""
        alike = [
            record
            for record in self.store.records(trial.experiment)
            if record["label"] == trial.label and all(record.get(name) == value for name, value in self.about.items())
        ]
        return max((float(record["result"].get("seconds", 0.0)) for record in alike), default=0.0)


@dataclass(frozen=True)
class Swept:
    """The finished part of a sweep: every point with its validation score, and the runs of the best one."""

    chosen: dict[str, Any]
    points: list[dict[str, Any]]
    runs: dict[int, Record]
    """Trials of the best point, by seed."""
    tried: list[Record]
    """Trials of all points, with seed 0."""

    @property
    def results(self) -> list[Result]:
        """Of the runs."""
        return [record["result"] for record in self.runs.values()]

    @property
    def records(self) -> list[Record]:
        """All trials that took part, each once."""
        return [*self.tried, *(record for record in self.runs.values() if record not in self.tried)]


def sweep(
    runner: Runner,
    cells: Mapping[Key, Trial],
    spaces: Mapping[Key, Space],
    seeds: int,
    whole: Mapping[Key, Space] | None = None,
    *,
    chosen_only: bool = False,
) -> None:
    """For each cell: make every point of its space with seed 0, then the best on validation with all seeds.

    The points of all cells are made together, which keeps all workers busy. `spaces` may be parts of the `whole` ones:
    points that other parts made take part in the choice. With `chosen_only` no point is made for the choice: it rests
    on finished trials, also of an older protocol.
    """
    if not chosen_only:
        runner.run(cells[name].with_settings(**point, seed=0) for name in cells for point in spaces[name].grid())
    first = {name: swept(runner, cells[name], (whole or spaces)[name], seeds) for name in cells}
    chosen = {name: cells[name].with_settings(**found.chosen) for name, found in first.items() if found is not None}
    runner.run(trial.with_settings(seed=seed) for trial in chosen.values() for seed in range(seeds))


def swept(runner: Runner, cell: Trial, space: Space, seeds: int) -> Swept | None:
    """The finished part of a cell's sweep, without making any trial; None if no point of `space` was made.

    Points are compared under one protocol version, the newest under which all of them were made.
    """
    trials = [(point, cell.with_settings(**point, seed=0)) for point in space.grid()]
    there = [(point, trial) for point, trial in trials if runner.store.newest(trial) is not None]
    if not there:
        return None
    common = [version for version in range(cell.version, 0, -1) if runner.store.have(version, (t for _, t in there))]
    compared = [(point, replace(trial, version=common[0]) if common else trial) for point, trial in there]
    made = [(point, record) for point, trial in compared if (record := runner.record(trial)) is not None]
    points = [{**point, "val": float(record["result"]["val"])} for point, record in made]
    best = max(range(len(made)), key=lambda number: points[number]["val"])
    runs = runner.seeds(cell.with_settings(**made[best][0]), seeds)
    return Swept(made[best][0], points, runs, [record for _, record in made])


def _timed(evaluate: Callable[[Trial], Result], trial: Trial) -> Result:
    began, busy = time.monotonic(), time.process_time()
    result = evaluate(trial)
    spent = {"seconds": time.monotonic() - began, "cpu_seconds": time.process_time() - busy}
    torch.cuda.empty_cache()  # leaves the cached GPU memory to other processes; no effect without a GPU
    return {**result, **{name: round(value, 3) for name, value in spent.items()}}


def die_with(parent: int) -> None:
    """End this process soon after its parent, so that no trial continues without it."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _one_thread(evaluate: Callable[[Trial], Result], trial: Trial) -> Result:
    from graphsage.kernels.threads import one_thread

    with one_thread():
        return _timed(evaluate, trial)

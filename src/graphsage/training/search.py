"""A search for settings: a sampler chooses what to try next from the trials that are finished.

FOLDER/search.json    the space, the sampler and the data: the folder belongs to one search
FOLDER/trials.jsonl   the finished trials, a TrialStore
FOLDER/running/N      the settings of trial N, locked by the process that makes it; a free lock means that it died

Several processes may share the folder. A trial's settings depend only on the seed, its number and the trials finished
before it, so an interrupted search of one process ends with the same trials as one that was not interrupted.
"""

import json
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from graphsage.atomic import writing
from graphsage.checksummed_json import read_checksummed, write_checksummed
from graphsage.errors import ConfigError, is_interrupt, one_of, setting
from graphsage.file_lock import FileLock
from graphsage.training.space import Choice, Range, Space, tidy
from graphsage.training.trials import Result, Trial, TrialStore

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

SAMPLERS = ("tpe", "random", "grid")
PRUNERS = ("median", "halving", "none")
ATTEMPTS = 3  # a trial whose process died this often (out of memory, for example) counts as failed
STARTUP, WARMUP = 5, 2  # the median pruner waits for so many complete trials, and so many epochs

Report = Callable[[int, float], None]
Attempt = Callable[[dict[str, Any], Report], float]
"""Makes one trial: settings in, validation score out; calls `report` with the score after each epoch."""
Point = dict[str, Any]


class Pruned(Exception):
    """Raised by `report`: other trials were better after as many epochs."""


@dataclass(frozen=True)
class Search:
    """`about` (the data and its split), the space and the sampler identify a search; the rest may change when it is
    continued."""

    folder: Path
    space: Space
    about: Mapping[str, Any]
    trials: int
    sampler: str = "tpe"
    pruner: str = "median"
    seed: int = 0

    def __post_init__(self) -> None:
        one_of("sampler", self.sampler, SAMPLERS)
        one_of("pruner", self.pruner, PRUNERS)
        if self.trials < 1:
            raise ConfigError(f"trials must be at least 1; got {self.trials}")
        if self.space.points is not None and self.sampler != "grid":
            raise ConfigError(
                f"the space {self.space.name} is a list of points; {setting('sampler', 'grid')} tries them all"
            )

    @property
    def total(self) -> int:
        """The number of trials: a grid may have fewer points than were asked for."""
        return min(self.trials, len(self.space.grid())) if self.sampler == "grid" else self.trials

    def open(self) -> TrialStore:
        """The finished trials. A folder that holds another search is an error."""
        if self.sampler == "tpe":
            load_optuna()
        path = self.folder / "search.json"
        if (self.folder / "journal.log").exists():
            raise ConfigError(f"{self.folder} holds a sweep of an older graphsage version; choose another folder")
        with writing(path):
            (self.folder / "running").mkdir(parents=True, exist_ok=True)
        identity = json.loads(json.dumps({"space": self.space.as_json(), "sampler": self.sampler, **self.about}))
        with FileLock(self.folder / "lock"):
            if not path.exists():
                write_checksummed(path, identity)
            known = read_checksummed(path)
        if known != identity:
            what = next(name for name in identity if known.get(name) != identity[name])
            raise ConfigError(f"{self.folder} holds a sweep with another {what}; choose another folder")
        return TrialStore(self.folder)


def load_optuna() -> None:
    try:
        import optuna
    except ImportError as error:
        raise ConfigError(f"{setting('sampler', 'tpe')} needs Optuna: pip install 'graphsage[cluster]'") from error
    optuna.logging.set_verbosity(optuna.logging.ERROR)


def finished(store: TrialStore) -> list[Result]:
    """What each finished trial reached, by number."""
    return sorted((record["result"] for record in store.records("trials")), key=lambda result: int(result["number"]))


def winner(store: TrialStore) -> Result | None:
    """The complete trial with the best validation score, the first of equals."""
    complete = [result for result in finished(store) if result["state"] == "complete"]
    return max(complete, key=lambda result: float(result["val"]), default=None)


def left(search: Search, store: TrialStore) -> int:
    """Trials that are not finished, here or elsewhere."""
    return len(set(range(search.total)) - {result["number"] for result in finished(store)})


def work(
    search: Search,
    attempt: Attempt,
    on_done: Callable[[], None] | None = None,
    may_begin: Callable[[], bool] = lambda: True,
) -> None:
    """Make trials until there are enough, beside other processes that work on the same folder."""
    store = search.open()
    while may_begin() and (claimed := _claim(search, store)) is not None:
        number, begun, lock = claimed
        curve: list[float] = []

        def report(epoch: int, value: float, curve: list[float] = curve) -> None:
            curve.append(value)
            if behind(search.pruner, curve, finished(store)):
                raise Pruned

        began = time.monotonic()
        try:
            result = {"state": "complete", "val": attempt(settings_of(search, begun["point"]), report)}
        except Pruned:
            result = {"state": "pruned"}
        except BaseException as error:
            if is_interrupt(error):  # not the trial's fault: it may be attempted as often as before
                _note(lock, {**begun, "attempts": begun["attempts"] - 1})
                lock.release()
                raise KeyboardInterrupt from error
            if not isinstance(error, Exception):
                lock.release()
                raise
            # One bad combination must not end the others.
            result = {"state": "failed", "error": f"{type(error).__name__}: {error}"}
        _keep(store, number, begun, {**result, "curve": curve, "seconds": round(time.monotonic() - began, 3)})
        lock.release()
        if on_done is not None:
            on_done()


def behind(pruner: str, curve: Sequence[float], others: Sequence[Result]) -> bool:
    """Whether a trial with these scores is given up. median: its best score is below the median of the complete trials
    after as many epochs. halving: after 1, 3, 9, ... epochs it is not in the best third."""
    epochs = len(curve)
    if pruner == "median":
        complete = [other for other in others if other["state"] == "complete"]
        scores = [other["curve"][epochs - 1] for other in complete if len(other["curve"]) >= epochs]
        ready = len(complete) >= STARTUP and epochs >= WARMUP and scores
        return bool(ready and max(curve) < statistics.median(scores))
    if pruner == "halving" and epochs in (3**rung for rung in range(epochs)):
        scores = [other["curve"][epochs - 1] for other in others if len(other["curve"]) >= epochs]
        ranked = sorted([*scores, curve[-1]], reverse=True)
        return bool(curve[-1] < ranked[max(len(ranked) // 3 - 1, 0)])
    return False


def _claim(search: Search, store: TrialStore) -> tuple[int, dict[str, Any], FileLock] | None:
    """The first trial that is neither finished nor being made, with its lock; None if there is none."""
    with FileLock(search.folder / "lock"):
        done = finished(store)
        for number in sorted(set(range(search.total)) - {result["number"] for result in done}):
            lock = FileLock(search.folder / "running" / str(number))
            if not lock.acquire(wait=False):
                continue
            if number in {result["number"] for result in finished(store)}:  # its lock was released a moment ago
                lock.release()
                continue
            try:
                begun = json.loads(lock.path.read_text(encoding="utf-8"))
            except ValueError:  # empty, or half written by a process that died
                begun = {"point": suggest(search, number, done), "attempts": 0}
            if begun["attempts"] < ATTEMPTS:
                begun["attempts"] += 1
                _note(lock, begun)
                return number, begun, lock
            reason = f"the process died {begun['attempts']} times (killed, or out of memory)"
            _keep(store, number, begun, {"state": "failed", "error": reason})
            lock.release()
    return None


def _note(lock: FileLock, begun: Mapping[str, Any]) -> None:
    lock.path.write_text(json.dumps(begun), encoding="utf-8")


def _keep(store: TrialStore, number: int, begun: Mapping[str, Any], result: Result) -> None:
    whole = {"number": number, **begun, "val": None, "curve": [], "seconds": None, "error": None, **result}
    store.add(Trial(f"trial {number}", begun["point"], "search"), {}, whole)


def settings_of(search: Search, point: Mapping[str, Any]) -> dict[str, Any]:
    """All settings of a trial, as Config takes them: JSON has no tuples."""
    return search.space.settings({name: tuple(v) if isinstance(v, list) else v for name, v in point.items()})


def suggest(search: Search, number: int, done: Sequence[Result]) -> Point:
    """The point that trial `number` tries, as JSON gives it back."""
    if search.sampler == "grid":
        point = search.space.grid()[number]
    else:
        rng = np.random.default_rng((search.seed, number))
        if search.sampler == "tpe":
            point = _tpe(search.space, int(rng.integers(2**31)), done)
        else:
            point = {name: axis.draw(rng) for name, axis in search.space.axes.items()}
    plain: Point = json.loads(json.dumps(point))
    return plain


def _tpe(space: Space, seed: int, done: Sequence[Result]) -> Point:
    """Optuna's choice: ten trials at random, then points that resemble the better ones."""
    import optuna

    distributions = {name: _distribution(axis) for name, axis in space.axes.items()}
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=seed))
    states = {"complete": "COMPLETE", "pruned": "PRUNED", "failed": "FAIL"}
    for result in done:
        params = {name: _optuna_value(value) for name, value in result["point"].items()}
        study.add_trial(
            optuna.trial.create_trial(
                state=optuna.trial.TrialState[states[result["state"]]],
                params=params,
                distributions=distributions,
                value=result["val"],
                intermediate_values=dict(enumerate(result["curve"], 1)),
            )
        )
    point: Point = {}
    for name, value in study.ask(distributions).params.items():
        axis = space.axes[name]
        if isinstance(axis, Choice):
            point[name] = {_optuna_value(choice): choice for choice in axis.values}[value]
        else:
            point[name] = value if axis.step is None else tidy(value, axis.whole)
    return point


def _distribution(axis: Choice | Range) -> "BaseDistribution":
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    if isinstance(axis, Choice):
        return CategoricalDistribution([_optuna_value(value) for value in axis.values])
    if axis.whole:
        return IntDistribution(int(axis.low), int(axis.high), step=int(axis.step or 1), log=axis.log)
    return FloatDistribution(axis.low, axis.high, step=axis.step, log=axis.log)


def _optuna_value(value: Any) -> Any:
    """The value as Optuna stores it: lists, such as sample sizes, as JSON."""
    return json.dumps(list(value)) if isinstance(value, list | tuple) else value

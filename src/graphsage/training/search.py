"""A search for settings: Optuna says what to try next, from a journal that several processes share.

FOLDER/journal.log    what was tried and how it went, a JSON object a line
FOLDER/running/N      locked by the process that makes trial N; a trial whose lock is free has lost its process

A trial's settings are a pure function of (seed, its number, the trials before it), so an interrupted search of one
process ends with the same trials as one that was not.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphsage.atomic import writing
from graphsage.errors import ConfigError, DataError, one_of
from graphsage.file_lock import FileLock
from graphsage.training.space import Space

if TYPE_CHECKING:
    from optuna import Study, Trial
    from optuna.trial import FrozenTrial

SAMPLERS = ("tpe", "random", "grid")
PRUNERS = ("median", "halving", "none")
ATTEMPTS = 3  # a trial that has lost its process this often (memory, say) counts as failed

Report = Callable[[int, float], None]
Attempt = Callable[[dict[str, Any], Report], float]
"""Makes one trial: settings in, validation score out; tells `report` the score after each epoch."""


@dataclass(frozen=True)
class Search:
    """`about` (the data and its split), the space and the sampler make it this search and no other; the rest may change
    when it is continued."""

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
            raise ConfigError(f"the space {self.space.name} is a list of points; --sampler grid tries them all")

    @property
    def total(self) -> int:
        """As many trials as were asked for; a grid may have fewer points."""
        return min(self.trials, len(self.space.grid())) if self.sampler == "grid" else self.trials


def load_optuna() -> None:
    """Optuna, quiet; or how to get it."""
    try:
        import optuna
    except ImportError as error:
        raise ConfigError("a sweep needs Optuna; install it: pip install 'graphsage[cluster]'") from error
    optuna.logging.set_verbosity(optuna.logging.ERROR)


def open_study(search: Search) -> "Study":
    """The study in the folder, begun if there is none. Another search there is an error."""
    load_optuna()
    import optuna
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend

    from graphsage.training.suggest import make_pruner

    journal = search.folder / "journal.log"
    with writing(journal):
        (search.folder / "running").mkdir(parents=True, exist_ok=True)
    identity = json.loads(json.dumps({"space": search.space.as_json(), "sampler": search.sampler, **search.about}))
    with FileLock(search.folder / "lock"):
        try:
            lock: Any = FileLock(search.folder / "journal.lock")
            storage = JournalStorage(JournalFileBackend(str(journal), lock))
            study = optuna.create_study(storage=storage, study_name="sweep", direction="maximize", load_if_exists=True,
                                        pruner=make_pruner(search.pruner))  # fmt: skip
        except (ValueError, KeyError) as error:
            raise DataError(f"{journal} is damaged ({error}); remove its last line, or choose another --out") from error
        known = study.user_attrs.get("search")
        if known is None:
            study.set_user_attr("search", identity)
        elif known != identity:
            what = next(name for name in identity if known.get(name) != identity[name])
            raise ConfigError(f"{search.folder} holds a sweep with another {what}; choose another --out")
    return study


def work(search: Search, attempt: Attempt, on_done: "Callable[[Study], None] | None" = None,
         may_begin: Callable[[], bool] = lambda: True) -> None:  # fmt: skip
    """Make trials until there are enough, beside whoever else works on the same folder."""
    from optuna import TrialPruned
    from optuna.trial import TrialState

    from graphsage.training.suggest import settings_of

    study = open_study(search)
    while may_begin() and (claimed := _claim(search, study)) is not None:
        trial, lock = claimed
        try:
            value = attempt(settings_of(search.space, trial.params), _reporter(trial))
            study.tell(trial, value)
        except TrialPruned:
            study.tell(trial, state=TrialState.PRUNED)
        except KeyboardInterrupt:  # a person's wish is not the trial's fault: whoever comes next makes it again
            trial.set_user_attr("attempts", trial.user_attrs["attempts"] - 1)
            raise
        except Exception as error:  # one bad combination must not end the others
            trial.set_user_attr("error", f"{type(error).__name__}: {error}")
            study.tell(trial, state=TrialState.FAIL)
        finally:
            lock.release()
        if on_done is not None:
            on_done(study)


def winner(study: "Study") -> "FrozenTrial | None":
    """The finished trial with the best validation score, the first of equals."""
    finished = [trial for trial in study.get_trials(deepcopy=False) if trial.state.name == "COMPLETE"]
    return max(finished, key=lambda trial: (trial.value or 0.0, -trial.number), default=None)


def left(search: Search, study: "Study") -> int:
    """Trials that are still to be finished, here or elsewhere."""
    return max(0, search.total - sum(trial.state.is_finished() for trial in study.get_trials(deepcopy=False)))


def _claim(search: Search, study: "Study") -> "tuple[Trial, FileLock] | None":
    """A trial that has lost its process, else a new one, with its lock; None where enough have been begun."""
    from optuna import Trial
    from optuna.trial import TrialState

    from graphsage.training.suggest import make_sampler, suggest

    with FileLock(search.folder / "lock"):
        trials = study.get_trials(deepcopy=False)
        for frozen in trials:
            if frozen.state != TrialState.RUNNING:
                continue
            lock = FileLock(search.folder / "running" / str(frozen.number))
            if not lock.acquire(wait=False):
                continue
            study.sampler = make_sampler(search.sampler, search.space, search.seed, frozen.number)
            trial = Trial(study, frozen._trial_id)
            if study.get_trials(deepcopy=False)[frozen.number].state == TrialState.RUNNING and _again(study, trial):
                suggest(trial, search.space, search.sampler)
                return trial, lock
            lock.release()
        if len(trials) >= search.total:
            return None
        study.sampler = make_sampler(search.sampler, search.space, search.seed, len(trials))
        lock = FileLock(search.folder / "running" / str(len(trials)))
        lock.acquire()
        trial = study.ask()
        _again(study, trial)
        suggest(trial, search.space, search.sampler)
        return trial, lock


def _again(study: "Study", trial: "Trial") -> bool:
    """Count an attempt; a trial that has had enough of them fails."""
    from optuna.trial import TrialState

    attempts = trial.user_attrs.get("attempts", 0)
    if attempts >= ATTEMPTS:
        trial.set_user_attr("error", f"the process died {attempts} times (killed, or out of memory)")
        study.tell(trial, state=TrialState.FAIL)
        return False
    trial.set_user_attr("attempts", attempts + 1)
    return True


def _reporter(trial: "Trial") -> Report:
    """Tells the journal; raises TrialPruned where others were better by then. What an earlier attempt told stays."""
    from optuna import TrialPruned

    known = set(trial.study.get_trials(deepcopy=False)[trial.number].intermediate_values)

    def report(epoch: int, value: float) -> None:
        if epoch not in known:
            trial.report(value, epoch)
        if trial.should_prune():
            raise TrialPruned

    return report

"""State that all experiments of one command share: data, profile, trials, and how results are written."""

import itertools
import time
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from graphsage.errors import ConfigError, DataError
from graphsage.experiments.data import Source, opened
from graphsage.experiments.paper import FIGURES
from graphsage.experiments.profile import AGGREGATORS, FORMS, TASKS, Profile
from graphsage.experiments.record import LAYOUT, hardware, machine, merge_results, read_result, write_result
from graphsage.experiments.trial_runners import is_old, machine_of, protocol
from graphsage.training.space import SIZES, Space
from graphsage.training.trials import Key, Record, Result, Runner, Swept, Trial, Unfinished, sweep, swept

EXPERIMENT_TYPES = {
    "table1": ("graphsage", "random", "features", "hop means", "smoothing", "deepwalk"),
    "figure2a": ("timed graphsage", "timed deepwalk"),
    "figure2b": ("graphsage", "timed step"),
    "depth": ("graphsage", "timed step"),
    "figure3": ("graphsage", "features", "deepwalk"),
    "pooling": ("graphsage",),
    "rotation": ("rotation",),
    "theory": ("theory",),
}
"""The trial types of each experiment: their versions are the version of its result."""


class Inapplicable(DataError):
    """An experiment that cannot be made with the data given, while others can."""


GROUPS = ("yardsticks", "deepwalk")
"""Baselines of Table 1 that --only can select: those without training, and DeepWalk."""
ONLY = (*TASKS, *FORMS, *AGGREGATORS, *GROUPS)


@dataclass(frozen=True)
class Session:
    """`only` restricts Table 1 to some tasks, forms, aggregators or groups of baselines."""

    sources: tuple[Source, ...]
    profile: Profile
    out: Path
    trials: Runner
    seeds: int
    only: frozenset[str] = frozenset()
    rates: tuple[float, ...] = ()
    """Sweep only these learning rates of the profile's; empty: all."""
    small: bool = False
    """Sweep only the small models of pool and LSTM."""
    deepwalk: bool = True
    """Make DeepWalk's trials in Table 1 and Figure 3 too. They leave a GPU idle."""
    chosen: bool = False
    """Make only the settings that finished sweeps chose, also sweeps of an older protocol, with all seeds."""
    began: float = field(default_factory=time.monotonic)
    left: list[int] = field(default_factory=list)
    """Number of trials that exceeded the time budget, one entry per batch of trials."""

    def wanted(self, names: Sequence[str], known: Sequence[str]) -> list[str]:
        """The `names` that `only` selects; all of them if it selects none of the `known` ones."""
        asked = [name for name in known if name in self.only]
        left = [name for name in names if not asked or name in asked]
        if not left:
            raise ConfigError(f"--only {','.join(asked)}: profile {self.profile.name} has only {', '.join(names)}")
        return left

    def cells(self) -> list[tuple[str, str, str]]:
        """Task, form and aggregator of the GraphSAGE rows of Table 1 that `only` selects."""
        if self.only and self.only <= set(GROUPS):
            return []
        forms = self.wanted(self.profile.forms, FORMS)
        named = (self.wanted(TASKS, TASKS), forms, self.wanted(AGGREGATORS, AGGREGATORS))
        return list(itertools.product(*named))

    def makes(self, group: str) -> bool:
        """Whether `only` selects the baselines of a group."""
        asked = self.only & set(GROUPS)
        return (not asked or group in asked) and (group != "deepwalk" or self.deepwalk)

    def space(self, task: str, aggregator: str) -> Space:
        """The profile's points that `rates` and `small` leave."""
        whole = self.profile.space(task, aggregator)
        smallest = SIZES.get(aggregator, (None,))[0]
        left = whole.subset(
            lambda point: (
                (not self.rates or point["lr"] in self.rates)
                and (not self.small or point.get("hidden_dim", smallest) == smallest)
            )
        )
        if not left.points:
            known = ", ".join(str(rate) for rate in dict.fromkeys(point["lr"] for point in whole.grid()))
            raise ConfigError(f"--rates leaves nothing to sweep for {task} training; its rates are {known}")
        return left

    def attempt(self, make: Callable[[], object]) -> None:
        """Make trials within the time budget; the caller builds its result from all finished trials."""
        try:
            make()
        except Unfinished as more:
            self.left.append(more.left)

    def runs(self, trials: Mapping[Key, Trial]) -> dict[Key, list[Result]]:
        """Results of every trial with every seed, by the trial's key; more seeds if an earlier command made more."""
        self.attempt(lambda: self.trials.run(self.with_seeds(trials)))
        found = {
            key: [record["result"] for record in self.trials.seeds(trial, self.seeds).values()]
            for key, trial in trials.items()
        }
        if not all(found.values()):
            raise Unfinished(self.left[-1])
        return found

    def with_seeds(self, trials: Mapping[Key, Trial]) -> list[Trial]:
        return [trial.with_settings(seed=seed) for trial in trials.values() for seed in range(self.seeds)]

    def time(self, trials: Sequence[Trial]) -> None:
        """Make trials one at a time, in this process. None is `used`: results may take another machine's times."""
        before = dict(self.trials.used)
        self.attempt(lambda: self.trials.run(trials, alone=True))
        self.trials.used = before

    def timed(self, trials: Mapping[Key, Trial]) -> tuple[str, dict[Key, Result]]:
        """The time of every trial, and the machine: this one, or another that has timed all of them."""
        self.time([trial.with_settings(machine=self.timed_on, seed=0) for trial in trials.values()])
        first = self.machines(trials, self.timed_on)[0]
        there = {key: trial.with_settings(machine=first, seed=0) for key, trial in trials.items()}
        records = {key: self.trials.record(trial) for key, trial in there.items()}
        return first, {key: record["result"] for key, record in records.items() if record is not None}

    def machines(self, trials: Mapping[Key, Trial], here: str) -> list[str]:
        """Machines that have timed all these trials, `here` first."""
        first = next(iter(trials.values()))
        names = {
            str(record["settings"]["machine"])
            for record in self.trials.store.records(first.experiment)
            if record["label"] == first.label
        }
        asked = {name: [trial.with_settings(machine=name, seed=0) for trial in trials.values()] for name in names}
        found = [name for name in asked if all(self.trials.store.newest(trial) is not None for trial in asked[name])]
        if not found:
            raise Unfinished(self.left[-1])
        return sorted(found, key=lambda name: (name != here, name))

    def swept(self, trials: Mapping[Key, Trial]) -> dict[Key, Swept]:
        """Supervised trials, each with the learning rate that validation chose for it."""
        mine, whole = self.space("supervised", "mean"), self.profile.space("supervised", "mean")
        everyone = dict.fromkeys(trials, mine), self.seeds, dict.fromkeys(trials, whole)
        self.attempt(lambda: sweep(self.trials, trials, *everyone, chosen_only=self.chosen))
        found = {key: swept(self.trials, trial, whole, self.seeds) for key, trial in trials.items()}
        there = {key: each for key, each in found.items() if each is not None}
        if len(there) < len(trials):
            raise Unfinished(self.left[-1])
        return there

    @property
    def machine(self) -> str:
        """The name of this machine in results of times."""
        here = self.trials.about["hardware"]
        return str(here["gpu"] or f"{here['cores']} cores")

    @property
    def timed_on(self) -> str:
        """The same for trials that --tf32 applies to."""
        return self.machine + (", TF32" if "products" in self.trials.about["hardware"] else "")

    @property
    def evolving(self) -> Source:
        """The stand-in for the citation data, on which the paper varies one thing at a time; else the first set."""
        names = {source.name: source for source in self.sources}
        return next((names[name] for name in ("citation", "setmm") if name in names), self.sources[0])

    @property
    def single(self) -> Source | None:
        """A single graph, which DeepWalk needs: the evolving one, else the first."""
        return next((source for source in (self.evolving, *self.sources) if opened(source).one_graph), None)

    @property
    def largest(self) -> Source:
        """The largest single graph, on which DeepWalk can be timed too; without one, the largest data set."""
        there = {source: opened(source) for source in self.sources}
        return max(there, key=lambda source: (there[source].one_graph, there[source].graph.num_nodes))

    def keep(self, name: str, about: str, body: dict[str, Any]) -> Path:
        """Write a table or figure as `OUT/NAME.json` with the command that makes it."""
        path = self.out / f"{name}.json"
        names = list(body.get("data", {})) or [
            each.name for each in self.sources
        ]  # of the body: maybe an earlier command's
        records = list(self.trials.used.values())
        made_on = {machine_of(record) for record in records} | set(body.get("trials_on", ()))
        made = {
            "layout": LAYOUT,
            "profile": self.profile.name,
            "version": protocol(EXPERIMENT_TYPES.get(name, ())),
            "old_protocol": dict(Counter(record["type"] for record in records if is_old(record))),
            **body,
            "trials_on": sorted(made_on) or [machine(hardware())],
            "time": self.spent(name, records),
        }
        if name in FIGURES:
            made["paper"] = FIGURES[name]
        write_result(path, about, self.command(name, names), made)
        self.trials.used.clear()  # the next result has its own
        return path

    def joined(
        self, name: str, body: dict[str, Any], part: str, key: Callable[[dict[str, Any]], Hashable]
    ) -> dict[str, Any]:
        """`body` with the rows that earlier commands made for other data sets."""
        whole = {"profile": self.profile.name, "version": protocol(EXPERIMENT_TYPES.get(name, ())), **body}
        return merge_results(self.earlier(name), whole, part, key)

    def command(self, name: str, data: Sequence[str], *more: str, seeds: int | None = None) -> str:
        """The command that makes an experiment, or some rows of it, from scratch."""
        given = [f"--data {each}" if each == "setmm" else f"--data {each}=PATH" for each in data]
        words = [name, *given, f"--profile {self.profile.name}", f"--seeds {seeds or self.seeds}", *more]
        return f"graphsage reproduce {' '.join(words)}"

    def spent(self, name: str, records: Sequence[Record]) -> dict[str, Any]:
        """Time of all trials of a result, and of the command that made them: an earlier one if this one made none."""
        earlier = None if self.trials.made else self.earlier(name)
        sitting = round(time.monotonic() - self.began) if earlier is None else earlier["time"]["sitting_seconds"]
        seconds = sum(record["result"].get("seconds", 0.0) for record in records)
        return {"trials": len(records), "trial_seconds": round(seconds), "sitting_seconds": sitting}

    def earlier(self, name: str) -> dict[str, Any] | None:
        """The result of an experiment; None if there is none."""
        return read_result(self.out / f"{name}.json")

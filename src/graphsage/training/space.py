"""The search space of a sweep: some settings have a list of choices or a range, the others one value in every trial. A
grid is a space of choices, or a list of points such as the paper's grid."""

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from graphsage.errors import ConfigError, setting
from graphsage.training.config import Config

DEFAULT = "default"
PAPER_AGGREGATORS = ("gcn", "mean", "lstm", "pool")
SUPERVISED_RATES = (0.01, 0.001, 0.0001)
UNSUPERVISED_RATES = {"as printed": (2e-6, 2e-7, 2e-8), "times the batch size": (1e-3, 1e-4, 1e-5)}
"""Appendix C prints the first ones, corrected for a division by the batch size of 512. Adam is invariant to that
division: the second ones are those before the correction."""
SIZES = {"pool": (512, 1024), "meanpool": (512, 1024), "lstm": (128, 256)}
"""Hidden sizes of the small and the big model of an aggregator that has one."""


@dataclass(frozen=True)
class Choice:
    """One of several values."""

    values: tuple[Any, ...]

    def ends(self) -> tuple[Any, ...]:
        return self.values

    def grid(self, name: str) -> tuple[Any, ...]:
        return self.values

    def draw(self, rng: np.random.Generator) -> Any:
        return self.values[rng.integers(len(self.values))]

    def as_json(self) -> Any:
        return [list(value) if isinstance(value, tuple) else value for value in self.values]


@dataclass(frozen=True)
class Range:
    """Numbers from `low` to `high`, both included: whole ones, multiples of `step` above `low`, or any; evenly spread
    by default, evenly in their logarithm with `log`."""

    low: float
    high: float
    log: bool = False
    step: float | None = None
    whole: bool = False

    def ends(self) -> tuple[Any, ...]:
        return (self.low, self.high)

    def grid(self, name: str) -> tuple[Any, ...]:
        if self.step is None:
            raise ConfigError(
                f"space: {name} is a range without steps, which a grid cannot go through; give it step = ..., list its "
                f"values, or use {setting('sampler', 'tpe')} or random"
            )
        return tuple(tidy(self.low + k * self.step, self.whole) for k in range(self.count(self.step)))

    def draw(self, rng: np.random.Generator) -> Any:
        if self.step is not None:
            return tidy(self.low + self.step * int(rng.integers(self.count(self.step))), self.whole)
        if self.log:
            value = math.exp(rng.uniform(math.log(self.low), math.log(self.high)))
            return min(max(round(value) if self.whole else value, self.low), self.high)
        return float(rng.uniform(self.low, self.high))

    def count(self, step: float) -> int:
        return math.floor((self.high - self.low) / step * (1 + 1e-12) + 1e-9) + 1

    def as_json(self) -> Any:
        found = {"low": self.low, "high": self.high, "log": self.log, "step": self.step}
        return {name: value for name, value in found.items() if value not in (None, False) or name == "low"}


def make_range(
    name: str, low: float, high: float, *, log: bool = False, step: float | None = None, whole: bool = False
) -> Range:
    """A range that makes sense, or an error that says why it does not."""
    where = f"space: {name}"
    if not (math.isfinite(low) and math.isfinite(high)) or low >= high:
        raise ConfigError(f"{where}: low must be below high, both finite; got low {low} and high {high}")
    if log and low <= 0:
        raise ConfigError(f"{where}: log = true needs low above 0; got {low}")
    if log and step is not None:
        raise ConfigError(f"{where}: give log or step, not both; list the values instead")
    if step is not None and not 0 < step <= high - low:
        raise ConfigError(f"{where}: step must be above 0 and at most high - low = {high - low:g}; got {step}")
    if whole and step is None and not log:
        step = 1
    return Range(low, high, log, step, whole)


@dataclass(frozen=True)
class Space:
    """`fixed` settings, and `axes` to search along. With `points` only those combinations are tried, in order."""

    fixed: Mapping[str, Any]
    axes: Mapping[str, Choice | Range]
    points: tuple[Mapping[str, Any], ...] | None = None
    name: str = field(default="space")

    def __post_init__(self) -> None:
        if not self.axes:
            raise ConfigError("the space has no setting to search; add one to [space], such as lr = [0.01, 0.001]")
        if self.fixed.get("task") == "links" or ("task" in self.axes and "links" in self.axes["task"].ends()):
            raise ConfigError(
                f"a sweep scores nodes and no links; train with {setting('task', 'links')} once for each setting"
            )
        if "seed" in self.axes:
            raise ConfigError(
                f"space: seed is not a setting to choose; {setting('seeds')} repeats the winner with several seeds"
            )
        if "metric" in self.axes:
            raise ConfigError("space: metric compares the trials and must be the same in all; set it above [space]")
        for name, axis in self.axes.items():
            if name in self.fixed:
                raise ConfigError(f"{name} is in [space] and also fixed to {self.fixed[name]!r}; leave one of them out")
            if not axis.ends():
                raise ConfigError(f"space: {name} has no value to choose from; list at least one")
            if len(set(axis.ends())) < len(axis.ends()):
                raise ConfigError(f"space: {name} names a value twice; got {list(axis.ends())}")
        for point in self._corners():
            try:
                Config.from_dict(self.settings(point)).resolved()
            except ConfigError as error:
                tried = ", ".join(f"{name} {value!r}" for name, value in point.items())
                raise ConfigError(f"space: no trial could have {tried}: {error}") from error

    def settings(self, point: Mapping[str, Any]) -> dict[str, Any]:
        return {**self.fixed, **point}

    def grid(self) -> list[dict[str, Any]]:
        """Every combination, the last setting changing fastest."""
        if self.points is not None:
            return [dict(point) for point in self.points]
        each = [[(name, value) for value in axis.grid(name)] for name, axis in self.axes.items()]
        return [dict(pairs) for pairs in itertools.product(*each)]

    def subset(self, keep: Callable[[Mapping[str, Any]], bool]) -> "Space":
        """The points of the grid that `keep` accepts, as a space."""
        return replace(self, points=tuple(point for point in self.grid() if keep(point)))

    def as_json(self) -> dict[str, Any]:
        """What tells one space from another, as JSON gives it back."""
        plain = {name: list(value) if isinstance(value, tuple) else value for name, value in self.fixed.items()}
        return {
            "fixed": plain,
            "axes": {name: axis.as_json() for name, axis in self.axes.items()},
            "points": None if self.points is None else [dict(point) for point in self.points],
        }

    def _corners(self) -> Sequence[Mapping[str, Any]]:
        """Points that together take every end of every axis: settings that a run would refuse show before the first."""
        if self.points is not None:
            return self.points
        first = {name: axis.ends()[0] for name, axis in self.axes.items()}
        return [{**first, name: end} for name, axis in self.axes.items() for end in axis.ends()]


SMALL_GRAPH = 20_000  # nodes up to which a sweep trains on the whole graph in every step


def default_space(fixed: Mapping[str, Any], num_nodes: int, featureless: bool = False) -> Space:
    """The space of a sweep that is given none: the settings that matter most, except those that are `fixed`. Nodes of a
    graph without features read known labels, which needs batches of some nodes."""
    axes: dict[str, Choice | Range] = {
        "lr": Range(0.001, 0.03, log=True),
        "dropout": Choice((0.0, 0.3, 0.5, 0.7)),
        "layer_norm": Choice((True, False)),
        "normalize": Choice(("never", "every")),
        "dim": Choice((128, 256, 512)),
        "weight_decay": Choice((0.0, 0.0005)),
    }
    whole = {"whole_batches": 1, "epochs": 200, "patience": 20} if num_nodes <= SMALL_GRAPH and not featureless else {}
    around = {"epochs": 30, "patience": 5, **whole}
    task = fixed.get("task", "supervised")
    if task not in ("supervised", "regression"):
        raise ConfigError(f"there is no space for {setting('task', task)} yet; write one and name its file")
    axes = {name: axis for name, axis in axes.items() if name not in fixed}
    return Space({**around, **fixed}, axes, name=DEFAULT)


def paper_space(fixed: Mapping[str, Any]) -> Space:
    """Appendix C's grid: learning rates, and both sizes of pool and LSTM, for each aggregator, or for the one fixed."""
    rates = (
        SUPERVISED_RATES if fixed.get("task", "supervised") == "supervised" else sum(UNSUPERVISED_RATES.values(), ())
    )
    chosen = (fixed["aggregator"],) if "aggregator" in fixed else PAPER_AGGREGATORS
    points: list[dict[str, Any]] = []
    for aggregator in chosen:
        own = {} if "aggregator" in fixed else {"aggregator": aggregator}
        widths: list[dict[str, Any]] = [{"hidden_dim": width} for width in SIZES.get(aggregator, ())] or [{}]
        points += [{**own, "lr": lr, **width} for width in widths for lr in rates]
    for name in ("lr", "hidden_dim"):
        if name in fixed:
            raise ConfigError(f"the paper's grid chooses {name}; do not fix it, or write a space of your own")
    names = list(dict.fromkeys(name for point in points for name in point))
    values = {name: tuple(dict.fromkeys(point[name] for point in points if name in point)) for name in names}
    return Space(fixed, {name: Choice(found) for name, found in values.items()}, tuple(points), "paper")


def tidy(value: float, whole: bool) -> float:
    """0.1 + 2 * 0.1 is meant to be 0.3."""
    return round(value) if whole else float(f"{value:.12g}")

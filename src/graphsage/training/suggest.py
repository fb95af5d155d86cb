"""A space in Optuna's words: how a trial gets its settings, and when it is given up. Imported where Optuna is."""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from optuna import Study, Trial
from optuna.distributions import BaseDistribution
from optuna.pruners import BasePruner, MedianPruner, NopPruner, SuccessiveHalvingPruner
from optuna.samplers import BaseSampler, RandomSampler, TPESampler
from optuna.trial import FrozenTrial

from graphsage.training.space import Choice, Space, tidy


class PointSampler(BaseSampler):
    """One point of a grid. Optuna's own grid sampler tries some points twice when several processes share a journal."""

    def __init__(self, point: Mapping[str, Any]) -> None:
        self.point = point

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        return {}

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        return {}

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        return self.point[param_name]


def make_sampler(name: str, space: Space, seed: int, number: int) -> BaseSampler:
    """For one trial: its draws depend on the seed and its number, not on how many sittings there were before."""
    if name == "grid":
        return PointSampler({name: _told(value) for name, value in space.grid()[number].items()})
    own = int(np.random.SeedSequence((seed, number)).generate_state(1)[0])
    return TPESampler(seed=own) if name == "tpe" else RandomSampler(seed=own)


def make_pruner(name: str) -> BasePruner:
    """median: worse than half of the others after as many epochs. halving: only the best third of them goes on after 1,
    3, 9, ... epochs."""
    if name == "median":
        return MedianPruner(n_startup_trials=5, n_warmup_steps=2)
    return SuccessiveHalvingPruner(min_resource=1, reduction_factor=3) if name == "halving" else NopPruner()


def suggest(trial: Trial, space: Space, sampler: str) -> None:
    """Settle the trial's settings; of a grid only those that its point has."""
    for name in space.grid()[trial.number] if sampler == "grid" else space.axes:
        axis = space.axes[name]
        if isinstance(axis, Choice):
            trial.suggest_categorical(name, [_told(value) for value in axis.values])
        elif axis.whole:
            trial.suggest_int(name, int(axis.low), int(axis.high), step=int(axis.step or 1), log=axis.log)
        else:
            trial.suggest_float(name, axis.low, axis.high, step=axis.step, log=axis.log)


def settings_of(space: Space, params: Mapping[str, Any]) -> dict[str, Any]:
    """A trial's settings: the fixed ones and those that Optuna chose."""
    point = {}
    for name, value in params.items():
        axis = space.axes[name]
        if isinstance(axis, Choice):
            point[name] = {_told(choice): choice for choice in axis.values}[value]
        else:
            point[name] = value if axis.step is None else tidy(value, axis.whole)
    return space.settings(point)


def _told(value: Any) -> Any:
    """As Optuna keeps it: lists, such as sample sizes, as text."""
    return json.dumps(list(value)) if isinstance(value, tuple) else value

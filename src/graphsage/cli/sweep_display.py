"""What a sweep says while it goes on: a line for each trial that ends, here or elsewhere."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from graphsage.cli.output import say, shortened

if TYPE_CHECKING:
    from optuna import Study
    from optuna.trial import FrozenTrial

    from graphsage.training.search import Search


class Lines:
    """Called now and then with the study; says what is new."""

    def __init__(self, search: "Search") -> None:
        self.search = search
        self.told: set[int] = set()

    def skip(self, study: "Study") -> None:
        """Say nothing of what was finished before."""
        self.told |= {trial.number for trial in study.get_trials(deepcopy=False) if trial.state.is_finished()}

    def __call__(self, study: "Study") -> None:
        for trial in study.get_trials(deepcopy=False):
            if trial.state.is_finished() and trial.number not in self.told:
                self.told.add(trial.number)
                say(self._line(trial))

    def _line(self, trial: "FrozenTrial") -> str:
        width = len(str(self.search.total - 1))
        return f"trial {trial.number:>{width}}   {outcome(trial):<24}   {words(trial.params)}"


def outcome(trial: "FrozenTrial") -> str:
    """How a trial ended, in a few words."""
    reached = trial.intermediate_values
    if trial.state.name == "COMPLETE":
        return f"val F1 {trial.value:.4f}"
    if trial.state.name == "PRUNED":
        return f"{max(reached.values()):.4f}, given up after {max(reached)}"
    return f"failed: {shortened(trial.user_attrs.get('error', 'no reason kept'), 80)}"


def words(point: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {short(value)}" for name, value in point.items())


def short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)

"""Settings chosen on validation: a grid of points, every point trained once or with a few seeds, the best mean wins."""

import itertools
import statistics
from collections.abc import Sequence
from typing import Any

from graphsage.training.score import Score


def grid(*choices: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Every combination of one element from each of `choices`."""
    return [{name: value for part in parts for name, value in part.items()} for parts in itertools.product(*choices)]


def chosen(scores: Sequence[Score], epochs: Sequence[int] = ()) -> dict[str, Any]:
    """The best settings by validation micro F1, and all points, best first.

    A run of 20 epochs has passed the end of a run of 10 with the same settings: `epochs` names the lengths that
    are points of their own, read from each run's curve.
    """
    found: dict[tuple[tuple[str, Any], ...], list[float]] = {}
    for score in scores:
        settings = {name: value for name, value in score.settings.items() if name != "seed"}
        for length in epochs or (len(score.curve),):
            key = tuple({**settings, **({"epochs": length} if epochs else {})}.items())
            found.setdefault(key, []).append(score.curve[length - 1])
    ranked = sorted(((statistics.fmean(values), dict(key)) for key, values in found.items()), key=lambda p: -p[0])
    return {
        "chosen": ranked[0][1],
        "points": [{**settings, "val_micro_f1": round(value, 4)} for value, settings in ranked],
    }

"""The time of one training step. A whole training may be over before a GPU is warm."""

import statistics
import time
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from graphsage.experiments.data import Named
from graphsage.experiments.trials import NOT_SETTINGS
from graphsage.inference.model import Model
from graphsage.training.progress import Event
from graphsage.training.train import choose_device, train
from graphsage.training.trials import Result

Ticks = Sequence[tuple[int, float]]
ON_GPU = 100  # times as many steps there: they are short, and progress is told five times a second


def timed_step(settings: dict[str, Any], data: Named) -> Result:
    """A trial: milliseconds of one step with these settings."""
    own = {name: value for name, value in settings.items() if name not in (*NOT_SETTINGS, "machine")}
    _, ticks = timed_training(data, device=settings["device"], seed=settings["seed"], **own)
    return {"step_milliseconds": 1000 * usual_step(ticks)}


def timed_training(data: Named, *, steps: int, device: str, **settings: Any) -> tuple[Model, Ticks]:
    """A model after `steps` steps, on a GPU a hundred times as many, and when which of them was done. A GPU is asked
    only now and then and at the end of an epoch, so that not every step is told."""
    ticks = [(0, time.monotonic())]

    def tick(event: Event) -> None:
        if event.step > ticks[-1][0]:
            ticks.append((event.step, time.monotonic()))

    steps *= ON_GPU if choose_device(device).type == "cuda" else 1
    model = train(data.graph, data.unvalidated, steps=steps, device=device, on_event=tick, **settings)
    return model, ticks


def seconds_per_step(ticks: Ticks) -> float:
    """The mean, without the first third, which allocates memory and loads kernels."""
    (first, began), (last, ended) = ticks[len(ticks) // 3], ticks[-1]
    return (ended - began) / (last - first)


def usual_step(ticks: Ticks) -> float:
    """The median of the same: others on the machine can only make a step longer."""
    pairs = pairwise(ticks[len(ticks) // 3 :])
    return statistics.median((ended - began) / (last - first) for (first, began), (last, ended) in pairs)

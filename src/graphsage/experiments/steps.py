"""The time of one training step. A whole training may be over before a GPU is warm."""

import statistics
import time
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from graphsage.experiments.data import Named
from graphsage.experiments.trials import NOT_SETTINGS
from graphsage.inference.model import Model
from graphsage.training.loop import Event
from graphsage.training.sweep import Result
from graphsage.training.train import choose_device, train

ON_GPU = 100  # times as many steps there: they are short, and progress is told five times a second


def timed_step(settings: dict[str, Any], data: Named) -> Result:
    """A trial: milliseconds of one step with these settings."""
    own = {name: value for name, value in settings.items() if name not in (*NOT_SETTINGS, "machine")}
    _, seconds = timed_training(data, device=settings["device"], seed=settings["seed"], **own)
    return {"step_milliseconds": 1000 * seconds}


def timed_training(data: Named, *, steps: int, device: str, **settings: Any) -> tuple[Model, float]:
    """A model after `steps` steps, on a GPU a hundred times as many, and the seconds of one."""
    ticks: list[tuple[int, float]] = []

    def tick(event: Event) -> None:
        if event.kind == "step":
            ticks.append((event.step, time.monotonic()))

    steps *= ON_GPU if choose_device(device).type == "cuda" else 1
    model = train(data.graph, data.unvalidated, steps=steps, device=device, on_event=tick, **settings)
    return model, seconds_per_step(ticks)


def seconds_per_step(ticks: Sequence[tuple[int, float]]) -> float:
    """The median of what training told as (step, time), without the first third, which allocates memory and loads
    kernels. A GPU is asked only now and then, so that not every step is told."""
    pairs = pairwise(ticks[len(ticks) // 3 :])
    return statistics.median((ended - began) / (last - first) for (first, began), (last, ended) in pairs)

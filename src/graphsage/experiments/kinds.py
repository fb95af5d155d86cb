"""Every kind of trial by its name, for the process that makes one."""

from collections.abc import Callable
from typing import Any

from graphsage.experiments.data import Named
from graphsage.experiments.figure2a import timed_deepwalk, timed_graphsage
from graphsage.experiments.rotation import rotation
from graphsage.experiments.steps import timed_step
from graphsage.experiments.theory import learn
from graphsage.experiments.trials import chance, deepwalk, features, graphsage
from graphsage.training.sweep import Result

KINDS: dict[str, Callable[[dict[str, Any], Named], Result]] = {
    "graphsage": graphsage,
    "random": chance,
    "features": features,
    "deepwalk": deepwalk,
    "rotation": rotation,
    "timed step": timed_step,
    "timed graphsage": timed_graphsage,
    "timed deepwalk": timed_deepwalk,
}
WITHOUT_DATA: dict[str, Callable[[dict[str, Any]], Result]] = {"theory": learn}

"""Every kind of trial by its name, for the process that makes one."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from graphsage.experiments.data import Named, Source, opened
from graphsage.experiments.figure2a import timed_deepwalk, timed_graphsage
from graphsage.experiments.record import IN_TF32
from graphsage.experiments.rotation import rotation
from graphsage.experiments.steps import timed_step
from graphsage.experiments.theory import learn
from graphsage.experiments.trials import chance, deepwalk, features, graphsage
from graphsage.training.trials import Result, Trial

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


@dataclass(frozen=True)
class Evaluate:
    """Makes trials, in this process or another one: knows where the data lies and which device to use."""

    sources: tuple[Source, ...]
    device: str = "auto"
    tf32: bool = False
    """Multiply in TF32 where GraphSAGE is trained on a GPU."""

    def __call__(self, trial: Trial) -> Result:
        settings = {**trial.settings, "device": self.device}
        if trial.type in WITHOUT_DATA:
            return WITHOUT_DATA[trial.type](settings)
        if self.tf32 and trial.type in IN_TF32:
            settings["tf32"] = True
        source = next(source for source in self.sources if source.name == settings["data"])
        return KINDS[trial.type](settings, opened(source))

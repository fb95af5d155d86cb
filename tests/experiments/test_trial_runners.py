"""What a trial hands to training, and how its steps are timed."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from graphsage.experiments import trial_runners
from graphsage.experiments.data import Named, Source
from graphsage.experiments.figures import Variant, ablation_trials, fixed, methods
from graphsage.experiments.table1 import graphsage_trial
from graphsage.experiments.trial_runners import NOT_SETTINGS, Evaluate, seconds_per_step, timed_training, usual_step
from graphsage.training.config import Config
from graphsage.training.progress import Event
from graphsage.training.trials import Result, Trial
from planted import planted_graph, planted_split
from reproduction import session


@pytest.mark.parametrize("tf32", [False, True])
def test_tf32_is_of_the_machine_and_not_of_the_trial(tf32: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[dict[str, Any]] = []

    def keep(settings: dict[str, Any], data: Named) -> Result:
        seen.append(settings)
        return {"val": 0.0}

    for kind in ("graphsage", "features"):
        monkeypatch.setitem(trial_runners.TYPES, kind, replace(trial_runners.TYPES[kind], run=keep))
    trials = [Trial(kind, {"data": "setmm", "seed": 0}, kind) for kind in ("graphsage", "features")]
    names = [trial.key for trial in trials]
    for trial in trials:
        Evaluate((Source("setmm"),), "cuda", tf32)(trial)
    assert [settings.get("tf32", False) for settings in seen] == [tf32, False]  # a probe knows no such thing
    assert [trial.key for trial in trials] == names
    given = {name: value for name, value in seen[0].items() if name not in NOT_SETTINGS}
    assert Config(**given).tf32 is tf32


def test_steps_are_timed_by_their_numbers_since_a_gpu_does_not_tell_of_all() -> None:
    assert seconds_per_step([(1, 9.0), (2, 10.0), (3, 10.5), (4, 11.0)]) == 0.5
    assert seconds_per_step([(10, 0.0), (20, 5.0), (120, 6.0)]) == 0.01


def test_the_usual_step_is_the_median_without_the_first_third() -> None:
    assert usual_step([(0, 0.0), (1, 9.0), (2, 10.0), (3, 11.0), (4, 19.0), (5, 20.0)]) == 1.0
    assert usual_step([(0, 0.0), (400, 2.0)]) == 0.005  # all that a fast GPU told


def test_the_end_of_an_epoch_is_a_tick_where_a_gpu_tells_of_no_step(monkeypatch: pytest.MonkeyPatch) -> None:
    def train(*_: Any, on_event: Any, **settings: Any) -> None:
        for kind, step in (("epoch", 40), ("step", 80), ("epoch", 80), ("epoch", 120)):
            on_event(Event(kind, 0, 0, step, settings["steps"], 0.0, 0.0, 0.0, 0.0))

    monkeypatch.setattr(trial_runners, "train", train)
    graph = planted_graph()
    data = Named("planted", graph, planted_split(graph), "", "")
    _, ticks = timed_training(data, steps=120, device="cpu")
    assert [step for step, _ in ticks] == [0, 40, 80, 120]
    assert usual_step(ticks) >= 0


def test_every_graphsage_trial_names_its_form(monkeypatch: pytest.MonkeyPatch, sources: tuple[Source, ...]) -> None:
    """Training has a default that is neither of the paper's two forms."""
    seen: list[Any] = []

    class Stop(Exception):
        pass

    def train(*_: Any, **settings: Any) -> None:
        seen.append(settings["form"])
        raise Stop

    monkeypatch.setattr(trial_runners, "train", train)
    here = session(sources[:1], Path("unused"))
    variants = [Variant("S 2", {}, {"sample_sizes": (2, 2), "aggregator": "mean"})]
    trials = [
        *(graphsage_trial(here, sources[0], cell) for cell in here.cells()),
        *ablation_trials("depth", "graphsage", sources[:1], variants, fixed(here)).values(),
        *ablation_trials("depth", "timed step", sources[:1], variants, fixed(here, steps=2)).values(),
        *(trial for trial in methods(here, sources[0], "here").values() if trial.type == "timed graphsage"),
    ]
    for trial in trials:
        with pytest.raises(Stop):
            Evaluate(sources, "cpu")(trial.with_settings(seed=0))
    assert len(seen) == len(trials) == 8 + 1 + 1 + 4
    assert set(seen) == {"paper"}

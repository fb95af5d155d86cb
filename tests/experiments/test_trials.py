"""What a trial hands to training, and how its steps are timed."""

from typing import Any

import pytest

from graphsage.experiments import kinds
from graphsage.experiments.data import Named, Source
from graphsage.experiments.steps import seconds_per_step
from graphsage.experiments.trials import NOT_SETTINGS, Evaluate
from graphsage.training.config import Config
from graphsage.training.sweep import Result, Trial


@pytest.mark.parametrize("tf32", [False, True])
def test_tf32_is_of_the_machine_and_not_of_the_trial(tf32: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[dict[str, Any]] = []

    def keep(settings: dict[str, Any], data: Named) -> Result:
        seen.append(settings)
        return {"val": 0.0}

    for kind in ("graphsage", "features"):
        monkeypatch.setitem(kinds.KINDS, kind, keep)
    trials = [Trial(kind, {"kind": kind, "data": "setmm", "seed": 0}) for kind in ("graphsage", "features")]
    names = [trial.file_name() for trial in trials]
    for trial in trials:
        Evaluate((Source("setmm"),), "cuda", tf32)(trial)
    assert [settings.get("tf32", False) for settings in seen] == [tf32, False]  # a probe knows no such thing
    assert [trial.file_name() for trial in trials] == names
    given = {name: value for name, value in seen[0].items() if name not in NOT_SETTINGS}
    assert Config(**given).tf32 is tf32


def test_steps_are_timed_by_their_numbers_since_a_gpu_does_not_tell_of_all() -> None:
    assert seconds_per_step([(1, 9.0), (2, 10.0), (3, 10.5), (4, 11.0)]) == 0.5
    assert seconds_per_step([(10, 0.0), (20, 5.0), (120, 6.0)]) == 0.01

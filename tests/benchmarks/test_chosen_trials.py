"""The pool over all experiments asks for what is missing, and makes nothing while it collects."""

from pathlib import Path

import pytest

from benchmarks.chosen_trials import Collector, seconds
from graphsage.training.trials import Trial, TrialStore, Unfinished


def test_a_collector_keeps_what_the_store_lacks_and_makes_nothing(tmp_path: Path) -> None:
    store = TrialStore(tmp_path)
    made, lacking, timed = (Trial("row", {"seed": seed}, experiment="table1") for seed in range(3))
    store.add(made, {}, {"test": 0.5})

    def never(trial: Trial) -> dict[str, object]:
        raise AssertionError("a trial was made")

    collector = Collector(store, never)
    assert collector.run([made]) == [{"test": 0.5}]
    with pytest.raises(Unfinished):
        collector.run([made, lacking])
    with pytest.raises(Unfinished):
        collector.run([timed], alone=True)
    assert list(collector.missing.values()) == [lacking]


def test_a_trial_is_expected_to_take_what_its_older_version_took(tmp_path: Path) -> None:
    store = TrialStore(tmp_path)
    older = Trial("row", {"seed": 0}, experiment="table1", version=1)
    store.add(older, {}, {"seconds": 3.0})
    store.add(Trial("row", {"seed": 1}, experiment="table1"), {}, {"seconds": 7.0})
    assert seconds(store, Trial("row", {"seed": 0}, experiment="table1", version=2)) == 3.0
    assert seconds(store, Trial("row", {"seed": 9}, experiment="table1", version=2)) == 7.0
    assert seconds(store, Trial("other", {}, experiment="table1")) == float("inf")

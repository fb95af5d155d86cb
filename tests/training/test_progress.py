"""The reporter: how often it fetches the loss, and what its events and log lines say."""

import json
import math
from pathlib import Path

import pytest
import torch
from torch import Tensor

from graphsage.errors import DataError
from graphsage.training.batches import Epochs
from graphsage.training.checkpoint import TrainingState
from graphsage.training.progress import LOG, Event, Reporter


class Clock:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        monkeypatch.setattr("time.monotonic", lambda: self.now)


class FakeStep:
    """Step number s has the loss s."""

    def __init__(self) -> None:
        self.losses: list[float] = []
        self.fetches = 0

    def run(self, step: int) -> None:
        self.losses.append(float(step))

    def take_loss(self) -> Tensor:
        self.fetches += 1
        taken, self.losses = self.losses, []
        return torch.tensor(sum(taken), dtype=torch.float64)


def train_steps(reporter: Reporter, step: FakeStep, clock: Clock, count: int, seconds: float) -> None:
    for _ in range(count):
        step.run(reporter.state.step)
        clock.now += seconds
        reporter.state.step += 1
        reporter.after_step()


@pytest.mark.parametrize(("interval", "fetches"), [(0.0, 20), (0.2, 5)])
def test_the_loss_is_fetched_at_most_once_per_interval(
    interval: float, fetches: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, step, events = Clock(monkeypatch), FakeStep(), list[Event]()
    reporter = Reporter(TrainingState(), step, Epochs(160, 8, 0), 40, interval, None, events.append)
    train_steps(reporter, step, clock, 20, 0.0625)
    assert step.fetches == len(events) == fetches
    each = 20 // fetches
    means = [sum(range(first, first + each)) / each for first in range(0, 20, each)]
    assert [event.loss for event in events] == means
    assert reporter.epoch_loss() == sum(range(20)) / 20


def test_speed_and_time_left_are_those_of_the_session_and_seconds_those_of_the_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock, step, events = Clock(monkeypatch), FakeStep(), list[Event]()
    reporter = Reporter(TrainingState(step=10, seconds=99.0), step, Epochs(160, 8, 0), 40, 0.0, None, events.append)
    train_steps(reporter, step, clock, 5, 0.5)
    expected = Event("step", 1, 2, 15, 40, 14.0, seeds_per_second=16.0, seconds=101.5, seconds_left=12.5)
    assert events[-1] == expected


def test_a_session_logs_epochs_after_the_checkpoint_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, step = Clock(monkeypatch), FakeStep()
    (tmp_path / LOG).write_text('{"epoch": 1, "step": 2}\n{"epoch": 2, "step": 4}\n{"epoch": 3, "st')
    reporter = Reporter(TrainingState(step=2), step, Epochs(16, 8, 0), 4, 0.0, tmp_path, None)
    train_steps(reporter, step, clock, 2, 0.5)
    reporter.log_epoch(reporter.epoch_loss(), 0.75)
    first, second = (json.loads(line) for line in (tmp_path / LOG).read_text().splitlines())
    assert first == {"epoch": 1, "step": 2}
    assert second == {"epoch": 2, "step": 4, "loss": 2.5, "val_score": 0.75, "seconds": 1.0}


@pytest.mark.parametrize("loss", [math.nan, math.inf])
def test_a_loss_that_is_not_finite_ends_the_run(loss: float) -> None:
    step = FakeStep()
    reporter = Reporter(TrainingState(), step, Epochs(16, 8, 0), 4, 0.0, None, None)
    step.losses, reporter.state.step = [loss], 1
    with pytest.raises(DataError, match="the loss of step 1 is"):
        reporter.after_step()

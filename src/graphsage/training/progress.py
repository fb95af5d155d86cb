"""Progress of a training run: the mean loss of recent steps, events for a display, and one log line per epoch."""

import json
import math
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from graphsage.atomic import writing
from graphsage.errors import DataError, setting
from graphsage.evaluation.metrics import METRICS, Metric
from graphsage.execution.step import Step
from graphsage.training.batches import Epochs
from graphsage.training.checkpoint import TrainingState

REPORT_SECONDS = 0.2  # between two events of steps on a GPU, because reading the loss waits for its queue
LOG = "log.jsonl"
HINT_EPOCHS = 3


@dataclass(frozen=True)
class Event:
    """Passed to `on_event` after steps and at the end of every epoch."""

    kind: str
    epoch: int
    epochs: int
    step: int
    steps: int
    loss: float
    seeds_per_second: float
    seconds: float
    seconds_left: float
    val_score: float | None = None
    metric: str = "micro-f1"
    """The name of the validation score."""
    hint: str | None = None
    """Advice for the user, in one sentence."""


@dataclass
class Reporter:
    """Fetches the losses, passes events to `on_event` and writes the log in `folder`.

    A session is one call of `run_loop`; a resumed run has several.
    """

    state: TrainingState
    step: Step
    epochs: Epochs
    total_steps: int
    interval: float
    """Minimum seconds between two events of steps."""
    folder: Path | None
    on_event: Callable[[Event], None] | None
    metric: Metric = METRICS["micro-f1"]

    def __post_init__(self) -> None:
        self.session_start = self.last_report = time.monotonic()
        self.run_start = self.session_start - self.state.seconds
        self.first_step = self.fetched_step = self.state.step
        self.last_loss = math.nan
        self.epochs_at_zero = 0
        if self.folder is not None:
            self._trim_log(self.folder / LOG)

    @property
    def epoch(self) -> int:
        """The number of the current epoch, from 1."""
        return -(-self.state.step // self.epochs.steps)

    def seconds(self) -> float:
        """Time spent training, over all sessions."""
        return time.monotonic() - self.run_start

    def after_step(self) -> None:
        if time.monotonic() - self.last_report >= self.interval:
            self.send("step", self.fetch_loss())

    def fetch_loss(self) -> float:
        """Add the losses since the last call to the state and return their mean. This waits for a GPU."""
        state, count = self.state, self.state.step - self.fetched_step
        if count:
            total = float(self.step.take_loss())
            if not math.isfinite(total):
                raise DataError(
                    f"the loss of step {state.step} is {total}: numbers overflowed; lower {setting('lr')} or look for "
                    "huge features"
                )
            state.loss_sum += total
            state.loss_steps += count
            self.fetched_step, self.last_report, self.last_loss = state.step, time.monotonic(), total / count
        return self.last_loss

    def epoch_loss(self) -> float:
        """The mean loss of the epoch that ends now; the next epoch starts at zero."""
        self.fetch_loss()
        loss = self.state.loss_sum / max(self.state.loss_steps, 1)
        self.state.loss_sum, self.state.loss_steps = 0.0, 0
        return loss

    def hint(self, score: float | None) -> str | None:
        """Advice at the third epoch in a row that predicts nothing correctly. Called once per epoch."""
        self.epochs_at_zero = self.epochs_at_zero + 1 if score == 0 else 0
        if self.metric.name not in ("micro-f1", "macro-f1", "accuracy") or self.epochs_at_zero != HINT_EPOCHS:
            return None
        return (
            f"validation {self.metric.title} is 0 after {HINT_EPOCHS} epochs: the model predicts no label correctly; "
            f"raise {setting('lr')} or {setting('epochs')}, or use {setting('head_scale', True)}"
        )

    def send(self, kind: str, loss: float, score: float | None = None, hint: str | None = None) -> None:
        if self.on_event is None:
            if hint is not None:
                warnings.warn(hint, stacklevel=4)
            return
        step, seconds = self.state.step, time.monotonic() - self.session_start
        done = step - self.first_step
        event = Event(
            kind=kind,
            epoch=self.epoch,
            epochs=-(-self.total_steps // self.epochs.steps),
            step=step,
            steps=self.total_steps,
            loss=loss,
            seeds_per_second=done * self.epochs.batch_size / max(seconds, 1e-9),
            seconds=self.seconds(),
            seconds_left=seconds / max(done, 1) * (self.total_steps - step),
            val_score=score,
            metric=self.metric.name,
            hint=hint,
        )
        self.on_event(event)

    def log_epoch(self, loss: float, score: float | None) -> None:
        if self.folder is None:
            return
        record = {"epoch": self.epoch, "step": self.state.step, "loss": loss, "val_score": score}
        with writing(self.folder / LOG), (self.folder / LOG).open("a", encoding="utf-8") as file:
            file.write(json.dumps(record | {"seconds": round(self.seconds(), 3)}) + "\n")

    def _trim_log(self, path: Path) -> None:
        """Remove the epochs after the checkpoint that this session starts from: they will be logged again."""
        with writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            lines = path.read_text(encoding="utf-8").splitlines() if path.exists() and self.state.step else []
            kept = [line for line in lines if _step_of(line) <= self.state.step]
            path.write_text("".join(line + "\n" for line in kept), encoding="utf-8")


def _step_of(line: str) -> float:
    """The step of a log line; infinity if a killed process left the line incomplete."""
    try:
        return float(json.loads(line)["step"])
    except (ValueError, KeyError, TypeError):
        return math.inf

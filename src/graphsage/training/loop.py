"""The loop: Adam over an objective, epoch after epoch, with validation, early stopping, checkpoints and a log."""

import json
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from graphsage.atomic import writing
from graphsage.errors import ConfigError, DataError
from graphsage.kernels import scratch
from graphsage.training.adam import Adam
from graphsage.training.checkpoint import Progress, read_checkpoint, restore, save_checkpoint
from graphsage.training.config import Config
from graphsage.training.interrupt import postponed
from graphsage.training.objectives.base import Objective
from graphsage.training.ranks import SINGLE_PROCESS, Ranks
from graphsage.training.step import Step, make_step

CHECKPOINT_SECONDS = 60.0
TELL_SECONDS = 0.2  # asking a GPU for the loss makes it wait for us
GPU_STEPS = 16  # between two questions to the other ranks, which take as long as a captured step
LOG = "log.jsonl"


@dataclass(frozen=True)
class Event:
    """What a progress display is told, after every step and at the end of every epoch."""

    kind: str
    epoch: int
    epochs: int
    step: int
    steps: int
    loss: float
    seeds_per_second: float
    seconds: float
    seconds_left: float
    val_f1: float | None = None


@contextmanager
def matmul_precision(name: str) -> Iterator[None]:
    """float32 products in full ("highest") or in TF32 ("high") within the block; the caller's choice after it."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(name)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during training, after the checkpoint was written."""


def run_loop(
    config: Config,
    module: nn.Module,
    objective: Objective,
    *,
    validate: Callable[[], float] | None,
    folder: Path | None,
    identity: str,
    resume: bool,
    on_begin: Callable[[], None] | None = None,
    on_event: Callable[[Event], None] | None,
    ranks: Ranks = SINGLE_PROCESS,
) -> Progress:
    """Train `module` in place until the configured end; afterwards it holds the final (or best) weights.

    Among several ranks the first one alone validates, and only it should have a `folder`, `on_begin` and `on_event`.
    """
    optimizer = Adam(module, config.lr or 0.01, weight_decay=config.weight_decay, clip=config.clip or 0.0)
    progress = Progress()
    if resume:
        progress = restore(ranks.first(lambda: read_checkpoint(_needed(folder), identity)), module, optimizer)
    step = make_step(objective, module, optimizer, ranks)
    if on_begin is not None:
        on_begin()
    loop = _Loop(config, module, objective, optimizer, step, validate, folder, identity, on_event, progress, ranks)
    with matmul_precision("high" if config.tf32 else "highest"), scratch.reuse():
        loop.run()
    optimizer.zero_grad(set_to_none=True)  # nobody wants the last gradients, as large as the weights
    if progress.best:
        module.load_state_dict(progress.best)
    return progress


@dataclass
class _Loop:
    config: Config
    module: nn.Module
    objective: Objective
    optimizer: Adam
    step: Step
    validate: Callable[[], float] | None
    folder: Path | None
    identity: str
    on_event: Callable[[Event], None] | None
    progress: Progress
    ranks: Ranks = SINGLE_PROCESS
    last_loss: float = math.nan

    def __post_init__(self) -> None:
        self.per_epoch = self.objective.epochs.steps
        epochs = self.config.epochs or 1
        self.total = self.config.steps or epochs * self.per_epoch
        self.began = time.monotonic() - self.progress.seconds
        self.first_step = self.progress.step
        self.sat_down = self.saved = self.told = time.monotonic()
        self.taken = self.progress.step
        on_gpu = next(self.module.parameters()).is_cuda
        self.tell_every = TELL_SECONDS if on_gpu else 0.0
        self.ask_every = GPU_STEPS if on_gpu and self.ranks.count > 1 else 1
        if self.folder is not None:
            self._trim_log()

    def run(self) -> None:
        self.module.train()
        with postponed() as interrupt:
            while self.progress.step < self.total and not self.progress.stopped:
                self._step()
                stop = self.progress.step % self.ask_every == 0 and self.ranks.any(interrupt.requested)
                if self.progress.step % self.per_epoch == 0 or self.progress.step == self.total:
                    self._end_epoch()
                elif stop or time.monotonic() - self.saved > CHECKPOINT_SECONDS:
                    self._save()
                if stop and self.progress.step < self.total:
                    raise Interrupted
        self.module.eval()

    def _step(self) -> None:
        self.step.run(self.progress.step)
        self.progress.step += 1
        if time.monotonic() - self.told >= self.tell_every:
            self._tell("step", self._take_loss())

    def _take_loss(self) -> float:
        """The mean loss of the steps since this was asked last: on a GPU the moment when the host waits for it."""
        count = self.progress.step - self.taken
        if not count:
            return self.last_loss
        total = float(self.step.take_loss())
        if not math.isfinite(total):
            raise DataError(f"the loss of step {self.progress.step} is {total}; look for huge features or lower lr")
        self.progress.loss_sum += total
        self.progress.loss_steps += count
        self.taken, self.told, self.last_loss = self.progress.step, time.monotonic(), total / count
        return self.last_loss

    def _end_epoch(self) -> None:
        self._take_loss()
        progress = self.progress
        loss = progress.loss_sum / max(progress.loss_steps, 1)
        epoch = -(-progress.step // self.per_epoch)
        val_f1 = None
        if self.validate is not None:
            self.module.eval()
            val_f1 = self._validated(self.validate)
            self.module.train()
            self._watch(val_f1, epoch)
        progress.loss_sum, progress.loss_steps = 0.0, 0
        self._log({"epoch": epoch, "step": progress.step, "loss": loss, "val_f1": val_f1,
                   "seconds": round(time.monotonic() - self.began, 3)})  # fmt: skip
        self._save()
        self._tell("epoch", loss, val_f1)

    def _validated(self, validate: Callable[[], float]) -> float:
        return float(self.ranks.first(lambda: repr(float(validate())).encode()))

    def _watch(self, val_f1: float, epoch: int) -> None:
        if val_f1 > self.progress.best_f1:
            self.progress.best_f1, self.progress.best_epoch = val_f1, epoch
            if self.config.patience is not None:
                self.progress.best = {name: _copy(value) for name, value in self.module.state_dict().items()}
        elif self.config.patience is not None:
            self.progress.stopped = epoch - self.progress.best_epoch >= self.config.patience

    def _save(self) -> None:
        self._take_loss()
        self.progress.seconds = time.monotonic() - self.began
        self.saved = time.monotonic()
        if self.folder is not None:
            save_checkpoint(self.folder, self.module, self.optimizer, self.progress, self.identity)

    def _tell(self, kind: str, loss: float, val_f1: float | None = None) -> None:
        if self.on_event is None:
            return
        step = self.progress.step
        sitting = time.monotonic() - self.sat_down
        done = step - self.first_step
        left = sitting / max(done, 1) * (self.total - step)
        self.on_event(Event(
            kind, -(-step // self.per_epoch), -(-self.total // self.per_epoch), step, self.total, loss,
            done * self.config.batch_size / max(sitting, 1e-9), time.monotonic() - self.began, left, val_f1,
        ))  # fmt: skip

    def _log(self, record: dict[str, Any]) -> None:
        if self.folder is not None:
            with writing(self.folder / LOG), (self.folder / LOG).open("a", encoding="utf-8") as file:
                file.write(json.dumps(record) + "\n")

    def _trim_log(self) -> None:
        """Forget epochs after the checkpoint that this sitting starts from: they will be logged again."""
        assert self.folder is not None
        path = self.folder / LOG
        with writing(path):
            self.folder.mkdir(parents=True, exist_ok=True)
            lines = path.read_text(encoding="utf-8").splitlines() if path.exists() and self.progress.step else []
            kept = [line for line in lines if _step_of(line) <= self.progress.step]
            path.write_text("".join(line + "\n" for line in kept), encoding="utf-8")


def _needed(folder: Path | None) -> Path:
    if folder is None:
        raise ConfigError("to resume, say which run: give its folder as out")
    return folder


def _step_of(line: str) -> float:
    """The step a log line tells of; infinity for one that a killed process left half written."""
    try:
        return float(json.loads(line)["step"])
    except (ValueError, KeyError, TypeError):
        return math.inf


def _copy(value: Tensor) -> Tensor:
    return value.detach().clone()

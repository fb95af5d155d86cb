"""The training loop: Adam on an objective, with validation, early stopping and checkpoints."""

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import torch
from torch import nn

from graphsage.errors import ConfigError
from graphsage.evaluation.metrics import Metric
from graphsage.execution.adam import Adam
from graphsage.execution.ranks import SINGLE_PROCESS, Ranks
from graphsage.execution.step import make_step
from graphsage.training.checkpoint import TrainingState, read_checkpoint, restore, save_checkpoint
from graphsage.training.config import Config
from graphsage.training.objectives.base import Objective
from graphsage.training.progress import REPORT_SECONDS, Event, Reporter

CHECKPOINT_SECONDS = 60.0
ECHO_SECONDS = 1.0  # torchrun forwards the Ctrl-C that the terminal has already sent to every process
GPU_POLL_STEPS = 16  # between two checks for an interrupt on any rank, each as slow as a captured step


@contextmanager
def matmul_precision(name: str) -> Iterator[None]:
    """Within the block, compute float32 products in full ("highest") or in TF32 ("high")."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(name)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during training, after the checkpoint was written."""


@dataclass
class Interrupt:
    requested: bool = False
    at: float = 0.0


@contextmanager
def postponed() -> Iterator[Interrupt]:
    """Within the block, the first Ctrl-C (or SIGTERM) only sets `requested`; a later one stops at once.

    The loop stops between steps, never within one, so that a checkpoint written then resumes bit for bit.
    """
    interrupt = Interrupt()
    if threading.current_thread() is not threading.main_thread():
        yield interrupt  # Python delivers signals to the main thread only
        return

    def handle(number: int, frame: FrameType | None) -> None:
        if not interrupt.requested:
            interrupt.requested, interrupt.at = True, time.monotonic()
        elif time.monotonic() - interrupt.at > ECHO_SECONDS:
            raise KeyboardInterrupt

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield interrupt
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


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
) -> TrainingState:
    """Train `module` in place until the configured end; afterwards it holds the final (or best) weights.

    Only rank 0 validates, and only rank 0 should have a `folder`, `on_begin` and `on_event`.
    """
    optimizer = Adam(module, config.rate(0, 1), weight_decay=config.weight_decay, clip=config.clip or 0.0)
    state = TrainingState()
    if resume:
        state = restore(ranks.first(lambda: read_checkpoint(_needed(folder), identity)), module, optimizer)
    step = make_step(objective, module, optimizer, ranks)
    if on_begin is not None:
        on_begin()
    metric = config.selection()
    epochs, on_gpu = objective.epochs, next(module.parameters()).is_cuda
    total = config.steps or (config.epochs or 1) * epochs.steps
    poll_steps = GPU_POLL_STEPS if on_gpu and ranks.count > 1 else 1
    reporter = Reporter(state, step, epochs, total, REPORT_SECONDS if on_gpu else 0.0, folder, on_event, metric)

    def save() -> None:
        reporter.fetch_loss()
        state.seconds = reporter.seconds()
        if folder is not None:
            save_checkpoint(folder, module, optimizer, state, identity)

    with matmul_precision("high" if config.tf32 else "highest"), postponed() as interrupt:
        module.train()
        while state.step < total and not state.stopped:
            optimizer.param_groups[0]["lr"] = config.rate(state.step, total)
            step.run(state.step)
            state.step += 1
            reporter.after_step()
            interrupted = state.step % poll_steps == 0 and ranks.any(interrupt.requested)
            if state.step % epochs.steps == 0 or state.step == total:
                loss, score = reporter.epoch_loss(), None
                if validate is not None:
                    score = _validated(validate, module, ranks)
                    _select(config, state, module, metric, score, reporter.epoch)
                reporter.log_epoch(loss, score)
                save()
                reporter.send("epoch", loss, score, reporter.hint(score))
            elif interrupted or reporter.seconds() - state.seconds > CHECKPOINT_SECONDS:
                save()
            if interrupted and state.step < total:
                raise Interrupted
    module.eval()
    optimizer.zero_grad(set_to_none=True)  # frees the last gradients, which are as large as the weights
    if state.best:
        module.load_state_dict(state.best)
    return state


def _validated(validate: Callable[[], float], module: nn.Module, ranks: Ranks) -> float:
    """The validation score that rank 0 computes, on every rank."""
    module.eval()
    score = float(ranks.first(lambda: repr(float(validate())).encode()))
    module.train()
    return score


def _select(config: Config, state: TrainingState, module: nn.Module, metric: Metric, score: float, epoch: int) -> None:
    """Remember the best epoch, and its weights if they are to be kept; stop if the last epochs were not better."""
    state.last_score = score
    if metric.better(score, state.best_score):
        state.best_score, state.best_epoch = score, epoch
        if config.keeps_best:
            state.best = {name: value.detach().clone() for name, value in module.state_dict().items()}
    elif config.patience:
        state.stopped = epoch - state.best_epoch >= config.patience


def _needed(folder: Path | None) -> Path:
    if folder is None:
        raise ConfigError("to resume, say which run: give its folder as out")
    return folder

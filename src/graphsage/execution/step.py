"""One training step: gather, loss, gradient, Adam. Eager here; `capture` replays it as one CUDA graph."""

import os
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from graphsage.execution.adam import Adam
from graphsage.execution.ranks import SINGLE_PROCESS, GradientBucket, Ranks

CHOSEN_AT_ONCE = 16  # steps whose examples are chosen together: arithmetic on a few numbers costs as much as on many


Examples = tuple[Tensor, ...]


class StepObjective(Protocol):
    """What a step minimizes, in three parts; `graphsage.training.objectives` has those of the paper."""

    @property
    def fixed_shapes(self) -> bool: ...

    def steps_at_once(self, step: int, limit: int) -> int: ...

    def choose_examples(self, step: int, count: int = 1) -> Examples: ...

    def gather(self, examples: Examples, out: Tensor | None = None) -> Any: ...

    def loss(self, gathered: Any) -> Tensor: ...

    def next_step(self) -> None: ...

    def rows_of(self, gathered: Any) -> Tensor | None: ...


class Step(Protocol):
    def run(self, step: int) -> None:
        """Run step number `step` and add its loss to a running sum."""

    def take_loss(self) -> Tensor:
        """The sum of the losses since the last call."""


class EagerStep:
    def __init__(
        self, objective: StepObjective, module: nn.Module, optimizer: Adam, ranks: Ranks = SINGLE_PROCESS
    ) -> None:
        self.objective, self.module, self.optimizer, self.ranks = objective, module, optimizer, ranks
        self.total = torch.zeros((), dtype=torch.float64, device=next(module.parameters()).device)
        self.bucket = GradientBucket(module) if ranks.count > 1 else None
        self._examples: Examples = ()
        self._first = self._count = 0
        self._buffer: Tensor | None = None

    def run(self, step: int) -> None:
        # `next_step` frees the pooled memory of the last step, which holds weight gradients too: they must have been
        # applied (`optimizer.step` below) and dropped (`zero_grad`) before.
        self.optimizer.zero_grad(set_to_none=True)
        self.objective.next_step()
        gathered = self.objective.gather(self._examples_of(step), self._buffer)
        loss = self.objective.loss(gathered)
        torch.autograd.backward(loss)
        if self.bucket is not None:
            self.bucket.collect(loss)
            self.ranks.add(self.bucket.buffer)
            loss = self.bucket.hand_back()
        self.optimizer.step()
        self.total += loss.detach()
        self._buffer = gpu_rows(self.objective, gathered)

    def take_loss(self) -> Tensor:
        total, self.total = self.total, torch.zeros_like(self.total)
        return total

    def _examples_of(self, step: int) -> Examples:
        if not self._first <= step < self._first + self._count:
            self._first, self._count = step, self.objective.steps_at_once(step, CHOSEN_AT_ONCE)
            self._examples = self.objective.choose_examples(step, self._count)
        return tuple(tensor[step - self._first] for tensor in self._examples)


def gpu_rows(objective: StepObjective, gathered: Any) -> Tensor | None:
    """The gathered rows for the next step to overwrite, if they are on a GPU. On a CPU they are in `Buffers`."""
    rows = objective.rows_of(gathered)
    return rows if rows is not None and rows.is_cuda else None


def make_step(objective: StepObjective, module: nn.Module, optimizer: Adam, ranks: Ranks = SINGLE_PROCESS) -> Step:
    """A captured step on a GPU with Triton (unless GRAPHSAGE_CAPTURE=0), an eager one elsewhere."""
    on_gpu = optimizer.on_device and optimizer.steps.is_cuda
    if on_gpu and objective.fixed_shapes and os.environ.get("GRAPHSAGE_CAPTURE", "1") != "0":
        from graphsage.execution.capture import CapturedStep

        return CapturedStep(objective, module, optimizer, ranks)
    return EagerStep(objective, module, optimizer, ranks)

"""One training step: read, loss, gradient, Adam. Here as plain torch calls; `capture` replays it as one CUDA graph."""

import os
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from graphsage.training.adam import Adam
from graphsage.training.gradient_bucket import GradientBucket
from graphsage.training.objectives.base import Examples, Objective
from graphsage.training.ranks import SINGLE_PROCESS, Ranks

STAGED = 16  # steps whose examples are drawn together: arithmetic on a few numbers costs as much as on many


class Step(Protocol):
    def run(self, step: int) -> None:
        """Do step number `step` and add its loss to a running sum."""

    def take_loss(self) -> Tensor:
        """The sum of the losses since this was asked last."""


@dataclass
class EagerStep:
    objective: Objective
    module: nn.Module
    optimizer: Adam
    ranks: Ranks = SINGLE_PROCESS
    total: Tensor = field(init=False)
    bucket: GradientBucket | None = field(init=False, default=None)
    _examples: Examples = ()
    _first: int = 0
    _count: int = 0
    _buffer: Tensor | None = None

    def __post_init__(self) -> None:
        self.total = torch.zeros((), dtype=torch.float64, device=next(self.module.parameters()).device)
        if self.ranks.count > 1:
            self.bucket = GradientBucket(self.module)

    def run(self, step: int) -> None:
        gathered = self.objective.gather(self._examples_of(step), self._buffer)
        loss = self.objective.loss(gathered)
        self.optimizer.zero_grad(set_to_none=True)
        torch.autograd.backward(loss)
        if self.bucket is not None:
            self.bucket.collect(loss)
            self.ranks.add(self.bucket.buffer)
            loss = self.bucket.hand_back()
        self.optimizer.step()
        self.total += loss.detach()
        self._buffer = buffer_of(gathered)

    def take_loss(self) -> Tensor:
        total, self.total = self.total, torch.zeros_like(self.total)
        return total

    def _examples_of(self, step: int) -> Examples:
        if not self._first <= step < self._first + self._count:
            self._first, self._count = step, self.objective.run(step, STAGED)
            self._examples = self.objective.choose_examples(step, self._count)
        return tuple(tensor[step - self._first] for tensor in self._examples)


def buffer_of(gathered: Any) -> Tensor | None:
    """The rows that a reading holds, to be overwritten by the next one; none where it holds several. On a CPU they lie
    in scratch memory, which looks after itself."""
    reading = getattr(gathered, "reading", None)
    return reading.x if reading is not None and reading.x.is_cuda else None


def make_step(objective: Objective, module: nn.Module, optimizer: Adam, ranks: Ranks = SINGLE_PROCESS) -> Step:
    """Captured where a GPU has Triton (GRAPHSAGE_CAPTURE=0 prevents it), call by call everywhere else."""
    if optimizer.on_device and optimizer.steps.is_cuda and os.environ.get("GRAPHSAGE_CAPTURE", "1") != "0":
        from graphsage.training.capture import CapturedStep

        return CapturedStep(objective, module, optimizer, ranks)
    return EagerStep(objective, module, optimizer, ranks)

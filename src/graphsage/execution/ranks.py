"""The ranks that share a training step, each with its part of every batch; one process has a single rank.

Every rank holds the same weights and makes the same updates, but computes other targets of a step. `Ranks` is the
communication that this needs; `graphsage.cluster` implements it over a network. `GradientBucket` holds all gradients of
a step, so that one all-reduce sums them.
"""

from collections.abc import Callable
from typing import Protocol

import torch
from torch import Tensor, nn


class Ranks(Protocol):
    """Rank `rank` of `count`; rank 0 also validates, reports and writes."""

    rank: int
    count: int

    def add(self, tensor: Tensor) -> None:
        """Replace `tensor` by its sum over all ranks."""

    def any(self, flag: bool) -> bool:
        """Whether `flag` is set on any rank; a barrier for all of them."""

    def first(self, call: Callable[[], bytes]) -> bytes:
        """The result of `call` on rank 0; if it raises a GraphSageError there, every rank raises it."""


class SingleProcess:
    """Training without other ranks."""

    rank = 0
    count = 1

    def add(self, tensor: Tensor) -> None:
        pass

    def any(self, flag: bool) -> bool:
        return flag

    def first(self, call: Callable[[], bytes]) -> bytes:
        return call()


SINGLE_PROCESS = SingleProcess()


class GradientBucket:
    """Call `collect` with this rank's loss, sum `buffer` over the ranks, then call `hand_back`."""

    def __init__(self, module: nn.Module) -> None:
        self.parameters = list(module.parameters())
        sizes = [parameter.numel() for parameter in self.parameters]
        self.buffer = torch.zeros(sum(sizes) + 1, device=self.parameters[0].device)
        *flat, self.loss = torch.split(self.buffer, [*sizes, 1])
        self.views = [part.view_as(parameter) for part, parameter in zip(flat, self.parameters, strict=True)]

    @torch.no_grad()
    def collect(self, loss: Tensor) -> None:
        """Copy this rank's gradients and loss into the buffer; a parameter without a gradient counts zero."""
        self.buffer.zero_()
        given = [(view, p.grad) for view, p in zip(self.views, self.parameters, strict=True) if p.grad is not None]
        torch._foreach_copy_([view for view, _ in given], [grad for _, grad in given])
        self.loss.copy_(loss.detach())

    def hand_back(self) -> Tensor:
        """Set the parameters' gradients to the sums, and return the sum of the losses.

        Every parameter gets one, also if only another rank had a gradient for it.
        """
        for view, parameter in zip(self.views, self.parameters, strict=True):
            parameter.grad = view
        return self.loss[0]

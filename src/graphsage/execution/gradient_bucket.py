"""The gradients of one step and its loss in one buffer, so that one all-reduce sums all of them over the ranks."""

import torch
from torch import Tensor, nn


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

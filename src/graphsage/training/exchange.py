"""The gradients of one step and its loss, side by side in one buffer: one sum over the ranks does for all of them."""

import torch
from torch import Tensor, nn


class Exchange:
    """`collect` what this rank's part of the batch gave, add the `buffer` over all ranks, `hand_back` the sums."""

    def __init__(self, module: nn.Module) -> None:
        self.parameters = list(module.parameters())
        sizes = [parameter.numel() for parameter in self.parameters]
        self.buffer = torch.zeros(sum(sizes) + 1, device=self.parameters[0].device)
        *flat, self.loss = torch.split(self.buffer, [*sizes, 1])
        self.views = [part.view_as(parameter) for part, parameter in zip(flat, self.parameters, strict=True)]

    @torch.no_grad()
    def collect(self, loss: Tensor) -> None:
        given = [(view, p.grad) for view, p in zip(self.views, self.parameters, strict=True) if p.grad is not None]
        torch._foreach_copy_([view for view, _ in given], [grad for _, grad in given])
        self.loss.copy_(loss.detach())

    def hand_back(self) -> Tensor:
        """Make the sums the gradients, and return that of the losses."""
        for view, parameter in zip(self.views, self.parameters, strict=True):
            if parameter.grad is not None:
                parameter.grad = view
        return self.loss[0]

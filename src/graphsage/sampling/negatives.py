"""P_n of Equation 1: negatives drawn in proportion to degree^0.75."""

from dataclasses import dataclass

import torch
from torch import Tensor

from graphsage.errors import DataError, setting
from graphsage.kernels.random import uniform

SMOOTHING = 0.75  # Appendix C: context distribution smoothing


@dataclass(frozen=True)
class Negatives:
    """Draws nodes by inverting the cumulative weights (torch.multinomial stops at 2^24 nodes)."""

    cumulative: Tensor

    @classmethod
    def of_degrees(cls, degrees: Tensor, smoothing: float = SMOOTHING) -> "Negatives":
        """`degrees` (N,) before the cap; a node of degree 0 is never drawn."""
        weights = torch.where(degrees > 0, degrees.double() ** smoothing, 0.0)
        cumulative = weights.cumsum(0)
        if not float(cumulative[-1]):
            raise DataError(
                f"no training node has an edge, so there are no negatives to draw; use {setting('task', 'supervised')}"
            )
        return cls(cumulative)

    def draw(self, bits: Tensor) -> Tensor:
        """One node for each 64-bit draw, same shape."""
        total = self.cumulative[-1]
        nodes = torch.searchsorted(self.cumulative, uniform(bits) * total, right=True)
        return nodes.clamp_max(len(self.cumulative) - 1)

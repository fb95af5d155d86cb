"""Pooling aggregator (Equation 3): an MLP on every neighbor, then the elementwise maximum (or mean)."""

from itertools import pairwise

import torch
from torch import Tensor, nn

from graphsage.kernels.gather import gather_mean, gather_relu_max
from graphsage.kernels.neighborhood import Neighborhood
from graphsage.kernels.pool import frozen_relu_max
from graphsage.kernels.product import frozen_linear
from graphsage.model.aggregators.base import Aggregator

POOL_DIM = 512  # Appendix C: 512 in the small model, 1024 in the big one


class PoolAggregator(Aggregator):
    """max over ReLU(W_pool h_u + b); `depth` hidden layers, the paper uses one."""

    acts_on_rows = True
    padded = True
    partial = "max"

    def __init__(self, in_dim: int, hidden_dim: int | None = None, depth: int = 1) -> None:
        super().__init__(in_dim)
        self.out_dim = hidden_dim or POOL_DIM
        widths = [in_dim, *[self.out_dim] * depth]
        self.mlp = nn.Sequential()
        for a, b in pairwise(widths):
            self.mlp.append(nn.Linear(a, b))
            self.mlp.append(nn.ReLU())

    def forward(self, h: Tensor, neighborhood: Neighborhood, rows: Tensor) -> Tensor:
        if self._frozen(h, neighborhood):
            return frozen_relu_max(h, self.last.weight, self.last.bias, neighborhood.index, neighborhood.present)
        return self.reduce(self.on_rows(h), neighborhood, rows)  # the M rows once; gathered ones would repeat

    def _frozen(self, h: Tensor, neighborhood: Neighborhood) -> bool:
        """Whether neither the rows nor what is done to them before the last layer learns, on a CPU."""
        drawn = neighborhood.start is None and neighborhood.offsets is None
        learns = h.requires_grad or bool(self.hidden) or not torch.is_grad_enabled()
        return drawn and not learns and h.device.type == "cpu" and h.dtype == self.last.weight.dtype

    def on_rows(self, h: Tensor) -> Tensor:
        """All but the last bias and ReLU, which commute with the maximum and are cheaper after it."""
        for linear in self.hidden:
            h = torch.relu(_product(h, linear.weight) + linear.bias)
        return _product(h, self.last.weight)

    def reduce(self, table: Tensor, neighborhood: Neighborhood, rows: Tensor) -> Tensor:
        return gather_relu_max(table, neighborhood, self.last.bias)

    def from_partial(self, combined: Tensor, counts: Tensor, own: Tensor | None) -> Tensor:
        return torch.relu(combined + self.last.bias) * (counts > 0)[:, None]

    @property
    def hidden(self) -> list[nn.Linear]:
        return [layer for layer in self.mlp if isinstance(layer, nn.Linear)][:-1]

    @property
    def last(self) -> nn.Linear:
        layer = self.mlp[-2]
        assert isinstance(layer, nn.Linear)
        return layer


class MeanPoolAggregator(PoolAggregator):
    """The variant the paper found no different: mean in place of max."""

    partial = "sum"

    def _frozen(self, h: Tensor, neighborhood: Neighborhood) -> bool:
        return False

    def on_rows(self, h: Tensor) -> Tensor:
        return torch.relu(super().on_rows(h) + self.last.bias)

    def reduce(self, table: Tensor, neighborhood: Neighborhood, rows: Tensor) -> Tensor:
        return gather_mean(table, neighborhood)

    def from_partial(self, combined: Tensor, counts: Tensor, own: Tensor | None) -> Tensor:
        return combined / counts.clamp(min=1)[:, None]


def _product(h: Tensor, weight: Tensor) -> Tensor:
    """h W^T; rows of the input may be padded with zeros, and have no gradient."""
    plain = h.shape[1] == weight.shape[1] and h.dtype == weight.dtype
    return h @ weight.t() if plain else frozen_linear(h, weight, h.dtype)

"""Pooling aggregator (Equation 3): an MLP on every neighbor, then the elementwise maximum (or mean)."""

from itertools import pairwise

from torch import Tensor, nn

from graphsage.kernels.gather import gather_max, gather_mean
from graphsage.kernels.neighborhood import Neighborhood
from graphsage.model.aggregators.base import Aggregator

POOL_DIM = 512  # Appendix C: 512 in the small model, 1024 in the big one


class PoolAggregator(Aggregator):
    """max over ReLU(W_pool h_u + b); `depth` hidden layers, the paper uses one."""

    def __init__(self, in_dim: int, hidden_dim: int | None = None, depth: int = 1) -> None:
        super().__init__(in_dim)
        self.out_dim = hidden_dim or POOL_DIM
        widths = [in_dim, *[self.out_dim] * depth]
        self.mlp = nn.Sequential()
        for a, b in pairwise(widths):
            self.mlp.append(nn.Linear(a, b))
            self.mlp.append(nn.ReLU())

    def forward(self, h: Tensor, neighborhood: Neighborhood, rows: Tensor) -> Tensor:
        return self.pool(self.mlp(h), neighborhood)  # the M rows once; gathered ones would repeat

    def pool(self, h: Tensor, neighborhood: Neighborhood) -> Tensor:
        return gather_max(h, neighborhood)


class MeanPoolAggregator(PoolAggregator):
    """The variant the paper found no different: mean in place of max."""

    def pool(self, h: Tensor, neighborhood: Neighborhood) -> Tensor:
        return gather_mean(h, neighborhood)

"""Pooling aggregator (Equation 3): a perceptron on every neighbor, then the elementwise maximum (or mean)."""

from itertools import pairwise

from torch import Tensor, nn

from graphsage.kernels.gather import gather_max, gather_mean
from graphsage.kernels.neighborhood import Neighborhood
from graphsage.model.aggregators.base import Aggregator

POOL_DIM = 512  # Appendix C: 512 in the small model, 1024 in the big one


class PoolAggregator(Aggregator):
    """`depth` hidden layers; the paper uses one."""

    reduction = "max"

    def __init__(self, in_dim: int, hidden_dim: int | None = None, depth: int = 1) -> None:
        super().__init__(in_dim)
        self.out_dim = hidden_dim or POOL_DIM
        self.mlp = nn.Sequential()
        for width, next_width in pairwise([in_dim, *[self.out_dim] * depth]):
            self.mlp.append(nn.Linear(width, next_width))
            self.mlp.append(nn.ReLU())

    def reset_parameters(self) -> None:
        for module in self.mlp:
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)

    def message(self, h: Tensor) -> Tensor:
        result: Tensor = self.mlp(h)  # σ(W_pool h_u + b)
        return result

    def forward(self, h: Tensor, hood: Neighborhood) -> Tensor:
        return gather_max(self.message(h), hood)  # max({σ(W_pool h_u + b), u in N(v)})


class MeanPoolAggregator(PoolAggregator):
    """The variant that the paper found no different: mean instead of max."""

    reduction = "mean"
    reads_weights = True

    def forward(self, h: Tensor, hood: Neighborhood) -> Tensor:
        return gather_mean(self.message(h), hood)

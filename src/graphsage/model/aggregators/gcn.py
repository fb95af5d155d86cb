"""Convolutional aggregator (Equation 2): the mean over the node itself and its neighbors, without concatenation."""

from torch import Tensor

from graphsage.kernels.gather import gather_sum
from graphsage.kernels.neighborhood import Neighborhood
from graphsage.model.aggregators.base import Aggregator


class GCNAggregator(Aggregator):
    includes_self = True
    linear = True
    padded = True

    def forward(self, h: Tensor, neighborhood: Neighborhood, rows: Tensor) -> Tensor:
        total = gather_sum(h, neighborhood) + h[rows]
        return total / (neighborhood.counts + 1)[:, None]

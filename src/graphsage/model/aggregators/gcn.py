"""Convolutional aggregator (Equation 2): the mean over the node itself and its neighbors, without concatenation."""

from torch import Tensor

from graphsage.kernels.gather import gather_sum
from graphsage.kernels.neighborhood import Neighborhood
from graphsage.model.aggregators.base import Aggregator


class GCNAggregator(Aggregator):
    includes_self = True
    linear = True
    padded = True
    partial = "sum"

    def forward(self, h: Tensor, neighborhood: Neighborhood, rows: Tensor) -> Tensor:
        total = gather_sum(h, neighborhood) + h[rows]
        return total / (neighborhood.counts + 1)[:, None]

    def from_partial(self, combined: Tensor, counts: Tensor, own: Tensor | None) -> Tensor:
        assert own is not None
        return (combined + own) / (counts + 1)[:, None]

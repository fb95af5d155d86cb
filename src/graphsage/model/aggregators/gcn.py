"""Convolutional aggregator (Equation 2): the mean over the node itself and its neighbors, without concatenation."""

from torch import Tensor

from graphsage.kernels.gather import gather_sum
from graphsage.kernels.neighborhood import Neighborhood
from graphsage.model.aggregators.base import Aggregator


class GCNAggregator(Aggregator):
    """The union counts a node once: neighbor lists must not name the node itself (`SamplingConfig.self_loops`)."""

    reduction = "mean"
    includes_self = True

    def forward(self, h: Tensor, hood: Neighborhood) -> Tensor:
        return (gather_sum(h, hood) + h[hood.rows]) / (hood.counts + 1)[:, None]  # MEAN({h_v} ∪ {h_u, u in N(v)})

"""Mean aggregator (section 3.3): the elementwise mean of the neighbors' vectors."""

from torch import Tensor

from graphsage.kernels.gather import gather_mean
from graphsage.kernels.neighborhood import Neighborhood
from graphsage.model.aggregators.base import Aggregator


class MeanAggregator(Aggregator):
    reduction = "mean"
    reads_weights = True

    def forward(self, h: Tensor, hood: Neighborhood) -> Tensor:
        return gather_mean(h, hood)  # MEAN({h_u, u in N(v)})

"""Mean aggregator (section 3.3): the elementwise mean of the neighbors' vectors."""

from torch import Tensor

from graphsage.kernels.gather import gather_mean
from graphsage.kernels.neighborhood import Neighborhood
from graphsage.model.aggregators.base import Aggregator


class MeanAggregator(Aggregator):
    linear = True
    padded = True
    partial = "sum"

    def forward(self, h: Tensor, neighborhood: Neighborhood, rows: Tensor) -> Tensor:
        return gather_mean(h, neighborhood)

    def from_partial(self, combined: Tensor, counts: Tensor, own: Tensor | None) -> Tensor:
        return combined / counts.clamp(min=1)[:, None]

"""LSTM aggregator (section 3.3): an LSTM over a random permutation of the neighbors."""

from torch import Tensor, nn

from graphsage.kernels.neighborhood import Neighborhood
from graphsage.kernels.sequences import last_states, permuted
from graphsage.model.aggregators.base import Aggregator

LSTM_DIM = 128  # Appendix C: 128 in the small model, 256 in the big one


class LSTMAggregator(Aggregator):
    reduction = "sequence"

    def __init__(self, in_dim: int, hidden_dim: int | None = None, depth: int = 1) -> None:
        super().__init__(in_dim)
        self.out_dim = hidden_dim or LSTM_DIM
        self.lstm = nn.LSTM(in_dim, self.out_dim, num_layers=depth, batch_first=True)

    def forward(self, h: Tensor, hood: Neighborhood) -> Tensor:
        return last_states(self.lstm, h, permuted(hood))  # the order of the neighbors is random

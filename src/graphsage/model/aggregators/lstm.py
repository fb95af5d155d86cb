"""LSTM aggregator (section 3.3): an LSTM over a random permutation of the neighbors, its last state kept."""

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence

from graphsage.kernels.backend import on_triton
from graphsage.kernels.lstm import recur
from graphsage.kernels.lstm_rows import lstm_over_rows
from graphsage.kernels.neighborhood import Neighborhood
from graphsage.kernels.product import frozen_linear
from graphsage.kernels.random import derive
from graphsage.model.aggregators.base import Aggregator

LSTM_DIM = 128  # Appendix C: 128 in the small model, 256 in the big one
_ORDER = 1 << 20  # counters of the permutation's draws, away from those of the sampler


class LSTMAggregator(Aggregator):
    padded = True
    cells = 1 << 18
    """Neighbors, padded ones included, that run at once over ragged lists: it bounds memory."""

    def __init__(self, in_dim: int, hidden_dim: int | None = None, depth: int = 1) -> None:
        super().__init__(in_dim)
        self.out_dim = hidden_dim or LSTM_DIM
        self.lstm = nn.LSTM(in_dim, self.out_dim, num_layers=depth, batch_first=True)

    def forward(self, h: Tensor, neighborhood: Neighborhood, rows: Tensor) -> Tensor:
        if neighborhood.offsets is not None:
            return self._ragged(h[:, : self.lstm.input_size], neighborhood)
        order = permutations(neighborhood.keys, neighborhood.size)
        if neighborhood.start is not None and self.lstm.num_layers == 1 and on_triton(h):
            return self._consecutive(h, order, neighborhood)
        h, index = h[:, : self.lstm.input_size], neighborhood.index
        if self._on_rows(h):
            weight, recurrent, *biases = (parameter for parameter in self.lstm.parameters())
            last = lstm_over_rows(h, weight, recurrent, biases[0] + biases[1], index.gather(1, order))
            return last * neighborhood.present[:, None]
        sequence = h[index.gather(1, order)]  # (R, S, D)
        _, (state, _) = self.lstm(sequence)
        result: Tensor = state[-1] * neighborhood.present[:, None]
        return result

    def _on_rows(self, h: Tensor) -> bool:
        """Whether each row is projected once: in training on a CPU."""
        learns = torch.is_grad_enabled() and h.device.type == "cpu" and h.dtype == self.lstm.weight_ih_l0.dtype
        return learns and self.lstm.num_layers == 1

    def _consecutive(self, h: Tensor, order: Tensor, neighborhood: Neighborhood) -> Tensor:
        """Each row's contribution to the gates is one large product; only the hidden state goes step by step."""
        assert neighborhood.start is not None
        weight, recurrent, *biases = (parameter for parameter in self.lstm.parameters())
        plain = h.shape[1] == weight.shape[1] and h.dtype == weight.dtype
        gates = h @ weight.t() if plain else frozen_linear(h, weight)
        last = recur(gates, recurrent, biases[0] + biases[1], order, neighborhood.start)
        return last * neighborhood.present[:, None]

    def _ragged(self, h: Tensor, neighborhood: Neighborhood) -> Tensor:
        """Rows of similar length run together, so that little is padded."""
        assert neighborhood.offsets is not None
        counts = neighborhood.counts
        result = h.new_zeros(neighborhood.num_rows, self.out_dim)
        order = torch.argsort(counts, stable=True)
        order = order[counts[order] > 0]
        for group in _groups(order, counts, self.cells):
            lengths = counts[group]
            width = int(lengths.max())
            slots = torch.arange(width, device=h.device)
            inside = slots[None] < lengths[:, None]
            draws = derive(neighborhood.keys[group, None], slots[None] + _ORDER)
            shuffled = torch.where(inside, draws >> 1, torch.iinfo(torch.int64).max).argsort(dim=1, stable=True)
            places = neighborhood.offsets[group, None] + torch.where(inside, shuffled, 0)
            sequence = h[neighborhood.index[places]]
            packed = pack_padded_sequence(sequence, lengths.cpu(), batch_first=True, enforce_sorted=False)
            _, (last, _) = self.lstm(packed)
            result = result.index_copy(0, group, last[-1])
        return result


def permutations(keys: Tensor, size: int) -> Tensor:
    """A uniformly random permutation of 0..size-1 for each key: (R,) -> (R, size)."""
    draws = derive(keys[:, None], torch.arange(size, device=keys.device)[None] + _ORDER)
    return (draws >> 1).argsort(dim=1, stable=True)


def _groups(order: Tensor, counts: Tensor, cells: int) -> list[Tensor]:
    """Cut rows sorted by count into runs whose padded size stays below `cells`."""
    groups, start = [], 0
    lengths = counts[order].tolist()
    for stop in range(1, len(lengths) + 1):
        if stop == len(lengths) or (stop + 1 - start) * lengths[stop] > cells:
            groups.append(order[start:stop])
            start = stop
    return groups

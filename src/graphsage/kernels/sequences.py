"""Neighborhoods as sequences: neighbors in a random order, and an LSTM's last state over them."""

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence

from graphsage.kernels.neighborhood import Dense, Neighborhood, Ragged
from graphsage.kernels.random import derive

CELLS = 1 << 18  # neighbors, padding included, that an LSTM reads at once over ragged neighborhoods; bounds memory
_ORDER = 1 << 20  # first counter of the permutation's draws; those of the sampler are smaller


def permutations(keys: Tensor, size: int) -> Tensor:
    """A uniformly random permutation of 0..size-1 for each key: (R,) -> (R, size)."""
    return _draws(keys[:, None], torch.arange(size, device=keys.device)[None]).argsort(dim=1, stable=True)


def permuted(hood: Neighborhood) -> Dense | Ragged:
    """The same neighborhoods, each row's neighbors in the random order that its key gives."""
    if not isinstance(hood, Ragged):
        index = hood.index.gather(1, permutations(hood.keys, hood.size))
        return Dense(index, hood.present, hood.keys, hood.rows)
    counts = hood.counts.long()
    row = torch.repeat_interleave(torch.arange(hood.num_rows, device=counts.device), counts)
    slot = torch.arange(len(row), device=counts.device) - hood.offsets[:-1].long()[row] + hood.offsets[0]
    by_draw = _draws(hood.keys[row], slot).argsort(stable=True)
    order = by_draw[row[by_draw].argsort(stable=True)]
    first = int(hood.offsets[0]) if len(row) else 0
    return Ragged(hood.index[first:][order], hood.offsets - first, hood.keys, hood.rows)


def last_states(lstm: nn.LSTM, h: Tensor, hood: Dense | Ragged, cells: int = CELLS) -> Tensor:
    """The last hidden state of `lstm` over each row's neighbors in h (M, D): (R, H), zero for a row without any."""
    if isinstance(hood, Dense):
        _, (state, _) = lstm(h[hood.index])  # (R, S, D) -> (layers, R, H)
        last: Tensor = state[-1] * hood.present[:, None]
        return last
    counts = hood.counts.long()
    result = h.new_zeros(hood.num_rows, lstm.hidden_size)
    order = torch.argsort(counts, stable=True)  # rows of similar length run together, which needs little padding
    for group in groups(order[counts[order] > 0], counts, cells):
        lengths = counts[group]
        slots = torch.arange(int(lengths.max()), device=h.device)
        places = hood.offsets[group, None] + torch.where(slots[None] < lengths[:, None], slots[None], 0)
        sequence = h[hood.index[places]]
        packed = pack_padded_sequence(sequence, lengths.cpu(), batch_first=True, enforce_sorted=False)
        _, (state, _) = lstm(packed)
        result = result.index_copy(0, group, state[-1])
    return result


def groups(order: Tensor, counts: Tensor, cells: int) -> list[Tensor]:
    """Split rows sorted by count into groups of at most `cells` neighbors, padding included, or of one row."""
    found, start = [], 0
    lengths = counts[order].tolist()
    for stop in range(1, len(lengths) + 1):
        if stop == len(lengths) or (stop + 1 - start) * lengths[stop] > cells:
            found.append(order[start:stop])
            start = stop
    return found


def _draws(keys: Tensor, slots: Tensor) -> Tensor:
    return derive(keys, slots + _ORDER) >> 1

"""Random neighborhoods in each of the three forms, for the contracts that every kernel and aggregator keeps."""

from dataclasses import dataclass

import torch
from torch import Tensor

from graphs import normal
from graphsage.kernels.neighborhood import Consecutive, Dense, Neighborhood, Ragged
from graphsage.kernels.random import Stream

FORMS = ("dense", "consecutive", "ragged")
DIM = 3


def dense(index: Tensor, present: Tensor, keys: Tensor, rows: Tensor | None = None) -> Dense:
    """Rows 0, 1, ... of the table unless others are given."""
    return Dense(index, present, keys, torch.arange(len(present)) if rows is None else rows)


def ragged(index: Tensor, offsets: Tensor, keys: Tensor, rows: Tensor | None = None) -> Ragged:
    return Ragged(index, offsets, keys, torch.arange(len(offsets) - 1) if rows is None else rows)


@dataclass(frozen=True)
class Case:
    """A table, the rows that ask, and each one's neighbors as a plain list (empty where there are none)."""

    table: Tensor
    rows: Tensor
    neighborhood: Neighborhood
    lists: list[list[int]]


def case(form: str, seed: int, num_rows: int = 5, size: int = 3, dtype: torch.dtype = torch.float32) -> Case:
    """About a third of the rows have no neighbors."""
    draw = torch.Generator().manual_seed(seed)
    keys = Stream(seed, "case").keys(torch.arange(num_rows))
    present = torch.rand(num_rows, generator=draw) > 0.3
    start = num_rows
    length = start + num_rows * size + 2
    table = normal(seed, length, DIM, dtype=dtype)
    rows = torch.arange(num_rows)
    if form == "consecutive":
        neighborhood = Consecutive(start, size, present, keys)
    elif form == "dense":
        index = torch.randint(length, (num_rows, size), generator=draw)
        neighborhood = dense(index, present, keys)
    else:
        counts = torch.randint(1, 2 * size, (num_rows,), generator=draw) * present
        offsets = torch.cat([torch.zeros(1).long(), counts.cumsum(0)])
        index = torch.randint(length, (int(offsets[-1]),), generator=draw)
        neighborhood = ragged(index, offsets, keys)
        lists = [index[a:b].tolist() for a, b in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)]
        return Case(table, rows, neighborhood, lists)
    lists = [row if has else [] for row, has in zip(neighborhood.index.tolist(), present.tolist(), strict=True)]
    return Case(table, rows, neighborhood, lists)


def as_ragged(case: Case) -> Neighborhood:
    """The same neighbors under the same keys, in ragged form."""
    counts = torch.tensor([len(row) for row in case.lists])
    offsets = torch.cat([torch.zeros(1).long(), counts.cumsum(0)])
    flat = torch.tensor([u for row in case.lists for u in row], dtype=torch.int64)
    return ragged(flat, offsets, case.neighborhood.keys)

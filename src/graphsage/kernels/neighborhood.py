"""Neighborhoods: for each of R nodes, which rows of a table h are its neighbors.

Three types, by how the neighbors are stored. All have `rows` (the nodes' own rows of h), `present` (whether a node has
a neighbor), `counts`, `num_rows`, and `keys` (R,): an int64 per node from which an aggregator derives random draws of
its own (the LSTM's permutation). An edge weight would be one more field, of the shape of `index`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

Rows = Tensor | slice


@dataclass(frozen=True, eq=False)
class Dense:
    """index (R, S): S neighbors of each row, or none if `present` is False. The sampler returns this type."""

    index: Tensor
    present: Tensor
    keys: Tensor
    rows: Rows

    @property
    def num_rows(self) -> int:
        return len(self.present)

    @property
    def size(self) -> int:
        return self.index.shape[1]

    @property
    def counts(self) -> Tensor:
        return self.present * self.size


@dataclass(frozen=True, eq=False)
class Consecutive:
    """As `Dense` with index[r, s] = start + r * S + s: gathering is a reshape. The rows begin at `first_row`."""

    start: int
    size: int
    present: Tensor
    keys: Tensor
    first_row: int = 0

    @property
    def num_rows(self) -> int:
        return len(self.present)

    @property
    def rows(self) -> slice:
        return slice(self.first_row, self.first_row + self.num_rows)

    @property
    def index(self) -> Tensor:
        stop = self.start + self.num_rows * self.size
        return torch.arange(self.start, stop, device=self.keys.device).view(-1, self.size)

    @property
    def counts(self) -> Tensor:
        return self.present * self.size


@dataclass(frozen=True, eq=False)
class Ragged:
    """index (E,), offsets (R + 1,): row r has the neighbors index[offsets[r]:offsets[r + 1]]. Whole neighborhoods."""

    index: Tensor
    offsets: Tensor
    keys: Tensor
    rows: Rows

    @property
    def num_rows(self) -> int:
        return len(self.offsets) - 1

    @property
    def present(self) -> Tensor:
        return self.offsets[1:] > self.offsets[:-1]

    @property
    def counts(self) -> Tensor:
        return self.offsets[1:] - self.offsets[:-1]


Neighborhood = Dense | Consecutive | Ragged
Hoods = tuple[Neighborhood, ...]
"""The neighborhoods of one iteration, concatenated in order. One element if every iteration draws its own neighbors;
one per hop if draws are reused (`redraw=False`)."""


@dataclass(frozen=True, eq=False)
class Minibatch:
    """Algorithm 2, lines 1-7, as plain index tensors.

    neighborhoods[0] indexes nodes of the graph. neighborhoods[k - 1], k > 1, indexes rows of h^{k-1}, whose first rows
    are the targets.
    """

    neighborhoods: tuple[Hoods, ...]

    @property
    def rows(self) -> Tensor:
        """The nodes whose h^1 is needed, targets first."""
        return joined_rows(self.neighborhoods[0])

    def compact(self, num_nodes: int = 1 << 62) -> tuple[Tensor, tuple[Hoods, ...]]:
        """B^0, the distinct nodes whose features the batch needs, and the neighborhoods as rows of these.

        Given the graph's number of nodes, nodes of a small graph are marked instead of sorted, which is faster.
        """
        nodes, first = compact(self.neighborhoods[0], num_nodes)
        return nodes, (first, *self.neighborhoods[1:])


def row_numbers(hood: Neighborhood) -> Tensor:
    """`hood.rows` as a tensor."""
    rows = hood.rows
    return rows if isinstance(rows, Tensor) else torch.arange(rows.start, rows.stop, device=hood.keys.device)


def joined_rows(hoods: Hoods) -> Tensor:
    """The rows of all neighborhoods of one iteration."""
    return concatenated([row_numbers(hood) for hood in hoods])


def joined_keys(hoods: Hoods) -> Tensor:
    return concatenated([hood.keys for hood in hoods])


def concatenated(parts: Sequence[Tensor]) -> Tensor:
    """The rows of all parts, one part after the other. A single part is not copied."""
    return parts[0] if len(parts) == 1 else torch.cat(list(parts))


def distinct(nodes: Tensor, num_nodes: int) -> tuple[Tensor, Tensor]:
    """`torch.unique(nodes, return_inverse=True)`. Marks nodes instead of sorting them if the graph is small."""
    if num_nodes > 16 * len(nodes):
        values, inverse = torch.unique(nodes, return_inverse=True)
        return values, inverse
    position = torch.zeros(num_nodes, dtype=torch.int64, device=nodes.device)
    position[nodes] = 1
    values = torch.nonzero(position).flatten()
    position[values] = torch.arange(len(values), device=nodes.device)
    return values, position[nodes]


def compact(hoods: Hoods, num_nodes: int) -> tuple[Tensor, Hoods]:
    """The distinct nodes that `hoods` reads, ascending, and the neighborhoods as rows of these."""
    wanted = [joined_rows(hoods), *(hood.index.flatten() for hood in hoods)]
    nodes, at = distinct(torch.cat(wanted), num_nodes)
    rows, *indices = torch.split(at, [len(each) for each in wanted])
    return nodes, reindexed(hoods, indices, rows)


def reindexed(hoods: Hoods, indices: Sequence[Tensor], rows: Tensor) -> Hoods:
    """The same neighborhoods over another table: flat `indices`, one for each, and `rows` of all."""
    found, own = [], torch.split(rows, [hood.num_rows for hood in hoods])
    for hood, index, at in zip(hoods, indices, own, strict=True):
        assert not isinstance(hood, Consecutive)
        found.append(replace(hood, index=index.view(hood.index.shape), rows=at))
    return tuple(found)


def with_repeats(hoods: Hoods) -> tuple[Tensor, Hoods]:
    """As `compact` for dense neighborhoods, but keeps repeats, so that shapes depend on the sample sizes alone.

    All rows come first, then all neighbors.
    """
    nodes = torch.cat([joined_rows(hoods), *(hood.index.flatten() for hood in hoods)])
    start, row, found = sum(hood.num_rows for hood in hoods), 0, []
    for hood in hoods:
        assert isinstance(hood, Dense)
        found.append(Consecutive(start, hood.size, hood.present, hood.keys, row))
        start, row = start + hood.index.numel(), row + hood.num_rows
    return nodes, tuple(found)

"""Neighborhoods: for each of R nodes, which rows of a table h are its neighbors.

Three types, by how the neighbors are stored. All have `rows` (the nodes' own rows of h), `present` (whether a node has
a neighbor), `counts`, `num_rows`, and `keys` (R,): an int64 per node from which an aggregator derives random draws of
its own (the LSTM's permutation). `weight`, of the shape of the neighbors, is each neighbor's share of the mean of its
row: the weights of a row add up to 1, or to 0 if it has no neighbor. None: all neighbors count the same. In a graph of
several relations a node has a neighborhood in each: `Related`.
"""

from collections.abc import Callable, Sequence
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
    weight: Tensor | None = None

    @property
    def num_rows(self) -> int:
        return len(self.present)

    @property
    def size(self) -> int:
        return self.index.shape[1]

    @property
    def counts(self) -> Tensor:
        return self.present * self.size

    @property
    def by_relation(self) -> "tuple[Neighborhood, ...]":
        return (self,)


@dataclass(frozen=True, eq=False)
class Consecutive:
    """As `Dense` with index[r, s] = start + r * S + s: gathering is a reshape. The rows begin at `first_row`."""

    start: int
    size: int
    present: Tensor
    keys: Tensor
    first_row: int = 0
    weight: Tensor | None = None

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

    @property
    def by_relation(self) -> "tuple[Neighborhood, ...]":
        return (self,)


@dataclass(frozen=True, eq=False)
class Ragged:
    """index (E,), offsets (R + 1,): row r has the neighbors index[offsets[r]:offsets[r + 1]]. Whole neighborhoods."""

    index: Tensor
    offsets: Tensor
    keys: Tensor
    rows: Rows
    weight: Tensor | None = None

    @property
    def num_rows(self) -> int:
        return len(self.offsets) - 1

    @property
    def present(self) -> Tensor:
        return self.offsets[1:] > self.offsets[:-1]

    @property
    def counts(self) -> Tensor:
        return self.offsets[1:] - self.offsets[:-1]

    @property
    def by_relation(self) -> "tuple[Neighborhood, ...]":
        return (self,)


Neighborhood = Dense | Consecutive | Ragged


@dataclass(frozen=True, eq=False)
class Related:
    """The neighborhoods of the same rows in each of several relations. All have the same `rows`."""

    by_relation: tuple[Neighborhood, ...]

    @property
    def rows(self) -> Rows:
        return self.by_relation[0].rows

    @property
    def num_rows(self) -> int:
        return self.by_relation[0].num_rows

    @property
    def keys(self) -> Tensor:
        return self.by_relation[0].keys


Hood = Neighborhood | Related
Hoods = tuple[Hood, ...]
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


def shares(weight: Tensor, offsets: Tensor) -> Tensor:
    """Weights (E,) of rows one after the other, divided by the sum of their row."""
    totals = torch.segment_reduce(weight, "sum", offsets=offsets)
    return weight / torch.repeat_interleave(totals, offsets[1:] - offsets[:-1])


def related(by_relation: Sequence[Neighborhood]) -> Hood:
    """The neighborhoods of the same rows in one or more relations."""
    return by_relation[0] if len(by_relation) == 1 else Related(tuple(by_relation))


def each_relation(hoods: Hoods) -> list[Neighborhood]:
    """All neighborhoods of one iteration, relation by relation."""
    return [each for hood in hoods for each in hood.by_relation]


def over_relations(hoods: Hoods, aggregate: Callable[[Neighborhood], Tensor]) -> Tensor:
    """What `aggregate` returns for each neighborhood: relations side by side, `hoods` one after the other."""
    return concatenated([side_by_side([aggregate(each) for each in hood.by_relation]) for hood in hoods])


def side_by_side(parts: Sequence[Tensor]) -> Tensor:
    """The columns of all parts. A single part is not copied."""
    return parts[0] if len(parts) == 1 else torch.cat(list(parts), dim=1)


def with_keys(hood: Hood, keys: Tensor) -> Hood:
    """The same neighborhoods under other keys."""
    return related([replace(each, keys=keys) for each in hood.by_relation])


def row_numbers(hood: Hood) -> Tensor:
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
    wanted = [joined_rows(hoods), *(each.index.flatten() for each in each_relation(hoods))]
    nodes, at = distinct(torch.cat(wanted), num_nodes)
    rows, *indices = torch.split(at, [len(each) for each in wanted])
    return nodes, reindexed(hoods, indices, rows)


def reindexed(hoods: Hoods, indices: Sequence[Tensor], rows: Tensor) -> Hoods:
    """The same neighborhoods over another table: flat `indices`, one for each, and `rows` of all."""
    found, own, following = list[Hood](), torch.split(rows, [hood.num_rows for hood in hoods]), iter(indices)
    for hood, at in zip(hoods, own, strict=True):
        parts = list[Neighborhood]()
        for each in hood.by_relation:
            assert not isinstance(each, Consecutive)
            parts.append(replace(each, index=next(following).view(each.index.shape), rows=at))
        found.append(related(parts))
    return tuple(found)


def with_repeats(hoods: Hoods) -> tuple[Tensor, Hoods]:
    """As `compact` for dense neighborhoods, but keeps repeats, so that shapes depend on the sample sizes alone.

    All rows come first, then all neighbors.
    """
    nodes = torch.cat([joined_rows(hoods), *(each.index.flatten() for each in each_relation(hoods))])
    start, row, found = sum(hood.num_rows for hood in hoods), 0, list[Hood]()
    for hood in hoods:
        parts = list[Neighborhood]()
        for each in hood.by_relation:
            assert isinstance(each, Dense)
            parts.append(Consecutive(start, each.size, each.present, each.keys, row, each.weight))
            start += each.index.numel()
        found.append(related(parts))
        row += hood.num_rows
    return nodes, tuple(found)

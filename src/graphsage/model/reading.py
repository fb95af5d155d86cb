"""What a minibatch reads of the input tables, before any weight is applied: it can be made ahead of the step."""

from dataclasses import dataclass

import torch
from torch import Tensor

from graphsage.kernels.distinct import distinct
from graphsage.kernels.neighborhood import Neighborhood


@dataclass(frozen=True, eq=False)
class Reading:
    """The input of iteration k = 1, and the neighborhoods of those above it.

    For an aggregator that averages, `x` (R, 2D) holds each row's own features beside its neighbors' mean (R, D where
    the mean includes the row), and `nodes` the rows. For any other, `x` (M, D) holds the features of `nodes` (M,),
    `first` says which of them are each row's neighbors, and `rows` which ones are the rows (None: the first).
    """

    x: Tensor
    nodes: Tensor
    rows: Tensor | None
    first: Neighborhood | None
    keys: Tensor
    above: tuple[Neighborhood, ...]


def needed(rows: Tensor, neighborhood: Neighborhood, num_nodes: int) -> tuple[Tensor, Tensor | None, Neighborhood]:
    """Which nodes to read for `rows` and their neighbors, and both as places among those nodes.

    On a GPU drawn neighbors are read as they come: shapes stay fixed, so that the step can be captured. Elsewhere
    every node is read and transformed once.
    """
    parts = neighborhood.parts
    if rows.is_cuda and neighborhood.offsets is None:
        nodes = torch.cat([rows, *(part.index.flatten() for part in parts)])
        start, stack = len(rows), []
        for part in parts:
            stack.append(Neighborhood.consecutive(start, part.size, part.present, part.keys))
            start += part.num_rows * part.size
        return nodes, None, Neighborhood.stacked(stack)
    nodes, where = distinct(torch.cat([rows, *(part.index.flatten() for part in parts)]), num_nodes)
    places = torch.split(where, [len(rows), *(part.index.numel() for part in parts)])
    compact = [part.with_index(at.view(part.index.shape)) for part, at in zip(parts, places[1:], strict=True)]
    return nodes, places[0], Neighborhood.stacked(compact)

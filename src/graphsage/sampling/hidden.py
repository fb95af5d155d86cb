"""Hidden edges: a target's whole tree is sampled as if one edge and its reverse did not exist.

A link predictor that sees the edge it is asked about learns to look it up. So each target may have a pair of nodes
(a, b) whose edge its tree must not use, at any depth. The draws are those on a graph without the edge.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from graphsage.graph.graph import Graph
from graphsage.kernels.sample import sample_offsets


@dataclass(frozen=True, eq=False)
class EdgePlaces:
    """Finds edges in a graph's neighbor lists, whatever the order of the lists."""

    num_nodes: int
    codes: Tensor
    """row * num_nodes + neighbor of each stored edge, ascending."""
    place: Tensor
    """The place of each of these within its row's list."""

    @classmethod
    def of(cls, graph: Graph) -> "EdgePlaces":
        rows = graph.edge_rows
        codes, order = torch.sort(rows * graph.num_nodes + graph.indices.long())
        return cls(graph.num_nodes, codes, order - graph.indptr[rows[order]])

    def find(self, rows: Tensor, neighbors: Tensor) -> Tensor:
        """The place of each neighbor in its row's list; -1 where there is no such edge."""
        if not len(self.codes):
            return torch.full_like(rows, -1)
        code = rows * self.num_nodes + neighbors
        at = torch.searchsorted(self.codes, code).clamp_max(len(self.codes) - 1)
        return torch.where(self.codes[at] == code, self.place[at], -1)

    def hidden(self, pairs: Tensor) -> "HiddenEdges":
        """What `sample_minibatch` takes: hide the edge between pairs[i] (B, 2) and its reverse from target i."""
        a, b = pairs.unbind(1)
        return HiddenEdges(pairs, torch.stack([self.find(a, b), self.find(b, a)], dim=1))


@dataclass(frozen=True, eq=False)
class HiddenEdges:
    """pairs (R, 2): the ends (a, b) of the edge that row r must not use. places (R, 2): the place of b in the list of a
    and of a in that of b, or -1."""

    pairs: Tensor
    places: Tensor

    def extended(self, size: int) -> "HiddenEdges":
        """For the rows and, after them, `size` neighbors of each."""
        below = (torch.cat([each, each.repeat_interleave(size, 0)]) for each in (self.pairs, self.places))
        return HiddenEdges(*below)

    def in_lists_of(self, rows: Tensor) -> Tensor:
        """The place to skip in the list of each row; -1: none."""
        at_a, at_b = (rows == self.pairs[:, end] for end in (0, 1))
        return torch.where(at_a, self.places[:, 0], torch.where(at_b, self.places[:, 1], -1))


def redraw_hidden(
    csr: tuple[Tensor, Tensor, Tensor],
    rows: Tensor,
    hidden: HiddenEdges,
    draw: Tensor,
    neighbors: Tensor,
    present: Tensor,
) -> None:
    """Rows with a hidden neighbor draw again, among their other neighbors: `neighbors` (R, S) and `present` (R,) are
    changed in place. `draw` (R,) are the keys of the first draws."""
    skip = hidden.in_lists_of(rows)
    ends = torch.nonzero(skip >= 0).flatten()
    if not len(ends):
        return
    indptr, indices, at = csr
    start = indptr[at[ends]]
    others = indptr[at[ends] + 1] - start - 1
    offsets = sample_offsets(others, neighbors.shape[1], draw[ends])
    offsets += offsets >= skip[ends, None]
    has = others > 0
    found = indices[start[:, None] + torch.where(has[:, None], offsets, 0)].long()
    neighbors[ends] = torch.where(has[:, None], found, rows[ends, None])
    present[ends] = has

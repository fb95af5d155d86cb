"""Random walks and the pairs (u, v) of Equation 1, computed on the fly from a pair's number."""

from dataclasses import dataclass

import torch
from torch import Tensor

from graphsage.graph.graph import Graph
from graphsage.kernels.random import Stream, below, derive, uniform


def random_walks(graph: Graph, starts: Tensor, length: int, keys: Tensor) -> Tensor:
    """Walks of `length` nodes, the start included: (R,) -> (R, length). A step is uniform over the neighbors, or in
    proportion to the weights of the edges. A node without neighbors stays where it is."""
    here = starts.long()
    walk = [here]
    for step in range(1, length):
        start = graph.indptr[here]
        degree = graph.indptr[here + 1] - start
        bits = derive(keys, step)
        if graph.cumulative_shares is None:
            place = start + below(bits, degree.clamp_min(1))
        else:
            place = _by_weight(graph.cumulative_shares, start, degree, bits)
        place = torch.where(degree > 0, place, 0)
        following = graph.indices[place].long() if graph.num_stored_edges else here
        here = torch.where(degree > 0, following, here)
        walk.append(here)
    return torch.stack(walk, dim=1)


def _by_weight(cumulative: Tensor, start: Tensor, degree: Tensor, bits: Tensor) -> Tensor:
    """The place of one neighbor of each row, by inverting the row's part of the running sum."""
    last = (start + degree - 1).clamp_min(0)
    below_row = torch.where(start > 0, cumulative[(start - 1).clamp_min(0)], 0.0)
    drawn = below_row + uniform(bits) * (cumulative[last] - below_row)
    return torch.searchsorted(cumulative, drawn, right=True).clamp(start, last)


@dataclass(frozen=True)
class WalkPairs:
    """All pairs of a node with the nodes on its walks, numbered 0 .. count - 1 and computed when asked for.

    Appendix C: 50 walks of length 5 from each node. A pair joins a walk's start with its position 1 .. length - 1;
    where the walk is back at its start there is no pair, and `valid` says so.
    """

    graph: Graph
    starts: Tensor
    seed: int
    num_walks: int
    walk_length: int

    @property
    def count(self) -> int:
        return len(self.starts) * self.num_walks * (self.walk_length - 1)

    def pairs(self, numbers: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Pair numbers (P,) -> u (P,), v (P,), valid (P,)."""
        positions = self.walk_length - 1
        position = numbers % positions + 1
        walk_number = torch.div(numbers, positions, rounding_mode="floor")
        u = self.starts[torch.div(walk_number, self.num_walks, rounding_mode="floor")]
        keys = derive(Stream(self.seed, "walks").keys(u), walk_number % self.num_walks)
        walks = random_walks(self.graph, u, self.walk_length, keys)
        v = walks.gather(1, position[:, None]).squeeze(1)
        return u, v, u != v


def walk_pairs(graph: Graph, nodes: Tensor, seed: int, num_walks: int = 50, walk_length: int = 5) -> WalkPairs:
    """Pairs that start at those of `nodes` that have a neighbor other than themselves; `graph` is the training graph
    before the cap."""
    degrees, first = graph.degrees[nodes], graph.indptr[nodes].clamp_max(graph.num_stored_edges - 1)
    only_itself = (degrees == 1) & (graph.indices[first] == nodes) if graph.num_stored_edges else degrees == 0
    return WalkPairs(graph, nodes[(degrees > 0) & ~only_itself], seed, num_walks, walk_length)

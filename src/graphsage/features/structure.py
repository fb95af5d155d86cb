"""Features that a node has by its edges alone: its degree, and random projections of its neighbors.

A projection is √d times the mean of ±1 over the d neighbors, and a hash of a neighbor's key draws its sign. Two nodes
with many neighbors in common have similar projections: their scalar product estimates the cosine of the two rows of the
adjacency matrix. Nothing is fitted, so a node that arrives later gets its features from its own edges. Sums of ±1 are
exact, so neither the order of the neighbors nor the device changes a bit.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from graphsage.features.degree import BINS, degree_features
from graphsage.graph.graph import Graph
from graphsage.kernels.random import Stream, derive, mix

PROJECTIONS = 128
"""The default of a graph without features."""
_WORD = 64
_BLOCK_EDGES = 1 << 16


@dataclass(frozen=True)
class Structure:
    """Which of these features a model reads, behind those of the graph."""

    degree: bool = False
    projections: int = 0

    @property
    def width(self) -> int:
        return (1 + BINS) * self.degree + self.projections

    def of_graph(self, graph: Graph) -> list[Tensor]:
        """Tables (N, D) of all nodes of a graph before the degree cap."""
        return self.of_lists(graph.keys[graph.indices.long()] if self.projections else graph.indices, graph.indptr)

    def of_lists(self, neighbor_keys: Tensor, offsets: Tensor) -> list[Tensor]:
        """Tables of R nodes: the keys of node i's neighbors are neighbor_keys[offsets[i]:offsets[i + 1]]."""
        degrees = offsets[1:] - offsets[:-1]
        tables = [degree_features(degrees)] if self.degree else []
        if self.projections:
            tables.append(_projected(neighbor_keys, degrees, self.projections))
        return tables


NO_STRUCTURE = Structure()


def _projected(keys: Tensor, degrees: Tensor, width: int) -> Tensor:
    rows = torch.repeat_interleave(torch.arange(len(degrees), device=keys.device), degrees)
    words = torch.arange(-(-width // _WORD), device=keys.device)
    places = torch.arange(_WORD, device=keys.device)
    sums = torch.zeros(len(degrees), width, device=keys.device)
    purpose = Stream(0, "projections").key
    for start in range(0, len(keys), _BLOCK_EDGES):
        block = slice(start, start + _BLOCK_EDGES)
        bits = derive(mix(keys[block, None].long() + purpose), words[None])[:, :, None] >> places
        signs = ((bits & 1) * 2 - 1).flatten(1)[:, :width]
        sums.index_add_(0, rows[block], signs.float())
    return sums / degrees.clamp_min(1).float().sqrt()[:, None]

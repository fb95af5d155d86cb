"""Orders that keep reads local, to be measured: nodes renumbered, and batches in runs of consecutive rows."""

from dataclasses import dataclass

import torch
from torch import Tensor

from graphsage.graph.graph import Graph
from graphsage.kernels.random import Stream, permute
from graphsage.training.batches import Epochs


def renumbered(graph: Graph, order: Tensor) -> Graph:
    """`graph` (structure, features, labels) with its rows in `order`, a permutation (N,)."""
    n = graph.num_nodes
    place = torch.empty_like(order)
    place[order] = torch.arange(n)
    rows, columns = place[graph.edge_rows], place[graph.indices.long()]
    degrees = graph.degrees[order]
    indptr = torch.cat([degrees.new_zeros(1), degrees.cumsum(0)])
    indices = (rows * n + columns).sort().values % n  # by row, and neighbors ascending within a row
    moved = {name: value[order] for name in ("features", "labels") if (value := getattr(graph, name)) is not None}
    return graph.replace(indptr=indptr, indices=indices.to(graph.indices.dtype), **moved)


@dataclass(frozen=True)
class InRuns(Epochs):
    """Shuffles runs of `together` consecutive examples rather than single ones."""

    together: int = 1

    def examples(self, step: int, device: torch.device, count: int = 1) -> Tensor:
        key = Stream(self.seed, "order", self.epoch_of(step)).key
        positions = self.positions(step, device, count)
        runs = self.num_examples // self.together
        run, place = positions // self.together, positions % self.together
        shuffled = permute(run.clamp_max(max(runs - 1, 0)), max(runs, 1), key) * self.together + place
        return torch.where(run < runs, shuffled, positions)  # what is left of the last run ends every epoch

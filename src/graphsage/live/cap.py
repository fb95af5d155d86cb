"""The degree cap of a generation; live/adjacency.py keeps it true by every change.

The rule is that of graph/cap.py, with priorities keyed by id instead of row number: they do not change when rows are
renumbered.
"""

from dataclasses import dataclass

import torch

from graphsage.graph.cap import CapRule, capped
from graphsage.graph.graph import Graph
from graphsage.live.keys import Rows
from graphsage.sampling.minibatch import SamplingConfig


@dataclass(frozen=True)
class Cap:
    """How a model caps degrees."""

    max_degree: int | None
    kind: str
    seed: int

    @staticmethod
    def of(sampling: SamplingConfig, seed: int) -> "Cap":
        return Cap(sampling.max_degree, sampling.cap, seed)


class BaseCap:
    """The surviving edges of a generation as a CSR, and the smallest priorities of every hub, ascending."""

    def __init__(self, graph: Graph, keys: Rows, cap: Cap) -> None:
        self.rule = CapRule(cap.max_degree, cap.kind, cap.seed, graph.directed)
        shown, best = capped(graph, self.rule, torch.tensor(keys))
        self.indptr, self.indices = shown.indptr.numpy(), shown.indices.numpy()
        self.best: dict[int, Rows] = {hub: found.numpy() for hub, found in best.items()}

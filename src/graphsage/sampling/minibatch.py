"""Algorithm 2, lines 1-7: sample every node that a batch of targets needs, for any depth K."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from graphsage.errors import ConfigError, one_of
from graphsage.graph.cap import CAPS, MAX_DEGREE
from graphsage.graph.graph import Graph
from graphsage.kernels.neighborhood import Minibatch, Neighborhood
from graphsage.kernels.sample import grow, hop

LARGEST_SAMPLE = (1 << 15) - 1  # the slot of pool's winner has 16 bits


@dataclass(frozen=True, kw_only=True, slots=True)
class SamplingConfig:
    """How neighborhoods are drawn."""

    sample_sizes: tuple[int, ...] = (25, 10)
    """S_1..S_K. `sample_sizes[k - 1]` is drawn in iteration k, so a target has `sample_sizes[-1]` direct neighbors."""
    max_degree: int | None = MAX_DEGREE
    """Edges are subsampled so that no node has more neighbors; None keeps all."""
    cap: str = "symmetric"
    """How edges are subsampled: 'symmetric', or 'row' as in the released code."""
    redraw: bool = True
    """Every iteration draws its own neighbors, targets included (the paper). False: as in the released code, a node's
    neighbors drawn for one iteration serve it in all earlier ones."""

    def __post_init__(self) -> None:
        if not self.sample_sizes or min(self.sample_sizes) < 1:
            raise ConfigError(f"sample_sizes must hold one positive number for each layer; got {self.sample_sizes}")
        if max(self.sample_sizes) > LARGEST_SAMPLE:
            raise ConfigError(f"sample_sizes must be at most {LARGEST_SAMPLE}; got {self.sample_sizes}")
        if self.max_degree is not None and self.max_degree < 1:
            raise ConfigError(f"max_degree must be at least 1, or none for no cap; got {self.max_degree}")
        one_of("cap", self.cap, CAPS)


def sample_minibatch(graph: Graph, targets: Tensor, sample_sizes: Sequence[int], keys: Tensor,
                     redraw: bool = True) -> Minibatch:  # fmt: skip
    """Draw N_K .. N_1 for `targets` (B,). `keys` (B,) names each target's draws (see kernels.random).

    A node met below a target draws under a key derived from its path, so every occurrence has its own sample and
    no draw depends on which other targets are in the batch.
    """
    return (_redrawn if redraw else _reused)(graph, targets, sample_sizes, keys)


def _redrawn(graph: Graph, targets: Tensor, sample_sizes: Sequence[int], keys: Tensor) -> Minibatch:
    rows = targets
    above: list[Neighborhood] = []
    for k in range(len(sample_sizes), 1, -1):
        count, size = len(rows), sample_sizes[k - 1]
        rows, keys, present, draw = grow(graph.indptr, graph.indices, rows, keys, k, size)
        above.insert(0, Neighborhood.consecutive(count, size, present, draw))
    index, present, draw = hop(graph.indptr, graph.indices, rows, keys, 1, sample_sizes[0])
    return Minibatch(rows, (Neighborhood.dense(index, present, draw), *above))


def _reused(graph: Graph, targets: Tensor, sample_sizes: Sequence[int], keys: Tensor) -> Minibatch:
    """The released code's tree: hop j is drawn once, S_{K-j+1} from each node of hop j - 1, and serves every layer."""
    depth = len(sample_sizes)
    hops, hop_keys, starts = [targets], keys, [0, len(targets)]
    present, draws = [], []
    for j, size in enumerate(reversed(sample_sizes)):
        rows, grown_keys, has, draw = grow(graph.indptr, graph.indices, hops[j], hop_keys, depth - j, size)
        hops.append(rows[len(hops[j]) :])
        hop_keys = grown_keys[len(hops[j]) :]
        starts.append(starts[-1] + len(hops[-1]))
        present.append(has)
        draws.append(draw)
    neighborhoods = []
    for k in range(1, depth + 1):  # layer k has the rows of hops 0 .. depth - k, whose neighbors are the next hop
        stack = []
        for j in range(depth - k + 1):
            size = sample_sizes[depth - 1 - j]
            if k == 1:
                stack.append(Neighborhood.dense(hops[j + 1].view(-1, size), present[j], draws[j]))
            else:
                stack.append(Neighborhood.consecutive(starts[j + 1], size, present[j], draws[j]))
        neighborhoods.append(Neighborhood.stacked(stack))
    return Minibatch(torch.cat(hops[:depth]), tuple(neighborhoods))

"""Algorithm 2, lines 1-7: sample every node that a batch of targets needs, for any depth K."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from graphsage.errors import ConfigError
from graphsage.graph.cap import CAPS, MAX_DEGREE
from graphsage.graph.graph import Graph
from graphsage.kernels.neighborhood import Minibatch, Neighborhood
from graphsage.kernels.random import derive
from graphsage.kernels.sample import sample_neighbors


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
        if self.max_degree is not None and self.max_degree < 1:
            raise ConfigError(f"max_degree must be at least 1, or none for no cap; got {self.max_degree}")
        if self.cap not in CAPS:
            raise ConfigError(f"cap must be one of {', '.join(CAPS)}; got {self.cap!r}")


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
    for k in range(len(sample_sizes), 0, -1):
        size = sample_sizes[k - 1]
        draw = derive(keys, k)
        index, present = sample_neighbors(graph.indptr, graph.indices, rows, size, draw)
        if k == 1:
            return Minibatch(rows, (Neighborhood.dense(index, present, draw), *above))
        above.insert(0, Neighborhood.consecutive(len(rows), size, present, draw))
        keys = torch.cat([keys, _children(draw, size)])
        rows = torch.cat([rows, index.flatten()])
    raise AssertionError("sample_sizes is not empty")


def _reused(graph: Graph, targets: Tensor, sample_sizes: Sequence[int], keys: Tensor) -> Minibatch:
    """The released code's tree: hop j is drawn once, S_{K-j+1} from each node of hop j - 1, and serves every layer."""
    depth = len(sample_sizes)
    hops, hop_keys, present, draws = [targets], [keys], [], []
    for hop in range(depth):
        size = sample_sizes[depth - 1 - hop]
        draw = derive(hop_keys[hop], depth - hop)
        index, has = sample_neighbors(graph.indptr, graph.indices, hops[hop], size, draw)
        hops.append(index.flatten())
        hop_keys.append(_children(draw, size))
        present.append(has)
        draws.append(draw)
    starts = torch.tensor([0, *(len(h) for h in hops)]).cumsum(0).tolist()
    neighborhoods = []
    for k in range(1, depth + 1):
        inner = depth - k + 1  # layer k has the rows of hops 0 .. inner - 1
        counts = torch.cat([has * sample_sizes[depth - 1 - j] for j, has in enumerate(present[:inner])])
        offsets = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
        drawn = torch.arange(starts[1], starts[inner + 1], device=counts.device)
        index = torch.cat(hops[1 : inner + 1]) if k == 1 else drawn
        kept = torch.cat([
            has.repeat_interleave(sample_sizes[depth - 1 - j]) for j, has in enumerate(present[:inner])
        ])  # fmt: skip
        neighborhoods.append(Neighborhood.ragged(index[kept], offsets, torch.cat(draws[:inner])))
    return Minibatch(torch.cat(hops[:depth]), tuple(neighborhoods))


def _children(draw: Tensor, size: int) -> Tensor:
    slots = torch.arange(size, device=draw.device)
    return derive(draw[:, None], slots + size).flatten()  # `slots` themselves were spent on the offsets

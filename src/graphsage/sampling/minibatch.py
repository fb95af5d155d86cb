"""Algorithm 2, lines 1-7: sample every node that a batch of targets needs, for any depth K."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from graphsage.errors import ConfigError, at_least, one_of, setting, written
from graphsage.graph.cap import CAPS
from graphsage.graph.graph import Graph
from graphsage.kernels.neighborhood import (
    Consecutive,
    Dense,
    Hoods,
    Minibatch,
    Neighborhood,
    Ragged,
    distinct,
    reindexed,
)
from graphsage.kernels.random import Stream, derive
from graphsage.kernels.sample import sample_and_extend, sample_last_hop
from graphsage.sampling.hidden import HiddenEdges, redraw_hidden

LARGEST_SAMPLE = (1 << 15) - 1  # the slot of pool's winner has 16 bits


@dataclass(frozen=True, kw_only=True, slots=True)
class SamplingConfig:
    """How neighborhoods are drawn."""

    sample_sizes: tuple[int, ...] = (25, 10)
    """S_1..S_K. `sample_sizes[k - 1]` is drawn in iteration k, so a target has `sample_sizes[-1]` direct neighbors."""
    max_degree: int | None = None
    """Edges are subsampled so that no node has more neighbors; None keeps all."""
    cap: str = "row"
    """How edges are subsampled: `graph.cap.CapRule`."""
    redraw: bool = True
    """True (the paper): a node draws new neighbors in every iteration. False (the released code): the neighbors drawn
    at a hop are reused by every layer that reads this hop."""
    self_loops: bool = True
    """False: a node is never its own neighbor. Needed for Equation 2, whose union counts the node once."""

    def __post_init__(self) -> None:
        _check_sizes(self.sample_sizes)
        at_least(1, self, "max_degree")
        one_of("cap", self.cap, CAPS)


def _check_sizes(sample_sizes: Sequence[int]) -> None:
    if not sample_sizes or min(sample_sizes) < 1:
        raise ConfigError(
            f"{setting('sample_sizes')} must hold one positive number per layer; got {written(tuple(sample_sizes))}"
        )
    if max(sample_sizes) > LARGEST_SAMPLE:
        raise ConfigError(
            f"{setting('sample_sizes')} must be at most {LARGEST_SAMPLE}; got {written(tuple(sample_sizes))}"
        )


class NeighborLists(Protocol):
    """The neighbors of nodes, in memory, on disk or under an overlay."""

    @property
    def num_nodes(self) -> int: ...

    def csr_of(self, nodes: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """(indptr, indices, at): the neighbors of nodes[i] are row at[i]. `at` is `nodes` if row v is of node v."""

    def neighbors_of(self, nodes: Tensor) -> tuple[Tensor, Tensor]:
        """The neighbors of `nodes` (R,) one after the other, and where each node's begin: (E,), (R + 1,)."""


def sample_minibatch(
    graph: NeighborLists,
    targets: Tensor,
    sample_sizes: Sequence[int],
    keys: Tensor | int,
    redraw: bool = True,
    hidden: HiddenEdges | None = None,
) -> Minibatch:
    """Draw N_K .. N_1 for `targets` (B,).

    `sample_sizes[k - 1]` neighbors are drawn in iteration k. `keys` (B,) names each target's draws (see
    kernels.random); an int is a seed from which keys of the nodes are derived. A node met below a target draws under
    a key derived from its path, so every occurrence has its own sample and no draw depends on the rest of the batch.
    The tree of target i does not use the edge hidden.pairs[i], in either direction.
    """
    if not isinstance(targets, Tensor) or targets.dim() != 1 or targets.is_floating_point():
        raise ConfigError("targets must be a tensor of node numbers, (B,)")
    if isinstance(keys, int):
        keys = Stream(keys, "neighbors").keys(targets)
    if len(keys) != len(targets):
        raise ConfigError(f"keys must name the draws of each of the {len(targets)} targets; got {len(keys)}")
    _check_sizes(sample_sizes)
    if redraw:
        return _redrawn(graph, targets, sample_sizes, keys, hidden)
    if hidden is not None:
        raise ConfigError(f"edges are hidden only with new neighbors in every layer; use {setting('redraw', True)}")
    return _reused(graph, targets, sample_sizes, keys)


def _redrawn(
    graph: NeighborLists, targets: Tensor, sample_sizes: Sequence[int], keys: Tensor, hidden: HiddenEdges | None
) -> Minibatch:
    rows, layers = targets, list[Hoods]()  # line 1: B^K
    for k in range(len(sample_sizes), 0, -1):  # line 2
        size, extend = sample_sizes[k - 1], k > 1  # `Minibatch.compact` forms B^0, where each node occurs once
        below, keys, present, draw = _sampled(graph, rows, keys, k, size, extend)  # lines 3-5: B^k, then N_k(B^k)
        if hidden is not None:
            neighbors = below[len(rows) :].view(-1, size) if extend else below
            redraw_hidden(graph.csr_of(rows), rows, hidden, draw, neighbors, present)
            hidden = hidden.extended(size) if extend else hidden
        hood = Consecutive(len(rows), size, present, draw) if extend else Dense(below, present, draw, rows)
        layers.insert(0, (hood,))
        rows = below
    return Minibatch(tuple(layers))


def _reused(graph: NeighborLists, targets: Tensor, sample_sizes: Sequence[int], keys: Tensor) -> Minibatch:
    """The released code's tree: hop j is drawn once, S_{K-j+1} from each node of hop j - 1, and serves every layer."""
    depth = len(sample_sizes)
    hops, hop_keys, starts = [targets], keys, [0, len(targets)]
    present, draws = [], []
    for j, size in enumerate(reversed(sample_sizes)):
        rows, extended_keys, has, draw = _sampled(graph, hops[j], hop_keys, depth - j, size)
        hops.append(rows[len(hops[j]) :])
        hop_keys = extended_keys[len(hops[j]) :]
        starts.append(starts[-1] + len(hops[-1]))
        present.append(has)
        draws.append(draw)

    def hood(k: int, j: int) -> Neighborhood:
        """Of hop j in layer k: its neighbors are the next hop."""
        size = sample_sizes[depth - 1 - j]
        if k == 1:
            return Dense(hops[j + 1].view(-1, size), present[j], draws[j], hops[j])
        return Consecutive(starts[j + 1], size, present[j], draws[j], starts[j])

    return Minibatch(tuple(tuple(hood(k, j) for j in range(depth - k + 1)) for k in range(1, depth + 1)))


def _sampled(
    graph: NeighborLists, rows: Tensor, keys: Tensor, k: int, size: int, extend: bool = True
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """`rows` (R,), then `size` drawn neighbors of each; the keys of all; which rows have a neighbor; the draws' keys.

    Without `extend` the neighbors alone, (R, size), and no keys of theirs, which only a further hop needs.
    """
    indptr, indices, at = graph.csr_of(rows)
    if extend:
        below, keys, present, draw = sample_and_extend(indptr, indices, at, keys, k, size)
    else:
        below, present, draw = sample_last_hop(indptr, indices, at, keys, k, size)
    if at is not rows:  # a row without neighbors yields itself: as a node number, not as its row in the CSR
        drawn = below[len(rows) :].view(-1, size) if extend else below
        drawn = torch.where(present[:, None], drawn, rows[:, None])
        below = torch.cat([rows, drawn.flatten()]) if extend else drawn
    return below, keys, present, draw


def whole_minibatch(
    graph: NeighborLists,
    targets: Tensor,
    depth: int,
    keys: Callable[[Tensor, int], Tensor],
    most: float = math.inf,
) -> Minibatch:
    """`sample_minibatch` with all neighbors, each node once in an iteration; `targets` are all different.

    `keys(nodes, k)` names what an aggregator draws for nodes in iteration k. If iteration k would need h^{k-1} of more
    than `most` nodes, only iterations k..K are returned, and the first of them indexes h^{k-1} of all nodes.
    """
    rows, layers = targets, list[Hoods]()
    for k in range(depth, 0, -1):
        index, offsets = graph.neighbors_of(rows)
        layers.insert(0, (Ragged(index, offsets, keys(rows, k), rows),))
        if k > 1:
            below, at = distinct(torch.cat([rows, index]), graph.num_nodes)
            if len(below) > most:
                break
            layers[0] = reindexed(layers[0], [at[len(rows) :]], at[: len(rows)])
            rows = below
    return Minibatch(tuple(layers))


def whole_graph(graph: Graph, depth: int, keys: Tensor | int = 0) -> tuple[Hoods, ...]:
    """All neighbors of every node, for `depth` iterations: over these an encoder's forward is Algorithm 1.

    `keys` (N,) name what an aggregator draws (the LSTM's permutations); an int is a seed.
    """
    if isinstance(keys, int):
        keys = Stream(keys, "exact").keys(torch.arange(graph.num_nodes, device=graph.indptr.device))
    index, every = graph.indices.long(), slice(0, graph.num_nodes)
    return tuple((Ragged(index, graph.indptr, derive(keys, k), every),) for k in range(1, depth + 1))

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
    related,
    shares,
)
from graphsage.kernels.random import Stream, derive
from graphsage.kernels.sample import sample_and_extend, sample_last_hop
from graphsage.sampling.hidden import HiddenEdges, redraw_hidden

LARGEST_SAMPLE = (1 << 15) - 1  # the slot of pool's winner has 16 bits
TINY = 1e-30  # below all weights
RELATION = 1 << 16  # relation r draws in iteration k under the keys of iteration k + r * RELATION
Sizes = Sequence[int | tuple[int, ...]]
"""S_1..S_K, each a number, or one for each relation."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SamplingConfig:
    """How neighborhoods are drawn."""

    sample_sizes: tuple[int, ...] = (25, 10)
    """S_1..S_K. `sample_sizes[k - 1]` is drawn in iteration k, so a target has `sample_sizes[-1]` direct neighbors.
    Several relations share them equally, rounded up."""
    relation_sizes: tuple[int, ...] = ()
    """S_1..S_K of the first relation, then of the second one, and so on, in place of equal shares."""
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
        if self.relation_sizes:
            _check_sizes(self.relation_sizes, "relation_sizes")

    def sizes(self, num_relations: int) -> list[tuple[int, ...]]:
        """What `sample_minibatch` takes for a graph of so many relations: S_k of each relation, for each k."""
        if num_relations > 1 and not self.redraw:
            raise ConfigError(reuse_refused(num_relations))
        if self.relation_sizes and len(self.relation_sizes) != num_relations * len(self.sample_sizes):
            raise ConfigError(
                f"{setting('relation_sizes')} must hold {len(self.sample_sizes)} sizes, one per layer, for each of "
                f"{num_relations} {'relation' if num_relations == 1 else 'relations'}; got "
                f"{written(self.relation_sizes)}"
            )
        if self.relation_sizes:
            return [tuple(self.relation_sizes[k :: len(self.sample_sizes)]) for k in range(len(self.sample_sizes))]
        return [(-(-size // num_relations),) * num_relations for size in self.sample_sizes]


def reuse_refused(num_relations: int) -> str:
    return (
        f"neighbors sampled for an earlier layer are reused only in a graph of one relation, and this one has "
        f"{num_relations}; use {setting('redraw', True)}"
    )


def _check_sizes(sample_sizes: Sequence[int], name: str = "sample_sizes") -> None:
    if not sample_sizes or min(sample_sizes) < 1:
        raise ConfigError(
            f"{setting(name)} must hold one positive number per layer; got {written(tuple(sample_sizes))}"
        )
    if max(sample_sizes) > LARGEST_SAMPLE:
        raise ConfigError(f"{setting(name)} must be at most {LARGEST_SAMPLE}; got {written(tuple(sample_sizes))}")


class NeighborLists(Protocol):
    """The neighbors of nodes, in memory, on disk or under an overlay."""

    @property
    def num_nodes(self) -> int: ...

    @property
    def by_relation(self) -> "Sequence[NeighborLists]":
        """The lists of each relation; these lists alone if there is one."""

    def csr_of(self, nodes: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """(indptr, indices, at): the neighbors of nodes[i] are row at[i]. `at` is `nodes` if row v is of node v."""

    def neighbors_of(self, nodes: Tensor) -> tuple[Tensor, Tensor]:
        """The neighbors of `nodes` (R,) one after the other, and where each node's begin: (E,), (R + 1,)."""

    def shares_of(self, nodes: Tensor) -> Tensor | None:
        """The weights of these neighbors as shares of the sum of their row (E,); None without weights."""

    @property
    def places(self) -> tuple[Tensor, Tensor] | None:
        """The numbers 0 .. E - 1 and the weights of the stored edges, in the order of `indices`; None without weights.
        Lists with weights have a row for each node."""


class Unweighted:
    """What lists without weights say of them."""

    places = None

    def shares_of(self, nodes: Tensor) -> None:
        return None


def sample_minibatch(
    graph: NeighborLists,
    targets: Tensor,
    sample_sizes: Sizes,
    keys: Tensor | int,
    redraw: bool = True,
    hidden: HiddenEdges | None = None,
) -> Minibatch:
    """Draw N_K .. N_1 for `targets` (B,).

    `sample_sizes[k - 1]` neighbors are drawn in iteration k, in each relation of the graph. `keys` (B,) names each
    target's draws (see kernels.random); an int is a seed from which keys of the nodes are derived. A node met below a
    target draws under a key derived from its path, so every occurrence has its own sample and no draw depends on the
    rest of the batch.
    The tree of target i does not use the edge hidden.pairs[i], in either direction.
    """
    if not isinstance(targets, Tensor) or targets.dim() != 1 or targets.is_floating_point():
        raise ConfigError("targets must be a tensor of node numbers, (B,)")
    if isinstance(keys, int):
        keys = Stream(keys, "neighbors").keys(targets)
    if len(keys) != len(targets):
        raise ConfigError(f"keys must name the draws of each of the {len(targets)} targets; got {len(keys)}")
    relations = graph.by_relation
    sizes = [(size,) * len(relations) if isinstance(size, int) else size for size in sample_sizes]
    _check_sizes([size for each in sizes for size in each] if sizes else ())
    if redraw:
        return _redrawn(relations, targets, sizes, keys, hidden)
    if len(relations) > 1:
        raise ConfigError(reuse_refused(len(relations)))
    if hidden is not None:
        raise ConfigError(f"edges are hidden only with new neighbors in every layer; use {setting('redraw', True)}")
    return _reused(graph, targets, [size for (size,) in sizes], keys)


def _redrawn(
    relations: Sequence[NeighborLists],
    targets: Tensor,
    sample_sizes: Sequence[tuple[int, ...]],
    keys: Tensor,
    hidden: HiddenEdges | None,
) -> Minibatch:
    if len(relations) > 1:
        if hidden is not None:
            raise ConfigError("edges are hidden only in a graph of one relation; read it with one direction and type")
        return _redrawn_relations(relations, targets, sample_sizes, keys)
    (graph,) = relations
    rows, layers = targets, list[Hoods]()  # line 1: B^K
    for k in range(len(sample_sizes), 0, -1):  # line 2
        (size,), extend = sample_sizes[k - 1], k > 1  # `Minibatch.compact` forms B^0, where each node occurs once
        below, keys, present, draw, weight = _sampled(graph, rows, keys, k, size, extend)  # 3-5: B^k, then N_k(B^k)
        if hidden is not None:
            if weight is not None:
                raise ConfigError("edges are hidden only in a graph without weights; leave the weights out")
            neighbors = below[len(rows) :].view(-1, size) if extend else below
            redraw_hidden(graph.csr_of(rows), rows, hidden, draw, neighbors, present)
            hidden = hidden.extended(size) if extend else hidden
        if extend:
            hood: Neighborhood = Consecutive(len(rows), size, present, draw, weight=weight)
        else:
            hood = Dense(below, present, draw, rows, weight)
        layers.insert(0, (hood,))
        rows = below
    return Minibatch(tuple(layers))


def _redrawn_relations(
    relations: Sequence[NeighborLists], targets: Tensor, sample_sizes: Sequence[tuple[int, ...]], keys: Tensor
) -> Minibatch:
    """As `_redrawn`: B^{k-1} is B^k, then its neighbors in the first relation, then in the second one, and so on."""
    rows, layers = targets, list[Hoods]()
    for k in range(len(sample_sizes), 0, -1):
        hoods, below, below_keys = list[Neighborhood](), [rows], [keys]
        start = len(rows)
        for r, (graph, size) in enumerate(zip(relations, sample_sizes[k - 1], strict=True)):
            found, found_keys, present, draw, weight = _sampled(graph, rows, keys, k + r * RELATION, size, k > 1)
            if k == 1:
                hoods.append(Dense(found, present, draw, rows, weight))
                continue
            hoods.append(Consecutive(start, size, present, draw, weight=weight))
            below.append(found[len(rows) :])
            below_keys.append(found_keys[len(rows) :])
            start += len(below[-1])
        layers.insert(0, (related(hoods),))
        if k > 1:
            rows, keys = torch.cat(below), torch.cat(below_keys)
    return Minibatch(tuple(layers))


def _reused(graph: NeighborLists, targets: Tensor, sample_sizes: Sequence[int], keys: Tensor) -> Minibatch:
    """The released code's tree: hop j is drawn once, S_{K-j+1} from each node of hop j - 1, and serves every layer."""
    depth = len(sample_sizes)
    hops, hop_keys, starts = [targets], keys, [0, len(targets)]
    present, draws, weights = [], [], []
    for j, size in enumerate(reversed(sample_sizes)):
        rows, extended_keys, has, draw, weight = _sampled(graph, hops[j], hop_keys, depth - j, size)
        hops.append(rows[len(hops[j]) :])
        hop_keys = extended_keys[len(hops[j]) :]
        starts.append(starts[-1] + len(hops[-1]))
        present.append(has)
        draws.append(draw)
        weights.append(weight)

    def hood(k: int, j: int) -> Neighborhood:
        """Of hop j in layer k: its neighbors are the next hop."""
        size = sample_sizes[depth - 1 - j]
        if k == 1:
            return Dense(hops[j + 1].view(-1, size), present[j], draws[j], hops[j], weights[j])
        return Consecutive(starts[j + 1], size, present[j], draws[j], starts[j], weights[j])

    return Minibatch(tuple(tuple(hood(k, j) for j in range(depth - k + 1)) for k in range(1, depth + 1)))


def _sampled(
    graph: NeighborLists, rows: Tensor, keys: Tensor, k: int, size: int, extend: bool = True
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor | None]:
    """`rows` (R,), then `size` drawn neighbors of each; the keys of all; which rows have a neighbor; the draws' keys;
    the weights of the drawn neighbors as shares (R, size), if there are weights.

    Without `extend` the neighbors alone, (R, size), and no keys of theirs, which only a further hop needs.
    """
    indptr, indices, at = graph.csr_of(rows)
    stored, weighted = indices, graph.places
    if weighted is not None:
        indices = weighted[0]  # draw places: a neighbor and its weight stand at the same one
    if extend:
        below, keys, present, draw = sample_and_extend(indptr, indices, at, keys, k, size)
    else:
        below, present, draw = sample_last_hop(indptr, indices, at, keys, k, size)
    if weighted is not None:
        places = below[len(rows) :].view(-1, size) if extend else below
        places = torch.where(present[:, None], places, 0)
        weight = weighted[1][places] if len(stored) else torch.zeros(places.shape, device=places.device)
        drawn = stored[places].long() if len(stored) else places
        drawn = torch.where(present[:, None], drawn, rows[:, None])
        below = torch.cat([rows, drawn.flatten()]) if extend else drawn
        return below, keys, present, draw, weight / weight.sum(dim=1, keepdim=True).clamp_min(TINY) * present[:, None]
    if at is not rows:  # a row without neighbors yields itself: as a node number, not as its row in the CSR
        drawn = below[len(rows) :].view(-1, size) if extend else below
        drawn = torch.where(present[:, None], drawn, rows[:, None])
        below = torch.cat([rows, drawn.flatten()]) if extend else drawn
    return below, keys, present, draw, None


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
        own = keys(rows, k)
        whole = [Ragged(*each.neighbors_of(rows), own, rows, each.shares_of(rows)) for each in graph.by_relation]
        layers.insert(0, (related(whole),))
        if k > 1:
            below, at = distinct(torch.cat([rows, *(hood.index for hood in whole)]), graph.num_nodes)
            if len(below) > most:
                break
            at_rows, *at_neighbors = torch.split(at, [len(rows), *(len(hood.index) for hood in whole)])
            layers[0] = reindexed(layers[0], at_neighbors, at_rows)
            rows = below
    return Minibatch(tuple(layers))


def whole_graph(graph: Graph, depth: int, keys: Tensor | int = 0) -> tuple[Hoods, ...]:
    """All neighbors of every node, for `depth` iterations: over these an encoder's forward is Algorithm 1.

    `keys` (N,) name what an aggregator draws (the LSTM's permutations); an int is a seed.
    """
    if isinstance(keys, int):
        keys = Stream(keys, "exact").keys(torch.arange(graph.num_nodes, device=graph.indptr.device))
    every, found = slice(0, graph.num_nodes), list[Hoods]()
    lists = [
        (each.indices.long(), each.indptr, None if each.edge_weight is None else shares(each.edge_weight, each.indptr))
        for each in graph.by_relation
    ]
    for k in range(1, depth + 1):
        own = derive(keys, k)
        found.append((related([Ragged(index, indptr, own, every, weight) for index, indptr, weight in lists]),))
    return tuple(found)

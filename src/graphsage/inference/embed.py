"""Embedding nodes with a trained encoder: exactly from all neighbors (Algorithm 1), or sampled (Algorithm 2).

A `GraphView` says where neighbors, features and keys come from. `prepare` embeds nodes of any view: a graph in
memory, or a live graph with nodes that a request brings. `embed_exact` goes layer by layer in blocks, for many
nodes or all. Graphs larger than memory run the same layers over files (`inference.out_of_core`).
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import torch
from torch import Tensor

from graphsage.execution.fast_encoder import FastEncoder
from graphsage.execution.rows_first import rows_first
from graphsage.graph.graph import Graph
from graphsage.kernels.buffers import Buffers
from graphsage.kernels.neighborhood import Hood, Hoods, Minibatch, Ragged, related, shares
from graphsage.kernels.random import Stream, derive
from graphsage.kernels.rows import scaled_rows
from graphsage.model.encoder import Encoder
from graphsage.sampling.minibatch import NeighborLists, SamplingConfig, sample_minibatch, whole_minibatch

BLOCK_EDGES = 1 << 17  # neighbors read at once: on a CPU their results stay in cache
TABLE_EDGES = 1 << 24  # the same over rows of a hidden layer: so many that reading in panels pays (compiled/panels.c)
TABLE_ROWS = 1 << 17  # rows computed at once, at most, on a CPU
BLOCK_ROWS = 1 << 12  # rows transformed at once

OnBlock = Callable[[int, int], None]


class GraphView(NeighborLists, Protocol):
    """What inference reads of a graph: its neighbor lists, and for each node a key and its features."""

    def draw_keys(self, nodes: Tensor) -> Tensor:
        """The number that names each node's draws."""

    def inputs_of(self, batch: Minibatch) -> tuple[Sequence[Tensor], tuple[Hoods, ...]]:
        """Tables of features, and the batch's neighborhoods in rows of these."""

    def tables_of(self, nodes: Tensor) -> tuple[Sequence[Tensor], Tensor]:
        """Tables of features, and the rows of `nodes` in these."""


@dataclass(frozen=True, eq=False)
class MemoryView:
    """A graph in memory, read in place: capped by the caller, and with its lists by key if their order matters."""

    graph: Graph
    tables: Sequence[Tensor]

    @property
    def num_nodes(self) -> int:
        return self.graph.num_nodes

    @property
    def by_relation(self) -> tuple[Graph, ...]:
        return self.graph.by_relation

    @property
    def places(self) -> tuple[Tensor, Tensor] | None:
        return self.graph.places

    def shares_of(self, nodes: Tensor) -> Tensor | None:
        return self.graph.shares_of(nodes)

    def csr_of(self, nodes: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return self.graph.csr_of(nodes)

    def neighbors_of(self, nodes: Tensor) -> tuple[Tensor, Tensor]:
        return self.graph.neighbors_of(nodes)

    @cached_property
    def _keys(self) -> Tensor | None:
        return None if self.graph.ids is None else self.graph.keys

    def draw_keys(self, nodes: Tensor) -> Tensor:
        return nodes if self._keys is None else self._keys[nodes]

    def inputs_of(self, batch: Minibatch) -> tuple[Sequence[Tensor], tuple[Hoods, ...]]:
        return self.tables, batch.neighborhoods

    def tables_of(self, nodes: Tensor) -> tuple[Sequence[Tensor], Tensor]:
        return self.tables, nodes


def kept_features(encoder: Encoder, tables: Sequence[Tensor], rows: Tensor) -> Tensor:
    """What `keep_features` appends to the embeddings: x of `rows`, standardized and divided by √D, (R, D).

    The mean square length of a training node's row is 1, the length of a normalized embedding.
    """
    return scaled_rows(tables, rows, encoder.shift, encoder.scale) / math.sqrt(max(encoder.in_dim, 1))


def order_matters(encoder: Encoder, inference: str) -> bool:
    """Whether embeddings depend on the order of neighbor lists: if neighbors are sampled, or read as a sequence."""
    layers = (encoder.layer(k) for k in range(1, len(encoder.layers) + 1))
    return inference == "sampled" or any(rows_first(layer) is None for layer in layers)


def with_lists_by_key(graph: Graph) -> Graph:
    """`graph` with neighbor lists in the order of node keys, so that samples depend on ids and not on row numbers."""
    if graph.relations:
        return graph.with_relations(with_lists_by_key)
    keys = graph.keys
    if bool((keys[1:] > keys[:-1]).all()):  # rows are in this order already
        return graph
    by_key = torch.argsort(keys, stable=True)
    place = torch.empty_like(by_key)
    place[by_key] = torch.arange(len(keys), device=keys.device)
    codes, order = torch.sort(graph.edge_rows * len(keys) + place[graph.indices.long()], stable=True)
    weight = None if graph.edge_weight is None else graph.edge_weight[order]
    return graph.replace(indices=by_key[codes % len(keys)].to(graph.indices.dtype), edge_time=None, edge_weight=weight)


def exact_minibatch(
    fast: FastEncoder, view: GraphView, nodes: Tensor, seed: int, most: float = float("inf")
) -> Minibatch:
    """All neighbors of `nodes`, which are all different; see `whole_minibatch`."""

    def keys(rows: Tensor, k: int) -> Tensor:
        uses_keys = fast.strategies[k - 1].uses_keys
        return exact_keys(view.draw_keys(rows), k, seed) if uses_keys else rows  # any numbers will do

    return whole_minibatch(view, nodes, len(fast.strategies), keys, most)


def prepare(
    fast: FastEncoder,
    view: GraphView,
    nodes: Tensor,
    sampling: SamplingConfig | None,
    seed: int,
    *,
    keep_features: bool = False,
) -> Callable[[], Tensor]:
    """Read all inputs of `nodes`, from all neighbors without `sampling`. The returned function computes z, on request
    with the features beside it."""
    if keep_features:
        compute = prepare(fast, view, nodes, sampling, seed)
        kept = kept_features(fast.encoder, *view.tables_of(nodes))
        return lambda: torch.cat([compute(), kept], dim=1)
    if sampling is not None:
        keys = Stream(seed, "inference").keys(view.draw_keys(nodes))  # a vector does not depend on other nodes
        sizes = sampling.sizes(len(view.by_relation))
        inputs = view.inputs_of(sample_minibatch(view, nodes, sizes, keys, sampling.redraw))
        return lambda: fast(*inputs)
    chosen, wanted = torch.unique(nodes, return_inverse=True)
    inputs = view.inputs_of(exact_minibatch(fast, view, chosen, seed))
    return lambda: fast(*inputs)[wanted]


def exact_keys(draw_keys: Tensor, k: int, seed: int) -> Tensor:
    return derive(Stream(seed, "exact").keys(draw_keys), k)


@torch.no_grad()
def embed_sampled(
    encoder: Encoder,
    graph: Graph,
    tables: Sequence[Tensor],
    nodes: Tensor,
    sampling: SamplingConfig,
    *,
    seed: int = 0,
    batch_size: int = 512,
    on_block: OnBlock | None = None,
) -> Tensor:
    """z of `nodes` (B,) from sampled neighborhoods of `graph` (capped by the caller), (B, dim): fixed cost per node."""
    with evaluating(encoder):
        fast, view = FastEncoder(encoder), MemoryView(graph, tables)
        out = torch.empty(len(nodes), encoder.config.dim, device=graph.indptr.device)
        for start in range(0, len(nodes), batch_size):
            stop = min(start + batch_size, len(nodes))
            out[start:stop] = prepare(fast, view, nodes[start:stop], sampling, seed)()
            if on_block is not None:
                on_block(stop, len(nodes))
        return out


@torch.no_grad()
def embed_exact(
    encoder: Encoder,
    graph: Graph,
    tables: Sequence[Tensor],
    nodes: Tensor | None = None,
    *,
    seed: int = 0,
    block_edges: int | None = None,
    on_block: OnBlock | None = None,
) -> Tensor:
    """z of `nodes` (all by default) from all their neighbors in `graph` (capped by the caller), (len(nodes), dim).

    Layer by layer, each node once per layer and in bounded blocks. Only nodes within K - k hops of `nodes` are computed
    in layer k, or all of them once more than half are needed. `on_block(done, total)` is called as rows are finished.
    """
    with evaluating(encoder):
        run = _ExactRun(FastEncoder(encoder), MemoryView(graph, tables), Buffers(), seed, block_edges)
        if nodes is None:
            return run.layers_over_everyone(
                len(encoder.layers), _Count(len(encoder.layers) * graph.num_nodes, on_block)
            )
        chosen, wanted = torch.unique(nodes, return_inverse=True)
        batch = exact_minibatch(run.fast, run.view, chosen, seed, most=graph.num_nodes / 2)
        below = len(encoder.layers) - len(batch.neighborhoods)
        rows = sum(hood.num_rows for hoods in batch.neighborhoods for hood in hoods)
        count = _Count(below * graph.num_nodes + rows, on_block)
        h = run.layers_over_everyone(below, count) if below else None
        for k, (hood,) in enumerate(batch.neighborhoods, start=below + 1):
            h = run.layer_over_some(k, h, hood, count)
        assert h is not None
        return h[wanted]


@contextmanager
def evaluating(encoder: Encoder) -> Iterator[None]:
    """Evaluation mode within the block."""
    was_training = encoder.training
    encoder.eval()
    try:
        yield
    finally:
        encoder.train(was_training)


@dataclass
class _Count:
    total: int
    on_block: OnBlock | None
    done: int = 0

    def add(self, rows: int) -> None:
        self.done += rows
        if self.on_block is not None:
            self.on_block(self.done, self.total)


@dataclass(frozen=True)
class _ExactRun:
    fast: FastEncoder
    view: MemoryView
    buffers: Buffers
    seed: int
    block_edges: int | None

    def layers_over_everyone(self, depth: int, count: _Count) -> Tensor:
        """h^depth of every node."""
        h: Tensor | None = None
        for k in range(1, depth + 1):
            below, h = h, self._layer_over_everyone(k, h, count)
            if below is not None:
                self.buffers.give_back(below)
        assert h is not None
        return h

    def _layer_over_everyone(self, k: int, below: Tensor | None, count: _Count) -> Tensor:
        """h^k of every node: work on single rows once for each node, then the reduction over neighbors."""
        graph, buffers = self.view.graph, self.buffers
        first_pass = rows_first(self.fast.strategies[k - 1].layer)
        n, everyone = graph.num_nodes, torch.arange(graph.num_nodes, device=graph.indptr.device)
        out, once = self._table(n, self.fast.encoder.config.dim), None
        if first_pass is not None and first_pass.pays:
            once = self._table(n, first_pass.width)
            step = BLOCK_ROWS << 2 if graph.indptr.is_cuda else BLOCK_ROWS
            for start in range(0, n, step):
                rows = everyone[start : start + step]
                h = self.fast.input_rows(self.view.tables, rows) if below is None else below[start : start + step]
                first_pass.for_neighbors(h, once[start : start + step])
                first_pass.for_itself(h, out[start : start + step])
                del h  # before the next block is read
                count.add(0)
        from_features, relations = once is None and below is None, graph.by_relation
        degrees = torch.stack([each.degrees for each in relations]).sum(dim=0) if graph.relations else graph.degrees
        for start, stop in self._blocks(degrees, k, from_features=from_features):
            rows, whole = everyone[start:stop], list[Ragged]()
            keys = rows if first_pass is not None else exact_keys(self.view.draw_keys(rows), k, self.seed)
            for lists in relations:
                first, last = (int(lists.indptr[at]) for at in (start, stop))
                index, offsets = lists.indices[first:last], lists.indptr[start : stop + 1] - first
                if first_pass is None:
                    index = index.long()  # as everywhere else: an aggregator may index with it
                else:
                    offsets = offsets.to(index.dtype)
                own_rows = rows if from_features else slice(start, stop)
                weight = None if lists.edge_weight is None else shares(lists.edge_weight[first:last], offsets.long())
                whole.append(Ragged(index, offsets, keys, own_rows, weight))
            table = below if once is None else once
            if first_pass is None or table is None or (once is None and table.is_cuda):
                out[start:stop] = self.fast.layer(k, below, self.view.tables, (related(whole),))
            else:
                (hood,) = whole
                aggregated = first_pass.reduce(table, hood, buffers)
                if once is None:
                    first_pass.combine(table[start:stop], aggregated, out[start:stop])
                else:
                    first_pass.finish(aggregated, out[start:stop], self._own(k, below, rows))
                buffers.give_back(aggregated)
            count.add(stop - start)
        if once is not None:
            buffers.give_back(once)
        return out

    def _own(self, k: int, below: Tensor | None, rows: Tensor) -> Tensor | None:
        """h^{k-1} of `rows` if layer k adds it to its result."""
        if self.fast.encoder.layer(k).skip is None:
            return None
        return self.fast.input_rows(self.view.tables, rows) if below is None else below[rows]

    def layer_over_some(self, k: int, below: Tensor | None, hood: Hood, count: _Count) -> Tensor:
        """h^k of the rows of `hood`, from the layer below."""
        out = torch.empty(hood.num_rows, self.fast.encoder.config.dim, device=hood.keys.device)
        counts = torch.stack([each.counts for each in hood.by_relation]).sum(dim=0)
        for start, stop in self._blocks(counts, k, from_features=below is None):
            rows, block = slice(start, stop), list[Ragged]()
            for each in hood.by_relation:
                assert isinstance(each, Ragged)
                assert isinstance(each.rows, Tensor)
                first, last = (int(each.offsets[at]) for at in (start, stop))
                offsets = each.offsets[start : stop + 1] - first
                weight = None if each.weight is None else each.weight[first:last]
                block.append(Ragged(each.index[first:last], offsets, each.keys[rows], each.rows[rows], weight))
            out[rows] = self.fast.layer(k, below, self.view.tables, (related(block),))
            count.add(stop - start)
        return out

    def _table(self, rows: int, width: int) -> Tensor:
        return self.buffers.take_like(torch.empty(0, 0, device=self.view.graph.indptr.device), rows, width)

    def _blocks(self, counts: Tensor, k: int, *, from_features: bool) -> list[tuple[int, int]]:
        """Runs of rows whose neighbors are reduced at once."""
        whole_lists, on_cpu = rows_first(self.fast.strategies[k - 1].layer) is None, not counts.is_cuda
        if self.block_edges is not None:
            edges = self.block_edges
        elif whole_lists:
            edges = BLOCK_EDGES if on_cpu else BLOCK_EDGES << 2
        else:
            edges = TABLE_EDGES << 1 if not on_cpu else BLOCK_EDGES if from_features else TABLE_EDGES
        return blocks(counts, edges)


def blocks(counts: Tensor, edges: int) -> list[tuple[int, int]]:
    """Cut rows with `counts` neighbors into runs of at most `edges` neighbors and rows (at least one row each)."""
    fewest = 1 if counts.is_cuda else max(edges // TABLE_ROWS, 1)
    weights = (counts + 1).clamp(min=fewest).cumsum(0).cpu()
    found, start, spent = [], 0, 0
    while start < len(weights):
        stop = max(int(torch.searchsorted(weights, spent + edges, right=True)), start + 1)
        found.append((start, stop))
        start, spent = stop, int(weights[stop - 1])
    return found

"""Algorithm 1 over a whole graph or for chosen nodes: layer by layer, each node once a layer, in bounded blocks."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from graphsage.graph.graph import Graph
from graphsage.kernels import scratch
from graphsage.kernels.neighborhood import Neighborhood
from graphsage.kernels.random import Stream, derive
from graphsage.model.encoder import Encoder

BLOCK_EDGES = 1 << 17  # neighbors read at once: on a CPU what comes out of so many stays in cache
TABLE_EDGES = 1 << 24  # of them in a table of rows: so many that reading it in panels pays (compiled/panels.c)
TABLE_ROWS = 1 << 17  # at most, on a CPU: what comes out of so many fits into memory
BLOCK_ROWS = 1 << 12  # rows transformed at once


@torch.no_grad()
@scratch.reuse()
def embed_exact(
    encoder: Encoder,
    graph: Graph,
    tables: Sequence[Tensor],
    nodes: Tensor | None = None,
    *,
    seed: int = 0,
    block_edges: int | None = None,
    on_block: Callable[[int, int], None] | None = None,
) -> Tensor:
    """z of `nodes` (all by default) from all their neighbors in `graph` (capped by the caller), (len(nodes), dim).

    Only nodes within K - 1 hops of `nodes` are computed at each layer, never a K-hop tree. `on_block(done, total)` is
    called as rows are finished.
    """
    was_training = encoder.training
    encoder.eval()
    try:
        needed = _needed(graph, nodes, len(encoder.layers))
        count = _Count(sum(graph.num_nodes if rows is None else len(rows) for rows in needed[1:]), on_block)
        h: Tensor | None = None
        for k in range(1, len(encoder.layers) + 1):
            if needed[k] is None:
                h = _everyone(encoder, k, graph, tables, h, seed, block_edges, count)
            else:
                h = _some(encoder, k, graph, tables, h, needed, seed, block_edges, count)
        assert h is not None
        rows = needed[-1]
        if nodes is None:
            return h
        return h[nodes] if rows is None else h[_lookup(rows, graph.num_nodes)[nodes]]
    finally:
        encoder.train(was_training)


@dataclass
class _Count:
    total: int
    on_block: Callable[[int, int], None] | None
    done: int = 0

    def add(self, rows: int) -> None:
        self.done += rows
        if self.on_block is not None:
            self.on_block(self.done, self.total)


def _everyone(encoder: Encoder, k: int, graph: Graph, tables: Sequence[Tensor], below: Tensor | None, seed: int,
              block_edges: int | None, count: _Count) -> Tensor:  # fmt: skip
    """h^k of every node: what the layer does to single rows is done once for each, then neighbors are reduced."""
    layer, device = encoder.layer(k), graph.indptr.device
    step = BLOCK_ROWS << 2 if graph.indptr.is_cuda else BLOCK_ROWS
    everyone = torch.arange(graph.num_nodes, device=device)

    def rows(start: int, stop: int) -> Tensor:
        return encoder.x(tables, everyone[start:stop]) if below is None else below[start:stop]

    out = _table(graph.num_nodes, encoder.config.dim, device)
    once: Tensor | None = None
    if layer.acts_on_rows:
        once = _table(graph.num_nodes, layer.row_width, device)
        for start in range(0, graph.num_nodes, step):
            stop = min(start + step, graph.num_nodes)
            layer.on_rows(rows(start, stop), once[start:stop], out[start:stop])
    for start, stop in _blocks(graph, None, block_edges or _at_once(encoder, device, once is None and below is None)):
        block = everyone[start:stop]
        first, last = (int(graph.indptr[at]) for at in (start, stop))
        index = graph.indices[first:last]
        offsets = (graph.indptr[start : stop + 1] - first).to(index.dtype)
        neighborhood = Neighborhood.ragged(index, offsets, derive(Stream(seed, "exact").keys(block), k))
        if once is not None:
            layer.after_rows(once, neighborhood, block, out[start:stop])
        elif below is None:
            out[start:stop] = encoder.first(tables, block, neighborhood)
        elif device.type == "cpu":
            layer.after_neighbors(below[start:stop], layer.aggregate(below, neighborhood, block), out[start:stop])
        else:
            out[start:stop] = layer(below, neighborhood, block)
        count.add(stop - start)
    return out


def _table(rows: int, width: int, device: torch.device) -> Tensor:
    """On a CPU what one layer is done with serves the next."""
    return scratch.take(rows, width) if device.type == "cpu" else torch.empty(rows, width, device=device)


def _some(encoder: Encoder, k: int, graph: Graph, tables: Sequence[Tensor], below: Tensor | None,
          needed: Sequence[Tensor | None], seed: int, block_edges: int | None, count: _Count) -> Tensor:  # fmt: skip
    """h^k of the rows that are needed, from those of the layer below."""
    rows, sources = needed[k], needed[k - 1]
    assert rows is not None
    lookup = None if sources is None else _lookup(sources, graph.num_nodes)
    out = torch.empty(len(rows), encoder.config.dim, device=graph.indptr.device)
    for start, stop in _blocks(graph, rows, block_edges or _at_once(encoder, out.device, below is None)):
        block = rows[start:stop]
        keys = derive(Stream(seed, "exact").keys(block), k)
        index, offsets = _edges_of(graph, block)
        if below is None:
            out[start:stop] = encoder.first(tables, block, Neighborhood.ragged(index, offsets, keys))
        else:
            here = block if lookup is None else lookup[block]
            index = index if lookup is None else lookup[index]
            out[start:stop] = encoder.layer(k)(below, Neighborhood.ragged(index, offsets, keys), here)
        count.add(stop - start)
    return out


def _needed(graph: Graph, nodes: Tensor | None, depth: int) -> list[Tensor | None]:
    """needed[k]: the nodes whose h^k is needed, ascending, for k = 0..depth (k = 0 is not computed); None: all."""
    if nodes is None:
        return [None] * (depth + 1)
    needed: list[Tensor | None] = [torch.unique(nodes)]
    for _ in range(depth - 1):
        rows = needed[0]
        if rows is not None:
            reached = torch.zeros(graph.num_nodes, dtype=torch.bool, device=rows.device)
            reached[rows] = True
            reached[_edges_of(graph, rows)[0]] = True
            rows = torch.nonzero(reached).flatten()
            # From half of the nodes on, all of them: then each one is transformed once.
            rows = None if 2 * len(rows) > graph.num_nodes else rows
        needed.insert(0, rows)
    return [None, *needed]


def _lookup(rows: Tensor, num_nodes: int) -> Tensor:
    lookup = torch.full((num_nodes,), -1, dtype=torch.int64, device=rows.device)
    lookup[rows] = torch.arange(len(rows), device=rows.device)
    return lookup


def _edges_of(graph: Graph, rows: Tensor) -> tuple[Tensor, Tensor]:
    """The neighbors of `rows` one after the other, and where each row's begin: (E,), (R + 1,)."""
    start = graph.indptr[rows]
    counts = graph.indptr[rows + 1] - start
    offsets = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
    first = torch.repeat_interleave(start - offsets[:-1], counts)
    places = first + torch.arange(int(offsets[-1]), device=rows.device)
    return graph.indices[places].long(), offsets


def _at_once(encoder: Encoder, device: torch.device, first: bool) -> int:
    """How many neighbors are reduced at once; `first`: their features are read, not a table that a layer made."""
    if encoder.config.aggregator == "lstm":
        return BLOCK_EDGES << (2 * (device.type != "cpu"))
    return TABLE_EDGES << 1 if device.type != "cpu" else BLOCK_EDGES if first else TABLE_EDGES


def _blocks(graph: Graph, rows: Tensor | None, block_edges: int) -> list[tuple[int, int]]:
    """Cut `rows` (None: all) into runs of at most `block_edges` neighbors and rows (at least one row each)."""
    degrees = graph.degrees if rows is None else graph.indptr[rows + 1] - graph.indptr[rows]
    fewest = 1 if degrees.is_cuda else max(block_edges // TABLE_ROWS, 1)
    weights = (degrees + 1).clamp(min=fewest).cumsum(0).cpu()
    blocks, start, spent = [], 0, 0
    while start < len(weights):
        stop = int(torch.searchsorted(weights, spent + block_edges, right=True))
        stop = max(stop, start + 1)
        blocks.append((start, stop))
        spent = int(weights[stop - 1])
        start = stop
    return blocks

"""Algorithm 1 over a whole graph or for chosen nodes: layer by layer, each node once a layer, in bounded blocks."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from graphsage.graph.graph import Graph
from graphsage.kernels.neighborhood import Neighborhood
from graphsage.kernels.random import Stream, derive
from graphsage.model.encoder import Encoder

BLOCK_EDGES = 1 << 19  # neighbors gathered at once by aggregators that hold them all (LSTM, pool's distinct rows)


@torch.no_grad()
def embed_exact(
    encoder: Encoder,
    graph: Graph,
    tables: Sequence[Tensor],
    nodes: Tensor | None = None,
    *,
    seed: int = 0,
    block_edges: int = BLOCK_EDGES,
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
        total = sum(len(rows) for rows in needed[1:])
        done = 0
        h: Tensor | None = None
        for k in range(1, len(encoder.layers) + 1):
            rows = needed[k]
            below = needed[k - 1]
            lookup = None if k == 1 or len(below) == graph.num_nodes else _lookup(below, graph.num_nodes)
            out = torch.empty(len(rows), encoder.config.dim, device=graph.indptr.device)
            for start, stop in _blocks(graph, rows, block_edges):
                block = rows[start:stop]
                keys = derive(Stream(seed, "exact").keys(block), k)
                index, offsets = _edges_of(graph, block)
                if k == 1:
                    out[start:stop] = encoder.first(tables, block, Neighborhood.ragged(index, offsets, keys))
                else:
                    assert h is not None
                    here = block if lookup is None else lookup[block]
                    index = index if lookup is None else lookup[index]
                    out[start:stop] = encoder.above(k, h, here, Neighborhood.ragged(index, offsets, keys))
                done += stop - start
                if on_block is not None:
                    on_block(done, total)
            h = out
        assert h is not None
        return h if nodes is None else h[_lookup(needed[-1], graph.num_nodes)[nodes]]
    finally:
        encoder.train(was_training)


def _needed(graph: Graph, nodes: Tensor | None, depth: int) -> list[Tensor]:
    """needed[k]: the nodes whose h^k is needed, ascending, for k = 0..depth (k = 0 is not computed, so it is empty)."""
    everyone = torch.arange(graph.num_nodes, device=graph.indptr.device)
    if nodes is None:
        return [everyone[:0], *[everyone] * depth]
    needed = [torch.unique(nodes)]
    for _ in range(depth - 1):
        rows = needed[0]
        if len(rows) < graph.num_nodes:
            reached = torch.zeros(graph.num_nodes, dtype=torch.bool, device=rows.device)
            reached[rows] = True
            reached[_edges_of(graph, rows)[0]] = True
            rows = torch.nonzero(reached).flatten()
        needed.insert(0, rows)
    return [everyone[:0], *needed]


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


def _blocks(graph: Graph, rows: Tensor, block_edges: int) -> list[tuple[int, int]]:
    """Cut `rows` into runs of at most `block_edges` neighbors and rows (at least one row each)."""
    weights = (graph.indptr[rows + 1] - graph.indptr[rows] + 1).cumsum(0).cpu()
    blocks, start, spent = [], 0, 0
    while start < len(rows):
        stop = int(torch.searchsorted(weights, spent + block_edges, right=True))
        stop = max(stop, start + 1)
        blocks.append((start, stop))
        spent = int(weights[stop - 1])
        start = stop
    return blocks

"""Algorithm 2 for chosen nodes with a trained encoder: the paper's way of inference, fixed cost a node."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from graphsage.graph.graph import Graph
from graphsage.kernels.random import Stream
from graphsage.model.encoder import Encoder
from graphsage.sampling.minibatch import SamplingConfig, sample_minibatch


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
    on_block: Callable[[int, int], None] | None = None,
) -> Tensor:
    """z of `nodes` (B,) from sampled neighborhoods of `graph` (capped by the caller): (B, dim).

    Draws are keyed by node, so a node's vector does not depend on which others are asked for with it.
    """
    was_training = encoder.training
    encoder.eval()
    try:
        stream = Stream(seed, "inference")
        out = torch.empty(len(nodes), encoder.config.dim, device=graph.indptr.device)
        for start in range(0, len(nodes), batch_size):
            targets = nodes[start : start + batch_size]
            batch = sample_minibatch(graph, targets, sampling.sample_sizes, stream.keys(targets), sampling.redraw)
            out[start : start + len(targets)] = encoder(tables, batch)
            if on_block is not None:
                on_block(start + len(targets), len(nodes))
        return out
    finally:
        encoder.train(was_training)

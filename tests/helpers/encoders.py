"""Random encoders for property tests: every option of the configuration, all buffers away from their defaults."""

from collections.abc import Callable
from typing import Any

import torch
from hypothesis import strategies as st
from torch import Tensor

from graphs import SEEDS, graphs, normal
from graphsage.graph.graph import Graph
from graphsage.model.aggregators import AGGREGATORS
from graphsage.model.encoder import NORMALIZES, Encoder, EncoderConfig
from graphsage.model.layer import COMBINES

NAMES = tuple(AGGREGATORS)


def encoder_of(config: EncoderConfig, in_dim: int, num_nodes: int | None = None, seed: int = 0) -> Encoder:
    """Weights from the seed; shift, scale and biases as after training."""
    torch.manual_seed(seed)
    encoder = Encoder(config, in_dim, num_nodes)
    encoder.shift.copy_(normal(seed + 1, in_dim))
    encoder.scale.copy_(normal(seed + 2, in_dim).abs() + 0.5)
    for k, layer in enumerate(encoder.layers if config.layer_norm else ()):
        layer.norm.eps = 0.1  # type: ignore[union-attr]  # a row of 2 equal numbers amplifies rounding by 1 / sqrt(eps)
        layer.norm.weight.data.copy_(normal(seed + 10 + k, config.dim).abs() + 0.5)  # type: ignore[union-attr]
        layer.norm.bias.data.copy_(normal(seed + 20 + k, config.dim))  # type: ignore[union-attr]
    return encoder.eval()


@st.composite
def worlds(
    draw: Callable[..., Any], names: tuple[str, ...] = NAMES, max_nodes: int = 8, several: bool = False
) -> tuple[Encoder, Graph, list[Tensor]]:
    """An encoder, a graph and one to three tables of features read side by side. `several`: of one or two relations."""
    graph = draw(graphs(max_nodes=max_nodes, directed=None, several=several))
    widths = draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
    config = EncoderConfig(
        aggregator=draw(st.sampled_from(names)),
        relations=tuple(graph.relations),
        num_layers=draw(st.integers(1, 3)),
        dim=draw(st.integers(2, 5)),
        hidden_dim=4,
        combine=draw(st.sampled_from(COMBINES)),
        normalize=draw(st.sampled_from(NORMALIZES)),
        last_activation=draw(st.booleans()),
        bias=draw(st.booleans()),
        layer_norm=draw(st.booleans()),
        residual=draw(st.booleans()),
        identity_dim=draw(st.sampled_from([0, 2])),
    )
    seed = draw(SEEDS)
    tables = [normal(seed + 10 * i, graph.num_nodes, width) for i, width in enumerate(widths)]
    return encoder_of(config, sum(widths), graph.num_nodes, seed), graph, tables

"""An encoder with a strategy for each layer: what training and inference run instead of `Encoder.forward`."""

from collections.abc import Sequence

import torch
from torch import Tensor

from graphsage.errors import ConfigError
from graphsage.execution.strategies import LayerInput, Source, strategy_for
from graphsage.kernels.buffers import FRESH, Buffers
from graphsage.kernels.neighborhood import Hoods
from graphsage.kernels.rows import scaled_rows
from graphsage.kernels.sequences import CELLS
from graphsage.model.encoder import Encoder


class FastEncoder:
    """Computes what the encoder computes on the rows of `tables` (N, D_i) side by side.

    `buffers` are reused from step to step; by default memory is fresh. With `modules_only` every product is a call of
    a layer's own module, so that replaced modules take effect. Over whole neighborhoods an LSTM reads at most `cells`
    neighbors at once.
    """

    def __init__(
        self, encoder: Encoder, buffers: Buffers = FRESH, *, modules_only: bool = False, cells: int = CELLS
    ) -> None:
        self.encoder, self.buffers = encoder, buffers
        layers = [encoder.layer(k) for k in range(1, len(encoder.layers) + 1)]
        self.strategies = [strategy_for(layer, cells, modules_only=modules_only) for layer in layers]

    def __call__(self, tables: Sequence[Tensor], neighborhoods: Sequence[Hoods]) -> Tensor:
        """z of the rows of the last neighborhoods, (B, dim); the first ones index rows of the tables."""
        return self.encode(self.read(tables, neighborhoods))

    @torch.no_grad()
    def read(self, tables: Sequence[Tensor], neighborhoods: Sequence[Hoods], out: Tensor | None = None) -> LayerInput:
        """The weight-independent part: everything that a batch needs of the tables.

        `out` is a buffer for the rows, used if it has the right shape and dtype.
        """
        if len(neighborhoods) != len(self.strategies):
            raise ConfigError(f"the encoder has {len(self.strategies)} layers, the minibatch {len(neighborhoods)}")
        for hoods in neighborhoods:
            self.encoder.check_relations(hoods)
        return self.strategies[0].read(Source(self.encoder, tables, self.buffers, out), neighborhoods)

    def encode(self, data: LayerInput) -> Tensor:
        """The part that learns: z from what was read."""
        h = self.strategies[0].first(self.encoder, data, self.buffers)
        for strategy, hoods in zip(self.strategies[1:], data.above, strict=True):
            h = strategy.run(h, hoods, self.buffers)
        return h

    def input_rows(self, tables: Sequence[Tensor], nodes: Tensor) -> Tensor:
        """h^0 of `nodes`, (R, in_dim + identity_dim)."""
        with torch.no_grad():
            x = scaled_rows(tables, nodes, self.encoder.shift, self.encoder.scale)
        return self.encoder.with_identity(x, nodes)

    def layer(self, k: int, h: Tensor | None, tables: Sequence[Tensor], hoods: Hoods) -> Tensor:
        """Iteration k alone: h^k from h^{k-1}, or from the tables for k = 1."""
        strategy = self.strategies[k - 1]
        self.encoder.check_relations(hoods)
        if h is not None:
            return strategy.run(h, hoods, self.buffers)
        with torch.no_grad():
            data = strategy.read(Source(self.encoder, tables, self.buffers), (hoods,))
        return strategy.first(self.encoder, data, self.buffers)

"""The encoder: Algorithm 1 on a whole graph and Algorithm 2 (lines 9-15) on a minibatch, with the same layers."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from graphsage.errors import ConfigError
from graphsage.kernels import scratch
from graphsage.kernels.dropout import dropout
from graphsage.kernels.join import gather_joined
from graphsage.kernels.neighborhood import Minibatch, Neighborhood
from graphsage.kernels.product import padded
from graphsage.kernels.random import derive
from graphsage.kernels.rows import scaled_rows
from graphsage.model.aggregators import aggregator_named
from graphsage.model.layer import SageLayer
from graphsage.model.reading import Reading, needed

COMBINES = ("joint", "halves")
NORMALIZES = ("every", "last", "never")


@dataclass(frozen=True, kw_only=True, slots=True)
class EncoderConfig:
    """The shape of an encoder. The paper's form is the default; FORMS in training.config has the released code's."""

    aggregator: str = "mean"
    num_layers: int = 2
    dim: int = 256
    """Width of every h^k."""
    hidden_dim: int | None = None
    """Width inside the aggregator (pool: 512 or 1024, LSTM: 128 or 256); None takes the small one."""
    depth: int = 1
    """Layers inside the aggregator (of pool's MLP, of the LSTM)."""
    combine: str = "joint"
    normalize: str = "every"
    """Where h is scaled to length 1: after 'every' layer (line 7), after the 'last' only, or 'never'."""
    last_activation: bool = True
    """ReLU after the last layer too (line 5)."""
    bias: bool = False
    dropout: float = 0.0
    """Share of each hidden vector (the input of layers 2..K, and of the head) that is zeroed in training."""
    identity_dim: int = 0
    """Width of a learned vector for each node. Makes the model transductive: it knows only the nodes it trained on."""

    def __post_init__(self) -> None:
        aggregator_named(self.aggregator)
        for name, minimum in (("num_layers", 1), ("dim", 2), ("depth", 1), ("identity_dim", 0)):
            if getattr(self, name) < minimum:
                raise ConfigError(f"{name} must be at least {minimum}; got {getattr(self, name)}")
        if self.hidden_dim is not None and self.hidden_dim < 1:
            raise ConfigError(f"hidden_dim must be at least 1; got {self.hidden_dim}")
        if self.combine not in COMBINES:
            raise ConfigError(f"combine must be one of {', '.join(COMBINES)}; got {self.combine!r}")
        if self.normalize not in NORMALIZES:
            raise ConfigError(f"normalize must be one of {', '.join(NORMALIZES)}; got {self.normalize!r}")
        if not 0 <= self.dropout < 1:
            raise ConfigError(f"dropout must be at least 0 and below 1; got {self.dropout}")


class Encoder(nn.Module):
    """Maps nodes to embeddings. Its input is a list of tables (N, D_i) read side by side: x_v is their concatenation,
    shifted and scaled by `shift` and `scale` (the scaler fitted on training nodes), then the learned identity vector.
    """

    shift: Tensor
    scale: Tensor

    def __init__(self, config: EncoderConfig, in_dim: int, num_nodes: int | None = None) -> None:
        super().__init__()
        self.config, self.in_dim = config, in_dim
        self.register_buffer("shift", torch.zeros(in_dim))
        self.register_buffer("scale", torch.ones(in_dim))
        self.identity: nn.Embedding | None = None
        if config.identity_dim:
            if num_nodes is None:
                raise ConfigError("identity_dim needs the number of nodes of the training graph")
            self.identity = nn.Embedding(num_nodes, config.identity_dim)
            nn.init.normal_(self.identity.weight, std=config.identity_dim**-0.5)
        width = in_dim + config.identity_dim
        if not width:
            raise ConfigError("the graph has no features; use degree features or identity_dim")
        self.layers = nn.ModuleList()
        for k in range(1, config.num_layers + 1):
            last = k == config.num_layers
            aggregator = aggregator_named(config.aggregator)(width, config.hidden_dim, config.depth)
            self.layers.append(SageLayer(
                width, config.dim, aggregator, combine=config.combine, bias=config.bias,
                activation=not last or config.last_activation,
                normalize=config.normalize == "every" or (last and config.normalize == "last"),
            ))  # fmt: skip
            width = config.dim

    def forward(self, tables: Sequence[Tensor], batch: Minibatch) -> Tensor:
        """Algorithm 2, lines 9-15: z of the batch's targets, (B, dim)."""
        return self.encode(self.read(tables, batch))

    def read(self, tables: Sequence[Tensor], batch: Minibatch, out: Tensor | None = None) -> Reading:
        """The part that no weight has a say in: everything that the batch needs of the input tables.

        `out` is a buffer for the gathered rows, used where it has the right shape.
        """
        if len(batch.neighborhoods) != len(self.layers):
            raise ConfigError(f"the encoder has {len(self.layers)} layers, the minibatch {len(batch.neighborhoods)}")
        return self._read(tables, batch.rows, batch.neighborhoods[0], batch.neighborhoods[1:], out)

    def encode(self, reading: Reading) -> Tensor:
        """The part that learns: z from what was read."""
        h, keys = self._first(reading), reading.keys
        for k, neighborhood in enumerate(reading.above, start=2):
            if self.training and self.config.dropout:
                h = dropout(h, self.config.dropout, keys, -k)
            h, keys = self.layers[k - 1](h, neighborhood), neighborhood.keys
        return h

    def full(self, tables: Sequence[Tensor], indptr: Tensor, indices: Tensor, keys: Tensor) -> Tensor:
        """Algorithm 1: z of every node of a graph in memory, (N, dim); `inference.exact` does it block by block."""
        rows = torch.arange(len(indptr) - 1, device=indptr.device)
        h = self.first(tables, rows, Neighborhood.ragged(indices.long(), indptr, derive(keys, 1)))
        for k in range(2, len(self.layers) + 1):
            h = self.layer(k)(h, Neighborhood.ragged(indices.long(), indptr, derive(keys, k)), rows)
        return h

    def first(self, tables: Sequence[Tensor], rows: Tensor, neighborhood: Neighborhood) -> Tensor:
        """Iteration k = 1, over the input tables: h^1 of `rows`, whose neighborhoods hold node numbers."""
        return self._first(self._read(tables, rows, neighborhood))

    def x(self, tables: Sequence[Tensor], nodes: Tensor) -> Tensor:
        """x_v of `nodes` as the first layer takes it: features, then the identity vector."""
        x = self.inputs(tables, nodes)
        return x if self.identity is None else torch.cat([x, self.identity(nodes)], dim=1)

    @torch.no_grad()
    def inputs(self, tables: Sequence[Tensor], nodes: Tensor, out: Tensor | None = None) -> Tensor:
        """x_v of `nodes`, scaled, without the identity vector: Algorithm 1, line 1."""
        return scaled_rows(tables, nodes, self.shift, self.scale, out)

    @torch.no_grad()
    def _read(self, tables: Sequence[Tensor], rows: Tensor, neighborhood: Neighborhood,
              above: tuple[Neighborhood, ...] = (), out: Tensor | None = None) -> Reading:  # fmt: skip
        aggregator, keys = self.layer(1).aggregator, neighborhood.keys
        if aggregator.linear:  # an average commutes with the scaler: raw rows are averaged, and the result scaled
            mixed = aggregator.includes_self
            out = self._buffer(out, tables, rows, len(rows), self.in_dim if mixed else 2 * self.in_dim)
            x = gather_joined(tables, rows, neighborhood, mixed, self.shift, self.scale, out)
            return Reading(x, rows, None, None if self.identity is None else neighborhood, keys, above)
        nodes, places, first = needed(rows, neighborhood, self._num_nodes(tables))
        out = self._buffer(out, tables, rows, len(nodes), self.in_dim)
        return Reading(self.inputs(tables, nodes, out), nodes, places, first, keys, above)

    def _buffer(self, out: Tensor | None, tables: Sequence[Tensor], rows: Tensor, count: int, width: int) -> Tensor:
        """Where to put what is read: `out` again where it fits. In training on a GPU rows are padded with zeros, and
        bfloat16 where the features are, so that the first product gets factors it likes."""
        kind, layer, pads = torch.float32, self.layer(1), False
        joined_halves = layer.halves and layer.aggregator.linear  # their two products read one half of a row each
        if self.training and rows.is_cuda and self.identity is None and layer.aggregator.padded and not joined_halves:
            if all(table.dtype == torch.bfloat16 for table in tables):
                kind = torch.bfloat16
            width, pads = padded(width, kind), True
        if out is not None and out.shape == (count, width) and out.dtype == kind:
            return out
        if self.training and rows.device.type == "cpu":
            return scratch.take(count, width)
        buffer = torch.empty(count, width, dtype=kind, device=rows.device)
        return buffer.zero_() if pads else buffer

    def _first(self, reading: Reading) -> Tensor:
        layer, x, first = self.layer(1), reading.x, reading.first
        if not layer.aggregator.linear:
            assert first is not None
            h = x if self.identity is None else torch.cat([x, self.identity(reading.nodes)], dim=1)
            result: Tensor = layer(h, first, reading.rows)
            return result
        if self.identity is not None:
            assert first is not None
            learned = layer.aggregate(self.identity.weight, first, reading.nodes)
            if layer.aggregator.includes_self:
                x = torch.cat([x, learned], dim=1)
            else:
                own = self.identity(reading.nodes)
                x = torch.cat([x[:, : self.in_dim], own, x[:, self.in_dim :], learned], dim=1)
        return layer.transform(x)

    def layer(self, k: int) -> SageLayer:
        """The layer of iteration k, from 1 on."""
        layer = self.layers[k - 1]
        assert isinstance(layer, SageLayer)
        return layer

    def _num_nodes(self, tables: Sequence[Tensor]) -> int:
        if tables:
            return len(tables[0])
        assert self.identity is not None
        return self.identity.num_embeddings

"""The encoder: Algorithm 1 on a whole graph and Algorithm 2 (lines 9-15) on a minibatch, with the same layers."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from graphsage.errors import ConfigError
from graphsage.kernels.neighborhood import Minibatch, Neighborhood
from graphsage.kernels.random import derive, dropout
from graphsage.model.aggregators import aggregator_named
from graphsage.model.layer import SageLayer

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
        if len(batch.neighborhoods) != len(self.layers):
            raise ConfigError(f"the encoder has {len(self.layers)} layers, the minibatch {len(batch.neighborhoods)}")
        h = self.first(tables, batch.rows, batch.neighborhoods[0])
        for k in range(2, len(self.layers) + 1):
            neighborhood = batch.neighborhoods[k - 1]
            if self.training and self.config.dropout:
                h = dropout(h, self.config.dropout, derive(batch.neighborhoods[k - 2].keys, -k))
            h = self.above(k, h, torch.arange(neighborhood.num_rows, device=h.device), neighborhood)
        return h

    def full(self, tables: Sequence[Tensor], indptr: Tensor, indices: Tensor, keys: Tensor) -> Tensor:
        """Algorithm 1: z of every node of a graph in memory, (N, dim); `inference.exact` does it block by block."""
        rows = torch.arange(len(indptr) - 1, device=indptr.device)
        h = self.first(tables, rows, Neighborhood.ragged(indices.long(), indptr, derive(keys, 1)))
        for k in range(2, len(self.layers) + 1):
            h = self.above(k, h, rows, Neighborhood.ragged(indices.long(), indptr, derive(keys, k)))
        return h

    def first(self, tables: Sequence[Tensor], rows: Tensor, neighborhood: Neighborhood) -> Tensor:
        """Iteration k = 1, over the input tables: h^1 of `rows`, whose neighborhoods hold node numbers."""
        layer = self.layers[0]
        assert isinstance(layer, SageLayer)
        half = any(table.element_size() < 4 for table in tables)  # a sum of halves overflows and loses digits
        if half or not layer.aggregator.linear:
            nodes, where = torch.unique(torch.cat([rows, neighborhood.index.flatten()]), return_inverse=True)
            compact = neighborhood.with_index(where[len(rows) :].view(neighborhood.index.shape))
            result: Tensor = layer(self.inputs(tables, nodes), where[: len(rows)], compact)
            return result
        # An average commutes with the scaler, so the raw tables are read once and never copied.
        parts = [layer.aggregator(table, neighborhood, rows).float() for table in tables]
        averaged = self._scaled(parts, rows)
        if not layer.aggregator.includes_self:
            averaged = averaged * neighborhood.present[:, None]
        if self.identity is not None:
            averaged = torch.cat([averaged, layer.aggregator(self.identity.weight, neighborhood, rows)], dim=1)
        return layer.combine(self.inputs(tables, rows), averaged)

    def above(self, k: int, h: Tensor, rows: Tensor, neighborhood: Neighborhood) -> Tensor:
        """Iteration k >= 2, over the rows that iteration k - 1 returned."""
        result: Tensor = self.layers[k - 1](h, rows, neighborhood)
        return result

    def inputs(self, tables: Sequence[Tensor], nodes: Tensor) -> Tensor:
        """x_v of `nodes`, scaled, with the identity vector: Algorithm 1, line 1."""
        x = self._scaled([table.index_select(0, nodes).float() for table in tables], nodes)
        return x if self.identity is None else torch.cat([x, self.identity(nodes)], dim=1)

    def _scaled(self, parts: Sequence[Tensor], rows: Tensor) -> Tensor:
        if not parts:
            return self.shift.new_zeros(len(rows), 0)
        return (torch.cat(list(parts), dim=1) - self.shift) * self.scale

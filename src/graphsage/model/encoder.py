"""The encoder: K layers. Over sampled neighborhoods it is Algorithm 2, over whole ones Algorithm 1."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from graphsage.errors import ConfigError, at_least, one_of, setting
from graphsage.kernels.neighborhood import Hoods, concatenated
from graphsage.model.aggregators import AGGREGATORS, aggregator_named, make_aggregator
from graphsage.model.layer import COMBINES, SageLayer

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
    layer_norm: bool = False
    """LayerNorm before each ReLU."""
    residual: bool = False
    """Add h_v to each layer's result, or a matrix times h_v if the widths differ."""
    dropout: float = 0.0
    """Share of the results of layers 1..K - 1, and of the head's input, that is zeroed in training. What `residual`
    adds is not zeroed."""
    relations: tuple[str, ...] = ()
    """Names of the relations, whose neighbors a layer aggregates separately; empty for a single one."""
    weighted: bool = False
    """Whether the mean over neighbors is weighted by the edges."""
    identity_dim: int = 0
    """Width of a learned vector for each node. Makes the model transductive: it knows only the nodes it trained on."""

    @property
    def num_relations(self) -> int:
        return max(len(self.relations), 1)

    def __post_init__(self) -> None:
        aggregator_named(self.aggregator)
        if self.weighted and not aggregator_named(self.aggregator).reads_weights:
            reading = " or ".join(name for name, each in AGGREGATORS.items() if each.reads_weights)
            raise ConfigError(
                f"{setting('aggregator', self.aggregator)} does not read edge weights; use {reading}, or leave "
                f"{setting('edge_weight')} out"
            )
        one_of("combine", self.combine, COMBINES)
        one_of("normalize", self.normalize, NORMALIZES)
        at_least(1, self, "num_layers", "depth", "hidden_dim")
        at_least(2, self, "dim")
        at_least(0, self, "identity_dim")
        if not 0 <= self.dropout < 1:
            raise ConfigError(f"{setting('dropout')} must be at least 0 and below 1; got {self.dropout}")


class Encoder(nn.Module):
    """Maps nodes to embeddings. `shift` and `scale` are the scaler fitted on the training nodes' features."""

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
                raise ConfigError(f"{setting('identity_dim')} needs the number of nodes of the training graph")
            self.identity = nn.Embedding(num_nodes, config.identity_dim)
            nn.init.normal_(self.identity.weight, std=config.identity_dim**-0.5)
        width = in_dim + config.identity_dim
        if not width:
            raise ConfigError(
                f"the graph has no features; use {setting('degree_features', True)} or {setting('identity_dim')}"
            )
        self.layers = nn.ModuleList()
        for k in range(1, config.num_layers + 1):
            last = k == config.num_layers
            layer = SageLayer(
                width,
                config.dim,
                make_aggregator(config.aggregator, width, config.hidden_dim, config.depth),
                num_relations=config.num_relations,
                combine=config.combine,
                activation=not last or config.last_activation,
                normalize=config.normalize == "every" or (last and config.normalize == "last"),
                bias=config.bias,
                layer_norm=config.layer_norm,
                residual=config.residual,
                dropout=0.0 if last else config.dropout,
                counter=-k - 1,
            )
            self.layers.append(layer)
            width = config.dim

    def forward(self, x: Tensor, neighborhoods: Sequence[Hoods], nodes: Tensor | None = None) -> Tensor:
        """z of the rows of the last neighborhoods, (B, dim).

        x (M, in_dim) are features of M nodes, and `nodes` (M,) their numbers; only identity vectors need them.
        neighborhoods[k - 1] are those of iteration k. They index rows of x for k = 1, and rows of h^{k-1} for k > 1.
        """
        if not isinstance(neighborhoods, Sequence):
            raise ConfigError("neighborhoods must be a sequence, such as batch.neighborhoods or whole_graph(...)")
        if len(neighborhoods) != len(self.layers):
            raise ConfigError(f"the encoder has {len(self.layers)} layers; got neighborhoods for {len(neighborhoods)}")
        if x.dim() != 2 or x.shape[1] != self.in_dim:
            raise ConfigError(f"x must have {self.in_dim} columns, the encoder's in_dim; got shape {tuple(x.shape)}")
        for hoods in neighborhoods:
            self.check_relations(hoods)
        h = self.input(x, nodes)
        for layer, hoods in zip(self.layers, neighborhoods, strict=True):
            h = concatenated([layer(h, hood) for hood in hoods])
        return h

    def check_relations(self, hoods: Hoods) -> None:
        """Refuse neighborhoods of another number of relations."""
        for hood in hoods:
            if len(hood.by_relation) != self.config.num_relations:
                raise ConfigError(
                    f"the encoder aggregates {self.config.num_relations} relations; got neighborhoods of "
                    f"{len(hood.by_relation)}"
                )

    def layer(self, k: int) -> SageLayer:
        """The layer of iteration k, from 1 on."""
        layer = self.layers[k - 1]
        assert isinstance(layer, SageLayer)
        return layer

    def input(self, x: Tensor, nodes: Tensor | None = None) -> Tensor:
        """h^0: the features, scaled, then the identity vector."""
        return self.with_identity((x - self.shift) * self.scale, nodes)

    def with_identity(self, x: Tensor, nodes: Tensor | None) -> Tensor:
        """concat(x_v, identity vector of v), if the encoder has identity vectors."""
        if self.identity is None:
            return x
        if nodes is None:
            raise ConfigError(
                f"this encoder has identity vectors ({setting('identity_dim')}); give the rows of the nodes"
            )
        return torch.cat([x, self.identity(nodes)], dim=1)

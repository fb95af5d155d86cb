"""One iteration k of Algorithm 1: aggregate (line 4), combine (line 5), normalize (line 7). LayerNorm, dropout and the
skip connection are options that the paper does not have."""

import torch
from torch import Tensor, nn

from graphsage.errors import one_of
from graphsage.kernels.dropout import dropout
from graphsage.kernels.neighborhood import Hood
from graphsage.kernels.relu_l2norm import l2norm
from graphsage.model.aggregators.base import Aggregator

COMBINES = ("joint", "halves")


class SageLayer(nn.Module):
    """h^{k-1} -> h^k for the rows of a neighborhood.

    combine 'joint':  W · concat(h_v, h_N), the paper's line 5. Of several relations, W · concat(h_v, h_N1, .., h_NR):
                      the results of all relations, each with its own weights, added up.
    combine 'halves': the released code's W, block-diagonal. One half of the output sees h_v, the other h_N.
    `skip` is added at the end: h_v itself, or a matrix times h_v if the layer changes the width.
    """

    def __init__(
        self,
        in_dim: int,
        out_dim: int,
        aggregator: Aggregator,
        *,
        num_relations: int = 1,
        combine: str = "joint",
        activation: bool = True,
        normalize: bool = True,
        bias: bool = False,
        layer_norm: bool = False,
        residual: bool = False,
        dropout: float = 0.0,
        counter: int = 0,
    ) -> None:
        super().__init__()
        one_of("combine", combine, COMBINES)
        self.in_dim, self.aggregator, self.num_relations = in_dim, aggregator, num_relations
        self.activation, self.normalize = activation, normalize
        self.dropout, self.counter = dropout, counter
        self.weight: nn.Linear | BlockDiagonal
        neighbor_dim = num_relations * aggregator.out_dim
        if aggregator.includes_self:
            self.weight = nn.Linear(neighbor_dim, out_dim, bias=bias)
        elif combine == "joint":
            self.weight = nn.Linear(in_dim + neighbor_dim, out_dim, bias=bias)
        else:
            self.weight = BlockDiagonal(in_dim, neighbor_dim, out_dim, bias=bias)
        aggregator.reset_parameters()
        for module in self.weight.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)
        self.norm = nn.LayerNorm(out_dim) if layer_norm else None
        self.skip: nn.Linear | nn.Identity | None = None
        if residual:
            self.skip = nn.Identity() if in_dim == out_dim else nn.Linear(in_dim, out_dim, bias=False)

    @property
    def drops(self) -> bool:
        return self.training and self.dropout > 0

    def forward(self, h: Tensor, hood: Hood) -> Tensor:
        """h (M, D), R neighborhoods in it -> (R, D_out)."""
        h_n = [self.aggregator(h, each) for each in hood.by_relation]  # line 4: AGGREGATE, (R, A) of each relation
        own = [] if self.aggregator.includes_self else [h[hood.rows]]
        x = torch.cat([*own, *h_n], dim=1)  # line 5: CONCAT,
        y = self.weight(x)  # W, (R, D_out),
        y = y if self.norm is None else self.norm(y)
        y = torch.relu(y) if self.activation else y  # and σ
        y = l2norm(y) if self.normalize else y  # line 7
        y = dropout(y, self.dropout, hood.keys, self.counter) if self.drops else y
        return y if self.skip is None else y + self.skip(h[hood.rows])


class BlockDiagonal(nn.Module):
    """concat(W_self h_v, W_neighbor h_N): the released code's combination as one weight on concat(h_v, h_N)."""

    def __init__(self, in_dim: int, neighbor_dim: int, out_dim: int, *, bias: bool) -> None:
        super().__init__()
        self.in_dim = in_dim
        self.self_weight = nn.Linear(in_dim, out_dim - out_dim // 2, bias=bias)
        self.neighbor_weight = nn.Linear(neighbor_dim, out_dim // 2, bias=bias)

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([self.self_weight(x[:, : self.in_dim]), self.neighbor_weight(x[:, self.in_dim :])], dim=1)

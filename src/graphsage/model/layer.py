"""One iteration of Algorithm 1 for some rows: aggregate (line 4), combine (line 5), normalize (line 7)."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from graphsage.kernels.neighborhood import Neighborhood
from graphsage.model.aggregators import Aggregator


class SageLayer(nn.Module):
    """combine 'joint':  W · concat(h_v, h_N), the paper's line 5.
    combine 'halves': concat(W_self h_v, W_neigh h_N), the released code: each half of the output sees one side.

    An aggregator that includes the node itself (Equation 2) has one W and no concatenation in either.
    """

    def __init__(self, in_dim: int, out_dim: int, aggregator: Aggregator, *, combine: str, activation: bool,
                 normalize: bool, bias: bool) -> None:  # fmt: skip
        super().__init__()
        self.aggregator = aggregator
        self.activation, self.normalize = activation, normalize
        self.halves = combine == "halves" and not aggregator.includes_self
        if self.halves:
            self.self_weight = nn.Linear(in_dim, out_dim - out_dim // 2, bias=bias)
            self.neighbor_weight = nn.Linear(aggregator.out_dim, out_dim // 2, bias=bias)
        else:
            width = aggregator.out_dim if aggregator.includes_self else in_dim + aggregator.out_dim
            self.weight = nn.Linear(width, out_dim, bias=bias)
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)

    def forward(self, h: Tensor, rows: Tensor, neighborhood: Neighborhood) -> Tensor:
        """h (M, D), rows (R,) of it and their neighborhoods -> (R, D_out)."""
        return self.combine(h[rows], self.aggregator(h, neighborhood, rows))

    def combine(self, h_self: Tensor, h_neighbors: Tensor) -> Tensor:
        """Lines 5 and 7, given what line 4 returned."""
        if self.aggregator.includes_self:
            h = self.weight(h_neighbors)
        elif self.halves:
            h = torch.cat([self.self_weight(h_self), self.neighbor_weight(h_neighbors)], dim=1)
        else:
            h = self.weight(torch.cat([h_self, h_neighbors], dim=1))
        if self.activation:
            h = torch.relu(h)
        if self.normalize:
            h = F.normalize(h, dim=1)  # zero stays zero: an isolated node with h = 0 must not become NaN
        result: Tensor = h
        return result

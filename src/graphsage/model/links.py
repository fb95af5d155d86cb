"""From embeddings of two nodes to the score of a link between them."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from graphsage.kernels.dropout import dropout

HIDDEN = 64  # width of the decoder `mlp`
FIRST_SCALE = 2.0  # exp(2) = 7.4 times the cosine of unit vectors


class LinkHead(nn.Module):
    """Scores of links, (source, target), from embeddings: the higher, the more likely.

    dot        exp(scale) * uᵀ v
    bilinear   exp(scale) * (W u)ᵀ v, which can tell a source from a target; W begins as the identity
    mlp        the dot product and what a network with one hidden layer adds, from u and v side by side

    With `popularity`, a learned multiple of log(1 + the number of known links that lead to the target) is added. With
    a tower, sources are embedded by a network of their features alone (`in_dim` of them) and need no edges.
    """

    def __init__(
        self,
        dim: int,
        decoder: str = "dot",
        *,
        popularity: bool = False,
        in_dim: int | None = None,
        normalize: bool = True,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.dim, self.decoder, self.in_dim = dim, decoder, in_dim
        self.normalize, self.dropout = normalize, dropout
        self.scale = nn.Parameter(torch.tensor(FIRST_SCALE if normalize else 0.0))
        self.turn = nn.Linear(dim, dim, bias=False) if decoder == "bilinear" else None
        if self.turn is not None:
            nn.init.eye_(self.turn.weight)
        self.of_source = nn.Linear(dim, HIDDEN) if decoder == "mlp" else None
        self.of_target = nn.Linear(dim, HIDDEN, bias=False) if decoder == "mlp" else None
        self.last = nn.Linear(HIDDEN, 1, bias=False) if decoder == "mlp" else None
        if self.last is not None:
            nn.init.zeros_(self.last.weight)
        self.popularity = nn.Parameter(torch.zeros(())) if popularity else None
        self.tower = None
        if in_dim is not None:
            hidden = nn.Linear(in_dim, 2 * dim)
            self.tower = nn.Sequential(hidden, nn.LayerNorm(2 * dim), nn.ReLU(), nn.Linear(2 * dim, dim))

    def settings(self) -> dict[str, Any]:
        """The arguments that make a head of this shape."""
        return {
            "dim": self.dim,
            "decoder": self.decoder,
            "popularity": self.popularity is not None,
            "in_dim": self.in_dim,
            "normalize": self.normalize,
            "dropout": self.dropout,
        }

    def sources(self, x: Tensor, keys: Tensor | None = None) -> Tensor:
        """Embeddings of sources from their features alone, (B, D). `keys` (B,) draw the dropout."""
        assert self.tower is not None
        *first, last = self.tower
        for layer in first:
            x = layer(x)
        if self.training and self.dropout and keys is not None:
            x = dropout(x, self.dropout, keys, -1)
        z: Tensor = last(x)
        return F.normalize(z, dim=1) if self.normalize else z

    def forward(self, u: Tensor, v: Tensor, links: Tensor) -> Tensor:
        """Scores of every pair, (B, C). `links` (C,) are the known links to each of the targets v (C, D)."""
        s = self.queries(u) @ v.t()
        if self.of_source is not None and self.of_target is not None and self.last is not None:
            hidden = torch.relu(self.of_source(u)[:, None] + self.of_target(v)[None])
            s = s + self.last(hidden)[..., 0]
        return s if self.popularity is None else s + self.bias(links)

    def paired(self, u: Tensor, v: Tensor, links: Tensor) -> Tensor:
        """Scores of the pairs (u_i, v_i), (B,)."""
        s = (self.queries(u) * v).sum(dim=1)
        if self.of_source is not None and self.of_target is not None and self.last is not None:
            s = s + self.last(torch.relu(self.of_source(u) + self.of_target(v)))[:, 0]
        return s if self.popularity is None else s + self.bias(links)

    def queries(self, u: Tensor) -> Tensor:
        """Vectors whose product with a target is the score of a dot or a bilinear decoder, without the popularity."""
        turned: Tensor = (u if self.turn is None else self.turn(u)) * self.scale.exp()
        return turned

    def bias(self, links: Tensor) -> Tensor:
        assert self.popularity is not None
        return self.popularity * torch.log1p(links.to(self.popularity.dtype))

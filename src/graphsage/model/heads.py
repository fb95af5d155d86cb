"""From embeddings to class scores."""

import torch
from torch import Tensor, nn

from graphsage.kernels.dropout import dropout


class ClassHead(nn.Module):
    """A linear layer on z. `scale` learns one factor exp(log_scale) for all scores. Without it, scores of unit vectors
    are almost equal at first, and small data is learned slowly. The factor begins at exp(2) = 7.4."""

    def __init__(self, dim: int, num_classes: int, *, scale: bool = False, dropout: float = 0.0) -> None:
        super().__init__()
        self.linear = nn.Linear(dim, num_classes)
        nn.init.xavier_uniform_(self.linear.weight)
        nn.init.zeros_(self.linear.bias)
        self.log_scale = nn.Parameter(torch.tensor(2.0)) if scale else None
        self.dropout = dropout

    def forward(self, z: Tensor, keys: Tensor | None = None) -> Tensor:
        """z (B, D) -> scores (B, C). `keys` (B,) draw the dropout; without them nothing is dropped."""
        if self.training and self.dropout and keys is not None:
            z = dropout(z, self.dropout, keys, -1)
        scores: Tensor = self.linear(z if self.log_scale is None else z * self.log_scale.exp())
        return scores

"""From embeddings to class scores or to numbers."""

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


class RegressionHead(ClassHead):
    """A linear layer whose T outputs are targets in units of their deviation over the training nodes. A target that is
    constant there has the unit 0, so its value is predicted everywhere."""

    def __init__(self, dim: int, num_targets: int, *, scale: bool = False, dropout: float = 0.0) -> None:
        super().__init__(dim, num_targets, scale=scale, dropout=dropout)
        self.register_buffer("shift", torch.zeros(num_targets, dtype=torch.float64))
        self.register_buffer("unit", torch.ones(num_targets, dtype=torch.float64))
        self.shift: Tensor
        self.unit: Tensor

    def fit(self, targets: Tensor) -> None:
        """Take mean and deviation from the targets (n, T) of training nodes; NaN is unknown."""
        for column, values in enumerate(targets.t()):
            known = values[~values.isnan()]
            away = known - known.mean()
            largest = away.abs().max()
            constant = bool((known == known[0]).all()) or float(largest) == 0
            self.shift[column] = known[0] if constant else known.mean()
            self.unit[column] = 0.0 if constant else largest * (away / largest).square().mean().sqrt()

    def standardized(self, targets: Tensor) -> Tensor:
        """Targets (N, T) as the head's outputs (float32); NaN stays."""
        return ((targets - self.shift) / self.unit.where(self.unit > 0, 1.0)).float()

    def values(self, scores: Tensor) -> Tensor:
        """Outputs (B, T) as numbers in the targets' own units, float64."""
        return scores.double() * self.unit + self.shift

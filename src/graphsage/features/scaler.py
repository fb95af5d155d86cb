"""Zero mean and unit variance over the training nodes, learned in one pass of bounded memory."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from graphsage.errors import DataError

_CHUNK_NUMBERS = 1 << 22  # numbers converted to float64 at once: 32 MiB


@dataclass(frozen=True, eq=False)
class Scaler:
    """Column statistics: `mean` (D,) and `scale` (D,) float32; the scale of a constant column is 1."""

    mean: Tensor
    scale: Tensor

    def apply(self, x: Tensor) -> Tensor:
        """x (..., D) minus the mean, divided by the scale."""
        if x.shape[-1] != len(self.mean):
            raise DataError(
                f"features must have {len(self.mean)} columns, as when the scaler was fitted; got {x.shape[-1]}"
            )
        return (x - self.mean.to(x)) / self.scale.to(x)


def fit_scaler(tables: Sequence[Tensor], rows: Tensor) -> Scaler:
    """Statistics of `rows` (the training nodes) over `tables`, (N, D_i) each, concatenated."""
    if not tables:
        raise DataError("a scaler needs at least one table of features; got none")
    if len(rows) == 0:
        raise DataError("a scaler needs at least one training node; got none")
    fitted = [_fit_table(table, rows) for table in tables]
    return Scaler(torch.cat([mean for mean, _ in fitted]), torch.cat([scale for _, scale in fitted]))


def _fit_table(table: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
    width = table.shape[1]
    mean = torch.zeros(width, dtype=torch.float64, device=table.device)
    spread = torch.zeros_like(mean)  # sum of squared distances from the mean
    seen = 0
    rows = rows.to(table.device)
    size = max(1, _CHUNK_NUMBERS // max(width, 1))
    for start in range(0, len(rows), size):
        x = table[rows[start : start + size]].double()
        here = x.mean(dim=0)
        total = seen + len(x)
        # Merging means and spreads, not sums of squares, keeps the digits of columns far from zero.
        step = here - mean
        spread += (x - here).square().sum(dim=0) + step.square() * (seen * len(x) / total)
        mean += step * (len(x) / total)
        seen = total
    variance = spread / seen
    eps = torch.finfo(torch.float64).eps
    constant = variance <= seen * eps * variance + (seen * mean * eps).square()  # rounding alone may leave so much
    scale = variance.sqrt().float()
    return mean.float(), torch.where(constant | (scale == 0), 1.0, scale)

"""Limits of feature values: a multiple of the largest that training saw.

A value far beyond them makes an embedding of zeros or NaN, and poisons those of the neighbors.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from graphsage.features.pipeline import FittedFeatures
from graphsage.features.recipe import Floats

MULTIPLE = 1000.0
_CHUNK = 1 << 22  # numbers compared at once


class Beyond(NamedTuple):
    """The first value beyond its limit."""

    row: int
    column: int
    limit: float


@dataclass(frozen=True, eq=False)
class FeatureLimits:
    """`largest` (D,) are the largest magnitudes of the features among training nodes; one below 1 counts as 1."""

    largest: Tensor
    multiple: float = MULTIPLE

    def __post_init__(self) -> None:
        top = float(np.finfo(np.float32).max)
        bounds = np.maximum(self.largest.double().numpy(), 1.0) * self.multiple
        object.__setattr__(self, "_bounds", np.minimum(bounds, top).astype(np.float32))

    @property
    def bounds(self) -> Floats:
        """(D,)"""
        made: Floats = self.__dict__["_bounds"]
        return made

    def beyond(self, x: Floats | Tensor) -> Beyond | None:
        """The first value of x (N, D) that is beyond its limit or NaN."""
        if x.shape[1] != len(self.bounds):
            return None  # refused by its width elsewhere
        step = max(1, _CHUNK // max(x.shape[1], 1))
        for start in range(0, len(x), step):
            part = x[start : start + step]
            good = np.abs(part.float().numpy() if isinstance(part, Tensor) else part) <= self.bounds
            if not good.all():
                row, column = (int(each) for each in np.argwhere(~good)[0])
                return Beyond(start + row, column, float(self.bounds[column]))
        return None

    def refusal(self, found: Beyond, fitted: FittedFeatures | None) -> tuple[str, str]:
        """The column of a value, and what is wrong with it, without the value."""
        column, place = _column_of(fitted, found.column)
        return column, (
            f"{place}is beyond {found.limit:,.6g}, {self.multiple:,.6g} times the largest that the model was trained on"
        )


def _column_of(fitted: FittedFeatures | None, feature: int) -> tuple[str, str]:
    """The column that a feature is made of, and its place there if the column makes many."""
    for step in () if fitted is None else fitted.steps:
        if feature < step.width:
            return " and ".join(step.columns), f"number {feature} " if step.width > 2 else ""
        feature -= step.width
    return "features", f"number {feature} "


def largest_of(tables: list[Tensor], rows: Tensor) -> Tensor:
    """The largest magnitude in each column of `rows` of the `tables`, (N, D_i) each."""
    return torch.cat([_largest(table, rows.to(table.device)) for table in tables]).cpu() if tables else torch.zeros(0)


def _largest(table: Tensor, rows: Tensor) -> Tensor:
    top = torch.zeros(table.shape[1], device=table.device)
    step = max(1, _CHUNK // max(table.shape[1], 1))
    for start in range(0, len(rows), step):
        top = torch.maximum(top, table[rows[start : start + step]].float().abs().amax(dim=0))
    return top

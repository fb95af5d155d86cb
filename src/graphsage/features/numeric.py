"""A column of numbers -> one feature, or two where values were missing in training.

Standardising is left to the encoder's scaler, which does it for all features alike.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from graphsage.errors import BundleError
from graphsage.features.recipe import Columns, Floats, OneColumn, Rows, State, only, read_field, take
from graphsage.tables import values


@dataclass(frozen=True, kw_only=True)
class Numeric:
    """`log` takes sign(x) * log(1 + |x|) first, for columns with a heavy tail."""

    log: bool = False

    def fit(self, columns: Columns, rows: Rows) -> "FittedNumeric":
        name, column = only(columns)
        seen = values.numbers(take(column, rows), name)
        return FittedNumeric(name, self.log, values.median(seen, name, "number"), bool(np.isnan(seen).any()))


@dataclass(frozen=True)
class FittedNumeric(OneColumn):
    """A missing value becomes the training median; `indicator` adds a column that is 1 there."""

    log: bool
    median: float
    indicator: bool

    @property
    def width(self) -> int:
        return 2 if self.indicator else 1

    @property
    def kind(self) -> str:
        return "number (log)" if self.log else "number"

    def transform(self, columns: Columns) -> Floats:
        found = values.numbers(columns[self.name], self.name)
        missing = np.isnan(found)
        filled = np.where(missing, self.median, found)
        filled = np.sign(filled) * np.log1p(np.abs(filled)) if self.log else filled
        values.fits_float32(filled, self.name)
        return np.stack([filled, missing], axis=1).astype(np.float32)[:, : self.width]

    def state(self) -> State:
        return {
            "kind": "numeric",
            "name": self.name,
            "log": self.log,
            "median": self.median,
            "indicator": self.indicator,
        }, {}

    @staticmethod
    def from_state(config: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> "FittedNumeric":
        median = float(read_field(config, "median", (int, float)))
        if not np.isfinite(median):
            raise BundleError("the saved features' median is not finite; train the model again")
        return FittedNumeric(
            read_field(config, "name", str),
            read_field(config, "log", bool),
            median,
            read_field(config, "indicator", bool),
        )

"""A column of dates -> the day as a number, the year, and the month as a point on a circle."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from graphsage.errors import BundleError
from graphsage.features.recipe import Columns, Floats, OneColumn, Rows, State, only, read_field, take
from graphsage.tables import values
from graphsage.tables.messages import CellError

_FIRST, _LAST = -719_162, 2_932_896  # the years 1 to 9999


@dataclass(frozen=True)
class Dates:
    """ISO 8601 dates and times, timestamps, or numbers that already count days since 1970."""

    def fit(self, columns: Columns, rows: Rows) -> "FittedDates":
        name, column = only(columns)
        seen = values.days(take(column, rows), name)
        return FittedDates(name, values.median(seen, name, "date"), bool(np.isnan(seen).any()))


@dataclass(frozen=True)
class FittedDates(OneColumn):
    """Columns: days since 1970, year, sine and cosine of the month; with `indicator` 1 where the date is missing.
    A missing date becomes the training median."""

    median: float
    indicator: bool

    @property
    def width(self) -> int:
        return 5 if self.indicator else 4

    @property
    def kind(self) -> str:
        return "date"

    def transform(self, columns: Columns) -> Floats:
        found = values.days(columns[self.name], self.name)
        missing = np.isnan(found)
        day = np.where(missing, self.median, found)
        bad = np.flatnonzero((day < _FIRST) | (day > _LAST))
        if len(bad):
            raise CellError(self.name, int(bad[0]), "is no day of the years 1 to 9999")
        whole = np.floor(day).astype(np.int64).astype("datetime64[D]")
        months = whole.astype("datetime64[M]").astype(np.int64)  # since January 1970
        angle = 2 * np.pi * (months % 12) / 12
        parts = [day, 1970 + months // 12, np.sin(angle), np.cos(angle), missing]
        return np.stack(parts, axis=1).astype(np.float32)[:, : self.width]

    def state(self) -> State:
        return {"kind": "dates", "name": self.name, "median": self.median, "indicator": self.indicator}, {}

    @staticmethod
    def from_state(config: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> "FittedDates":
        median = float(read_field(config, "median", (int, float)))
        if not _FIRST <= median <= _LAST:
            raise BundleError("the saved features' median is no day; train the model again")
        return FittedDates(read_field(config, "name", str), median, read_field(config, "indicator", bool))

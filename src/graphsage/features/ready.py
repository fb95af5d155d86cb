"""Ready-made vectors: a matrix or a column of lists, taken as they are."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from graphsage.features.recipe import Columns, Floats, OneColumn, Rows, State, only, read_field, take
from graphsage.tables import values


@dataclass(frozen=True)
class Ready:
    def fit(self, columns: Columns, rows: Rows) -> "FittedReady":
        name, column = only(columns)
        return FittedReady(name, values.vectors(take(column, rows[:1]), name).shape[1])


@dataclass(frozen=True)
class FittedReady(OneColumn):
    width: int

    @property
    def kind(self) -> str:
        return "vector"

    def transform(self, columns: Columns) -> Floats:
        return values.vectors(columns[self.name], self.name, self.width)

    def state(self) -> State:
        return {"kind": "ready", "name": self.name, "width": self.width}, {}

    @staticmethod
    def from_state(config: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> "FittedReady":
        return FittedReady(read_field(config, "name", str), read_field(config, "width", int))

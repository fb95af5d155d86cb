"""Features of rows of a data set or a request by the model's recipes, and a store made from a data set."""

import json
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from graphsage.datasets.dataset import Dataset
from graphsage.errors import DataError
from graphsage.graph.graph import Graph
from graphsage.inference.model import Model, with_known_classes
from graphsage.live.store import create_store
from graphsage.tables import values
from graphsage.tables.messages import CellError

Floats = npt.NDArray[np.float32]


class RowError(DataError):
    """A row that features cannot be made from. `row` counts from 0; the message does not repeat its content."""

    def __init__(self, row: int, sentence: str) -> None:
        super().__init__(sentence)
        self.row = row


class NodeFeatures:
    """New nodes are given by the columns of the model's features, or by the features themselves."""

    def __init__(self, model: Model) -> None:
        self._fitted, self._limits = model.features, model.limits
        self.columns = () if model.features is None else model.features.columns
        self.width = model.num_features

    def features(self, attributes: Sequence[Mapping[str, Any] | None], ready: Sequence[Any]) -> list[Floats | None]:
        """Features of each row from its attributes or its ready vector; None if it has neither."""
        made: list[Floats | None] = [None] * len(attributes)
        asked = []
        for row, (given, vector) in enumerate(zip(attributes, ready, strict=True)):
            if vector is not None:
                made[row] = self._ready(row, vector)
            elif given is not None and self._fitted is not None and any(name in given for name in self.columns):
                asked.append(row)
        if asked:
            table = self._transformed(asked, attributes)
            self._refuse_far(asked, table)
            for row, vector in zip(asked, table, strict=True):
                made[row] = vector
        return made

    def _refuse_far(self, rows: list[int], table: Floats) -> None:
        if self._limits is not None and (far := self._limits.beyond(table)) is not None:
            column, problem = self._limits.refusal(far, self._fitted)
            raise RowError(rows[far.row], f"column {column!r} {problem}")

    def _ready(self, row: int, vector: Any) -> Floats:
        if np.shape(vector) != (self.width,):
            raise RowError(row, f"features must be {self.width} numbers")
        try:
            table = values.vectors([vector], "features", self.width)
        except CellError:
            raise RowError(row, "features must be finite and fit float32") from None
        self._refuse_far([row], table)
        made: Floats = table[0]
        return made

    def _transformed(self, rows: list[int], attributes: Sequence[Mapping[str, Any] | None]) -> Floats:
        assert self._fitted is not None
        for row in rows:
            missing = [name for name in self.columns if name not in (attributes[row] or {})]
            if missing:
                raise RowError(row, f"attributes must have {' and '.join(map(repr, self.columns))}; null for unknown")
        columns = {name: [(attributes[row] or {})[name] for row in rows] for name in self.columns}
        try:
            return self._fitted.transform(columns)
        except (ValueError, OverflowError) as error:
            problem = "attributes hold a value that the model's features cannot read"
            raise RowError(rows[getattr(error, "row", 0)], problem) from None


def fingerprint(model: Model) -> str:
    """A digest of the recipes of features: equal for models whose features can share one store."""
    recipes: dict[str, Any] = {"width": NodeFeatures(model).width}
    digest = sha256()
    if model.features is not None:
        settings, arrays = model.features.state()
        recipes["settings"] = settings
        for name in sorted(arrays):
            digest.update(name.encode() + np.ascontiguousarray(arrays[name]).tobytes())
    digest.update(json.dumps(recipes, sort_keys=True, ensure_ascii=True).encode())
    return digest.hexdigest()


def store_from_data(folder: Path, model: Model, data: Dataset, graph: Graph) -> None:
    """`graph` is that of `data` as the model reads it; the columns of `data` become the nodes' attributes."""
    wanted = NodeFeatures(model).width
    if graph.num_features != wanted:
        raise DataError(f"the model was trained on {wanted} features per node; {data.name} has {graph.num_features}")
    if model.limits is not None and graph.features is not None and (far := model.limits.beyond(graph.features)):
        column, problem = model.limits.refusal(far, model.features)
        raise DataError(f"{data.name}: column {column!r} of node {graph.id_of(far.row)!r:.60} {problem}; correct it")
    known, _ = with_known_classes(model, graph, data.name)
    rows = range(data.graph.num_nodes)
    attributes = [{name: plain(column[row]) for name, column in data.columns.items()} for row in rows]
    create_store(folder, known, attributes, fingerprint(model))


def plain(value: Any) -> Any:
    """A cell as a JSON value; numbers that are not finite are unknown."""
    if isinstance(value, np.ndarray):
        return [plain(each) for each in value.tolist()]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value if value is None or isinstance(value, str | int | float | bool | list) else str(value)

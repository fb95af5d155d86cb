"""A live graph that begins as a data set."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from graphsage.datasets.dataset import Dataset
from graphsage.errors import DataError
from graphsage.graph.graph import Graph
from graphsage.inference.export import with_known_classes
from graphsage.inference.model import Model
from graphsage.live.rows import Rows, fingerprint
from graphsage.live.store import create_store


def store_from_data(folder: Path, model: Model, data: Dataset, graph: Graph) -> None:
    """`graph` is that of `data` as the model sees it; the columns of `data` become the nodes' attributes."""
    wanted = Rows(model).width
    if graph.num_features != wanted:
        raise DataError(f"the model was trained on {wanted} features a node; {data.name} has {graph.num_features}")
    known, _ = with_known_classes(model, graph, data.name)
    create_store(folder, known, list(_attributes(data)), fingerprint(model))


def _attributes(data: Dataset) -> Iterator[dict[str, Any]]:
    names = list(data.columns)
    for row in range(data.graph.num_nodes):
        yield {name: plain(data.columns[name][row]) for name in names}


def plain(value: Any) -> Any:
    """A cell as JSON can hold it; what is not finite is unknown."""
    if isinstance(value, np.ndarray):
        return [plain(each) for each in value.tolist()]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value if value is None or isinstance(value, str | int | float | bool | list) else str(value)

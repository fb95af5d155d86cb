"""What a data set holds, as twelve letters: trials made on other edges, labels, features or splits are other trials."""

import hashlib
from typing import Any

import numpy as np
import numpy.typing as npt

from graphsage.datasets.dataset import Dataset
from graphsage.features.recipe import Column
from graphsage.graph.graph import Graph
from graphsage.graph.split import Split, training_graph


def digest(data: Dataset, graph: Graph, split: Split) -> str:
    """Of all that decides a result: the same for every format that the same nodes, in the same order, are read from, on
    every machine and with every version of the libraries.

    Features that are computed from columns, such as text by a decomposition, differ in their last digits from one
    machine to the next. For these the columns themselves count, and the recipe.
    """
    assert graph.labels is not None
    made = hashlib.sha256()
    seen = training_graph(graph.replace(features=None, labels=None), split)  # later edges are left out by their time
    for tensor in (graph.indptr, graph.indices, seen.indptr, seen.indices, graph.labels, split.codes):
        _add(made, tensor.numpy().astype(np.int64))
    if data.graph.features is not None:
        _add(made, data.graph.features.float().numpy() + np.float32(0))  # -0.0 and 0.0 are the same feature
    elif data.plan is not None:
        for step in data.plan.steps:
            made.update(repr((step.recipe, step.columns)).encode())
            for name in step.columns:
                _add_column(made, data.columns[name])
    return made.hexdigest()[:12]


def _add(made: Any, values: npt.NDArray[Any]) -> None:
    made.update(repr(values.shape).encode())
    made.update(np.ascontiguousarray(values).astype(values.dtype.newbyteorder("<"), copy=False).tobytes())


def _add_column(made: Any, values: Column) -> None:
    if isinstance(values, np.ndarray) and values.dtype.kind in "fiub":
        _add(made, values.astype(np.float64))
        return
    for value in values:
        cell = str(value).encode("utf-8", "surrogatepass")
        made.update(len(cell).to_bytes(8, "little") + cell)

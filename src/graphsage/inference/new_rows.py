"""New rows: nodes that arrived after training are attached to a graph and get features by the saved recipes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import torch
from torch import Tensor

from graphsage.datasets.table import Table, as_table
from graphsage.datasets.table_cells import cells, guess, like, reading
from graphsage.datasets.table_edges import read_edges
from graphsage.datasets.table_files import open_table
from graphsage.datasets.table_spec import ID, SOURCE, TARGET, TableSpec
from graphsage.datasets.tables import node_ids, to_arrow
from graphsage.errors import DataError
from graphsage.features import values
from graphsage.features.pipeline import FittedFeatures
from graphsage.graph.build import from_edges
from graphsage.graph.graph import Graph
from graphsage.graph.ids import NodeIds

FEATURES = "features"  # the list column of new nodes for a graph that has ready-made features and no recipe


@dataclass(frozen=True, eq=False)
class Attached:
    """`graph` has the new nodes at `rows`, in the order of their table; `ignored` columns of it say nothing."""

    graph: Graph
    rows: Tensor
    ignored: tuple[str, ...] = ()
    dropped_edges: int = 0


def attach(
    base: Graph | None,
    fitted: FittedFeatures | None,
    new_nodes: Any = None,
    new_edges: Any = None,
    spec: TableSpec | None = None,
) -> Attached:
    """`base` with new nodes and edges from tables (paths, or pandas, polars, Arrow or a dict of columns).

    Edges may join new and old nodes, and new ones among themselves. `base` has features by the same recipes as the
    model; None makes a graph of the new rows alone. `spec` is what the training tables' columns mean.
    """
    nodes, edges = _table(new_nodes, "new_nodes", spec), _table(new_edges, "new_edges", spec)
    if nodes is None and base is None:
        raise DataError("there is neither a graph nor a table of new nodes; give new_nodes")
    if base is not None and base.ids is None:  # its ids are row numbers
        base = base.replace(ids=NodeIds.of(np.arange(base.num_nodes)))
    known = None if base is None else to_arrow(list(base.ids or ()))
    ignored: tuple[str, ...] = ()
    fresh, features = None, None
    if nodes is not None:
        fresh, features, ignored = _read_nodes(nodes, base, fitted, known, spec)
    everyone = known if fresh is None else fresh if known is None else pa.concat_arrays([known, fresh])
    pairs, dropped = np.zeros((0, 2), np.int64), 0
    if edges is not None:
        source = _named(edges, None if spec is None else spec.source, SOURCE, "source")
        target = _named(edges, None if spec is None else spec.target, TARGET, "target")
        unknown = "drop" if spec is not None and spec.unknown_nodes == "drop" else "error"
        found = read_edges(edges, source, target, everyone, unknown=unknown)
        pairs, dropped = found.pairs, found.dropped
    added = 0 if fresh is None else len(fresh)
    if base is None:
        assert fresh is not None
        directed = spec is not None and spec.directed
        graph = from_edges(pairs, added, features=features, ids=fresh.to_pylist(), directed=directed)
        return Attached(graph, torch.arange(added), ignored, dropped)
    grown = base.with_nodes(features=features, edges=pairs, ids=[] if fresh is None else fresh.to_pylist())
    return Attached(grown, torch.arange(base.num_nodes, base.num_nodes + added), ignored, dropped)


def _table(data: Any, name: str, spec: TableSpec | None) -> Table | None:
    if data is None:
        return None
    if isinstance(data, str) or hasattr(data, "__fspath__"):
        return open_table(data, None if spec is None else spec.delimiter)
    return as_table(data, name)


def _read_nodes(
    table: Table, base: Graph | None, fitted: FittedFeatures | None, known: Any, spec: TableSpec | None
) -> tuple[Any, npt.NDArray[np.float32] | None, tuple[str, ...]]:
    """Ids, features and columns that were not looked at."""
    name = _named(table, None if spec is None else spec.id, ID, "id")
    ready = fitted is None and base is not None and base.features is not None
    needed = (FEATURES,) if ready else () if fitted is None else fitted.columns
    _need(table, needed)
    read = table.read(list(dict.fromkeys([name, *needed])))
    if not len(read[name]):
        raise DataError(f"{table.place} has no row; give at least one new node")
    kind = None if known is None else known.type
    fresh = node_ids(table, name, read[name])
    if kind is not None:
        fresh = like(fresh, kind, name, table.place)
        _refuse_known(table, name, fresh, known)
    columns = {column: cells(read[column]) for column in needed}
    features = None
    if ready:
        assert base is not None
        features = reading(table, values.vectors, columns[FEATURES], FEATURES, base.num_features)
    elif fitted is not None:
        features = reading(table, fitted.transform, columns)
    used = {name, *needed, *(() if spec is None else spec.columns)}
    return fresh, features, tuple(column for column in table.names if column not in used)


def _need(table: Table, needed: Sequence[str]) -> None:
    missing = [column for column in needed if column not in table.names]
    if missing:
        what = "columns" if len(missing) > 1 else "column"
        raise DataError(f"{table.place} lacks the {what} {', '.join(map(repr, missing))}, which the model's features "
                        f"need; its columns are {', '.join(map(repr, table.names[:12]))}")  # fmt: skip


def _refuse_known(table: Table, name: str, fresh: Any, known: Any) -> None:
    import pyarrow.compute as pc

    row = pc.index(pc.is_in(fresh, value_set=known), True).as_py()
    if row >= 0:
        raise DataError(f"{table.place} column {name!r} row {row + 1} is {fresh[row].as_py()!r:.60}, which the graph "
                        "has already; give only nodes that are new")  # fmt: skip


def _named(table: Table, wanted: str | None, candidates: Sequence[str], what: str) -> str:
    """The column as it was called in training, or one with an obvious name."""
    return guess(table, wanted if wanted in table.names else None, candidates, what)

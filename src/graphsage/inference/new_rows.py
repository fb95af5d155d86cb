"""New rows: nodes that arrived after training are attached to a graph and get features by the saved recipes."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import torch
from torch import Tensor

from graphsage.datasets.file_readers import read_vector_file
from graphsage.errors import DataError, DataWarning, setting
from graphsage.features.limits import FeatureLimits
from graphsage.features.pipeline import FittedFeatures
from graphsage.graph.build import from_edges
from graphsage.graph.graph import Graph
from graphsage.graph.ids import NodeIds
from graphsage.tables import values
from graphsage.tables.columns import TimeScale, cells
from graphsage.tables.ids import arrow_ids, like, node_ids, read_edges
from graphsage.tables.memory import edge_attributes
from graphsage.tables.messages import CellError, listed
from graphsage.tables.source import Table, as_table
from graphsage.tables.spec import ID, SOURCE, TARGET, TableSpec, guess, is_vector_file

FEATURES = "features"  # the list column of new nodes for a graph that has ready-made features and no recipe


@dataclass(frozen=True, eq=False)
class Attached:
    """`graph` has the new nodes at `rows`, in the order of their table; `ignored` columns of it are not used."""

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
    new_vectors: Any = None,
    limits: FeatureLimits | None = None,
    types: Sequence[str] = (),
    scale: TimeScale | None = None,
) -> Attached:
    """`base` with new nodes and edges from tables (paths, or pandas, polars, Arrow or a dict of columns).

    Edges may join new and old nodes, and new ones among themselves. `base` has features by the same recipes as the
    model; None makes a graph of the new rows alone. `spec` is what the training tables' columns mean. `new_vectors` are
    matrices of the new nodes, arrays or `.npy` or `.npz` files, in place of the files that the model was trained with.
    New features beyond `limits` are refused, and so are edges of other types than `types`, if there are any, and times
    of edges that are not on the `scale` of those of the training tables.
    """
    spec = TableSpec(edges="edges") if spec is None else spec
    nodes = None if new_nodes is None else as_table(new_nodes, "new_nodes", spec.delimiter)
    edges = None if new_edges is None else as_table(new_edges, "new_edges", spec.delimiter)
    if nodes is None and base is None:
        raise DataError("there is neither a graph nor a table of new nodes; give new_nodes")
    if base is not None and base.ids is None:  # its ids are row numbers
        base = base.replace(ids=NodeIds.of(np.arange(base.num_nodes)))
    known = None if base is None else arrow_ids(list(base.ids or ()))
    ignored: tuple[str, ...] = ()
    fresh, features = None, None
    if nodes is not None:
        fresh, features, ignored = _read_nodes(nodes, base, fitted, known, spec, new_vectors, limits)
    elif new_vectors is not None:
        raise DataError(f"{setting('new_vectors')} describe new nodes; give {setting('new_nodes')} too")
    everyone = known if fresh is None else fresh if known is None else pa.concat_arrays([known, fresh])
    pairs, dropped, about = np.zeros((0, 2), np.int64), 0, dict[str, Any]()
    if edges is not None:
        ends = _named(edges, spec.source, SOURCE, "source"), _named(edges, spec.target, TARGET, "target")
        owners = [name for name, ids in (("the graph", known), ("the new nodes", fresh)) if ids is not None]
        lacking = (
            f"neither {' nor '.join(owners)} have"
            if len(owners) > 1
            else f"{owners[0]} {'do' if known is None else 'does'} not have"
        )
        unknown = "drop" if spec.unknown_nodes == "drop" else "error"
        edges.need([name for name in (spec.edge_type, spec.edge_weight) if name is not None])
        there = [name for name in spec.edge_columns if name in edges.names]  # times are needed for as_of alone
        found = read_edges(edges, ends, everyone, unknown, there, lacking)
        about = edge_attributes(edges, spec, found, scale, types)
        about.pop("edge_scale", None)
        if "edge_type" in about:
            about["edge_type"] = np.array(about["edge_type"][1], object)[about["edge_type"][0]]
        pairs, dropped = found.pairs, found.dropped
        _warn_of_unattached(pairs, 0 if known is None else len(known), 0 if fresh is None else len(fresh))
        ignored += tuple(name for name in edges.names if name not in (*ends, *spec.edge_columns))
    added = 0 if fresh is None else len(fresh)
    if base is None:
        assert fresh is not None
        if types or spec.edge_type is not None:
            about = {"edge_type": [], **about, "edge_types": types or None}
        if spec.edge_weight is not None:
            about = {"edge_weight": np.zeros(0), **about}
        graph = from_edges(pairs, added, features=features, ids=fresh.to_pylist(), direction=spec.direction, **about)
        return Attached(graph, torch.arange(added), ignored, dropped)
    grown = base.with_nodes(features=features, edges=pairs, ids=[] if fresh is None else fresh.to_pylist(), **about)
    return Attached(grown, torch.arange(base.num_nodes, base.num_nodes + added), ignored, dropped)


def _warn_of_unattached(pairs: npt.NDArray[np.int64], old: int, new: int) -> None:
    """`pairs` are rows of nodes; the `old` nodes come before the `new` ones."""
    lone = new - len(np.unique(pairs[pairs >= old]))
    if lone:
        between = int((pairs < old).all(axis=1).sum())
        joined = f"; {between:,} of {len(pairs):,} new edges join two nodes of the graph" if between else ""
        warnings.warn(f"{lone:,} of {new:,} new nodes have no edge{joined}", DataWarning, stacklevel=5)


def _read_nodes(
    table: Table,
    base: Graph | None,
    fitted: FittedFeatures | None,
    known: Any,
    spec: TableSpec,
    new_vectors: Any,
    limits: FeatureLimits | None,
) -> tuple[Any, npt.NDArray[np.float32] | None, tuple[str, ...]]:
    """Ids, features and columns that were not looked at."""
    name = _named(table, spec.id, ID, "id")
    ready = fitted is None and base is not None and base.features is not None
    needed = (FEATURES,) if ready else () if fitted is None else fitted.columns
    vectors = _vectors((FEATURES,) if ready else spec.vectors, table, new_vectors)
    missing = [column for column in needed if column not in (*table.names, *vectors)]
    if missing:
        what = "columns" if len(missing) > 1 else "column"
        raise DataError(
            f"{table} lacks the {what} {listed(missing)}, which the model's features need; its columns "
            f"are {listed(table.names)}"
        )
    read = table.with_missing(spec.missing, (name,)).read(
        list(dict.fromkeys([name, *(column for column in needed if column not in vectors)]))
    )
    if not len(read[name]):
        raise DataError(f"{table} has no row; give at least one new node")
    fresh = node_ids(read[name], name, table.place)
    for column, matrix in vectors.items():
        if len(matrix) != len(fresh):
            counts = f"{len(matrix)} rows, but {table} has {len(fresh)}"
            raise DataError(f"{setting('new_vectors')}: {column} has {counts}; they must match")
    features = None
    with table.place.naming():
        if known is not None:
            fresh = like(fresh, known.type, name)
            row = pc.index(pc.is_in(fresh, value_set=known), True).as_py()
            if row >= 0:
                problem = f"is {fresh[row].as_py()!r:.60}, which the graph has already; give only nodes that are new"
                raise CellError(name, row, problem)
        found = vectors | {column: cells(read[column]) for column in needed if column not in vectors}
        if ready:
            assert base is not None
            features = values.vectors(found[FEATURES], FEATURES, base.num_features)
        elif fitted is not None:
            features = fitted.transform(found)
        far = None if limits is None or features is None else limits.beyond(features)
        if far is not None and limits is not None:
            column, problem = limits.refusal(far, fitted)
            raise CellError(column, far.row, f"(node {fresh[far.row].as_py()!r:.60}) {problem}; correct it")
    used = {name, *needed, *spec.columns}
    return fresh, features, tuple(column for column in table.names if column not in used)


def _vectors(trained: Sequence[str], table: Table, given: Any) -> dict[str, Any]:
    """Matrices by the names of the columns that they replace: those of `trained` that are files, in their order."""
    if given is None:
        return {}
    stems = (Path(name).stem for name in trained if name == FEATURES or is_vector_file(name))
    files = [stem for stem in stems if stem not in table.names]
    each = [given] if isinstance(given, str | Path) or hasattr(given, "ndim") else list(given)
    if len(each) != len(files):
        wanted = f"{len(files)} ({', '.join(files)})" if files else "none"
        raise DataError(f"{setting('new_vectors')}: the model needs {wanted}, as it was trained; got {len(each)}")
    matrices = (read_vector_file(Path(one)) if isinstance(one, str | Path) else np.asarray(one) for one in each)
    return dict(zip(files, matrices, strict=True))


def _named(table: Table, wanted: str | None, candidates: Sequence[str], what: str) -> str:
    """The column as it was called in training, or one with an obvious name."""
    return guess(table, wanted if wanted in table.names else None, candidates, what)

"""Two tables -> a data set: nodes with their columns, edges between them, labels, times and splits."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import torch

from graphsage.datasets.dataset import Dataset
from graphsage.datasets.table import Table
from graphsage.datasets.table_cells import cells, guess, ids, number_cells, reading
from graphsage.datasets.table_edges import Edges, read_edges
from graphsage.datasets.table_files import open_table
from graphsage.datasets.table_labels import Labels, read_labels
from graphsage.datasets.table_plan import feature_plan, read_feature
from graphsage.datasets.table_spec import ID, SOURCE, TARGET, TableSpec, is_vector_file
from graphsage.datasets.table_splits import read_split, time_split
from graphsage.datasets.table_time import TimeScale
from graphsage.datasets.vector_files import read_vector_file
from graphsage.errors import ConfigError, DataError
from graphsage.features.recipe import Column
from graphsage.graph.build import from_edges
from graphsage.graph.ids import NodeIds
from graphsage.graph.split import Split


def open_tables(spec: TableSpec) -> Dataset:
    """The data set that `spec` describes. Splits: `given` (a split column), `time` (a time column) and `random`; the
    first of them that there is, is the default."""
    nodes = None if spec.nodes is None else open_table(spec.nodes, spec.delimiter)
    edges = open_table(spec.edges, spec.delimiter)
    source, target = edge_columns(edges, spec)
    read, known = ({}, None) if nodes is None else _read_nodes(nodes, spec)
    if known is not None and not len(known):
        raise DataError(f"{spec.nodes} has no row below its header; a graph needs at least one node")
    if spec.edge_time is not None:
        edges.need([spec.edge_time])
    found = read_edges(edges, source, target, known, unknown=spec.unknown_nodes, time=spec.edge_time)
    n = 0 if found.known is None else len(found.known)
    if n == 0:
        raise DataError(f"{spec.edges if nodes is None else spec.nodes} has no row; a graph needs at least one node")
    added = 0 if known is None else n - len(known)
    if added and spec.time is not None:
        raise ConfigError(f"unknown_nodes add: {added} nodes would have no time; leave time out, or drop them")
    columns = _feature_columns(nodes, spec, read, added)
    labels = None
    if nodes is not None and spec.label is not None:
        labels = _labels(nodes, spec, read[spec.label], added)
    time, edge_time, scale = _times(nodes, edges, spec, read, found)
    graph = from_edges(
        found.pairs,
        n,
        labels=None if labels is None else labels.numbers,
        class_names=None if labels is None else labels.names,
        ids=NodeIds.of(found.known.to_pylist()),
        time=time,
        edge_time=edge_time,
        directed=spec.directed,
    )
    splits = {}
    if nodes is not None and spec.split_column is not None:
        name = spec.split_column
        splits["given"] = reading(nodes, read_split, _padded(cells(read[name]), added), name)
    if graph.time is not None and scale is not None:
        splits["time"] = time_split(graph.time, scale, spec)
    splits["random"] = Split.random(n, spec.fractions, spec.split_seed)
    return Dataset(spec.name, graph, splits, next(iter(splits)), columns=columns, plan=feature_plan(spec),
                   dropped_edges=found.dropped, place=None if spec.nodes is None else str(spec.nodes),
                   about={"data": spec.name, "tables": spec.lasting().as_dict()})  # fmt: skip


def edge_columns(table: Table, spec: TableSpec) -> tuple[str, str]:
    """The names of the source and target columns."""
    source = guess(table, spec.source, SOURCE, "source")
    target = guess(table, spec.target, TARGET, "target")
    if source == target:
        raise ConfigError(f"{table.place}: source and target are the same column, {source!r}")
    return source, target


def node_ids(table: Table, name: str, array: Any) -> Any:
    """The ids of a node table, checked to be different."""
    found = ids(array, name, table.place)
    if len(found.unique()) < len(found):
        rows: dict[Any, list[int]] = {}
        for row, value in enumerate(found.to_pylist(), 1):
            rows.setdefault(value, []).append(row)
        twice = {value: places for value, places in rows.items() if len(places) > 1}
        shown = [f"{value!r:.60} (rows {', '.join(map(str, p[:3]))})" for value, p in list(twice.items())[:3]]
        count = f"{len(twice)} ids more than once" if len(twice) > 1 else "an id more than once"
        raise DataError(f"{table.place} column {name!r} has {count}: {', '.join(shown)}; ids must differ")
    return found


def _read_nodes(table: Table, spec: TableSpec) -> tuple[dict[str, Any], Any]:
    """The Arrow columns that are needed, and the ids."""
    name = guess(table, spec.id, ID, "id")
    named = [c for c in (spec.label, spec.time, spec.split_column) if c is not None]
    used = [c for c in spec.features if not is_vector_file(c)]
    for column in used:
        if column == name:
            raise ConfigError(f"column {column!r} of {table.place} is the id; it cannot be a feature too")
    read = table.read(list(dict.fromkeys([name, *named, *used])))
    return read, node_ids(table, name, read[name])


def _feature_columns(nodes: Table | None, spec: TableSpec, read: dict[str, Any], added: int) -> dict[str, Column]:
    columns: dict[str, Column] = {}
    if nodes is None:
        return columns
    for kind, name in [(kind, name) for kind, names in _kinds(spec) for name in names]:
        if kind == "vectors" and is_vector_file(name):
            stem, matrix = Path(name).stem, read_vector_file(Path(name))
            rows = len(next(iter(read.values())))
            if len(matrix) != rows:
                raise DataError(f"{name} has {len(matrix)} rows, but {nodes.place} has {rows}; they must match")
            if stem in columns or stem in read:
                raise ConfigError(f"{name} would be the column {stem!r}, which there is already; rename the file")
            columns[stem] = matrix
        else:
            column = number_cells(read[name]) if kind == "numeric" else cells(read[name])
            columns[name] = reading(nodes, read_feature, kind, column, name)
        if added and kind == "vectors":
            raise ConfigError(f"unknown_nodes add: {added} nodes would have no vector ({name}); drop them")
    return {name: _padded(column, added) for name, column in columns.items()}


def _kinds(spec: TableSpec) -> list[tuple[str, tuple[str, ...]]]:
    return [("text", spec.text), ("numeric", spec.numeric), ("numeric", spec.log_numeric),
            ("categorical", spec.categorical), ("dates", spec.dates), ("vectors", spec.vectors)]  # fmt: skip


def _labels(nodes: Table, spec: TableSpec, array: Any, added: int) -> Labels:
    name = spec.label or ""
    column = _padded(cells(array), added)
    labels = reading(nodes, read_labels, column, name, spec.label_separator, spec.multilabel)
    if not labels.names:
        raise DataError(f"{nodes.place} column {name!r} has no label in any row; choose another label, or none")
    return labels


def _times(
    nodes: Table | None, edges: Table, spec: TableSpec, read: dict[str, Any], found: Edges
) -> tuple[npt.NDArray[np.int64] | None, npt.NDArray[np.int64] | None, TimeScale | None]:
    time = edge_time = scale = None
    if nodes is not None and spec.time is not None:
        name, values = spec.time, cells(read[spec.time])
        scale = reading(nodes, TimeScale.of, values, name, spec.time_order)
        time = reading(nodes, scale.read, values, name)
    if spec.edge_time is not None and found.time is not None:
        name, values = spec.edge_time, found.time
        ruler = scale or reading(edges, TimeScale.of, values, name, spec.time_order)
        edge_time = reading(edges, ruler.read, values, name)
    return time, edge_time, scale


def _padded(column: Column, added: int) -> Column:
    """`column` with missing values for nodes that only the edges know."""
    return [*column, *[None] * added] if added else column


def new_labels_only_in(data: Dataset, split: Split, part: str = "test") -> dict[str, int]:
    """Classes of `part` that no training node has, with their number of nodes: no model can know them."""
    graph = data.graph
    if graph.labels is None:
        return {}
    names: Sequence[str] = graph.class_names or tuple(map(str, range(graph.num_classes)))
    counts = []
    for nodes in (split.nodes("train"), split.nodes(part)):
        labels = graph.labels[nodes]
        summed = (
            labels.long().sum(dim=0) if graph.multilabel else torch.bincount(labels[labels >= 0], minlength=len(names))
        )
        counts.append(summed.tolist())
    return {name: here for name, seen, here in zip(names, *counts, strict=True) if here and not seen}


def to_arrow(values: Sequence[str | int]) -> Any:
    """Ids of a graph as the Arrow array that edges are looked up in."""
    return pa.array(values, pa.int64() if values and isinstance(values[0], int) else pa.large_string())

"""Two tables, read into memory: ids, edges as pairs of rows, labels, times, parts and the columns of features."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from graphsage.errors import ConfigError, DataError, setting
from graphsage.tables.columns import (
    Labels,
    TimeScale,
    read_edge_types,
    read_labels,
    read_split,
    read_targets,
    read_weights,
)
from graphsage.tables.ids import Edges, node_ids, read_edges
from graphsage.tables.messages import CellError, Place
from graphsage.tables.source import Table, as_table
from graphsage.tables.spec import TableSpec, is_vector_file


@dataclass(frozen=True)
class ReadTables:
    """`columns` by name, with missing cells for `added` nodes, which only edges name. `place` is the node table."""

    spec: TableSpec
    place: Place | None
    columns: dict[str, Any]
    edges: Edges
    added: int
    labels: Labels | None = None
    split: npt.NDArray[np.uint8] | None = None
    time: npt.NDArray[np.int64] | None = None
    edge_time: npt.NDArray[np.int64] | None = None
    edge_type: tuple[npt.NDArray[np.int64], tuple[str, ...]] | None = None
    """A number for each edge, and the types' names."""
    edge_weight: npt.NDArray[np.float64] | None = None
    scale: TimeScale | None = None
    edge_scale: TimeScale | None = None
    remarks: tuple[str, ...] = ()
    """What may not be meant, one sentence each."""


def read_tables(spec: TableSpec, parts: Mapping[str, int], extra: Sequence[str] = ()) -> ReadTables:
    """`parts` are the codes of train, val, test and ''; `extra` columns of the node table are read as well."""
    nodes = None if spec.nodes is None else as_table(spec.nodes, "nodes", spec.delimiter)
    edges = as_table(spec.edges, "edges", spec.delimiter)
    ends = spec.ends(edges)
    columns: dict[str, Any] = {}
    known = None
    if nodes is not None:
        spec = spec.for_nodes(nodes)
        files = [name for name in spec.vectors if is_vector_file(name)]
        assert spec.id is not None
        nodes = nodes.with_missing(spec.missing, (spec.id,))
        columns = nodes.read([name for name in dict.fromkeys([*spec.columns, *extra]) if name not in files])
        known = node_ids(columns[spec.id], spec.id, nodes.place)
        if not len(known):
            raise DataError(f"{nodes} has no row; a graph needs at least one node")
    edges.need(spec.edge_columns)
    edges = edges.with_missing(spec.missing, ends)
    found = read_edges(edges, ends, known, spec.unknown_nodes, spec.edge_columns)
    if found.known is None:
        raise DataError(f"{edges} has no row; a graph needs at least one node")
    added = 0 if known is None else len(found.known) - len(known)
    if added and spec.time is not None:
        raise ConfigError(
            f"{setting('unknown_nodes', 'add')}: {added} nodes would have no time; "
            f"leave {setting('time')} out, or drop them"
        )
    if added:
        columns = {name: pa.concat_arrays([a, pa.nulls(added, a.type)]) for name, a in columns.items()}
    made: dict[str, Any] = {}
    if nodes is not None:
        with nodes.place.naming():
            made = _roles(spec, columns, parts)
    made |= edge_attributes(edges, spec, found, made.get("scale"))
    labels = made.get("labels")
    place = None if nodes is None else nodes.place
    remarks = [f"{place} {remark}" for remark in ([] if labels is None else labels.remarks)]
    made["remarks"] = (*spec.unused(nodes, edges, extra), *remarks)
    return ReadTables(spec, place, columns, found, added, **made)


def _roles(spec: TableSpec, columns: dict[str, Any], parts: Mapping[str, int]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    if spec.label_type == "number" and spec.label is not None:
        made["labels"] = read_targets({name: columns[name] for name in spec.label_columns})
    elif spec.label is not None:
        made["labels"] = read_labels(columns[spec.label], spec.label, spec.label_separator, spec.label_type)
    if spec.time is not None:
        made["scale"] = scale = TimeScale.of(columns[spec.time], spec.time, spec.time_order)
        made["time"] = scale.read(columns[spec.time], spec.time)
    if spec.split_column is not None:
        made["split"] = split = read_split(columns[spec.split_column], spec.split_column, parts)
        if parts["train"] not in split:
            raise DataError(f"column {spec.split_column!r} puts no row into train")
    return made


def edge_attributes(
    table: Table, spec: TableSpec, found: Edges, scale: TimeScale | None = None, types: Sequence[str] = ()
) -> dict[str, Any]:
    """`edge_time` and its `edge_scale`, `edge_type` and `edge_weight` of edges that were read, as far as `spec` names
    their columns. Times are on the given scale, and `types` are the edge types that there may be; by default those of
    the column."""
    made: dict[str, Any] = {}

    def time(array: Any, name: str) -> npt.NDArray[np.int64]:
        made["edge_scale"] = used = scale or TimeScale.of(array, name, spec.time_order)
        return used.read(array, name)

    readers = {
        "edge_time": time,
        "edge_type": lambda array, name: read_edge_types(array, name, types),
        "edge_weight": read_weights,
    }
    with table.place.naming():
        for role, read in readers.items():
            name = getattr(spec, role)
            if name not in found.columns:
                continue
            try:
                made[role] = read(found.columns[name], name)
            except CellError as error:  # count the edges that were dropped
                raise CellError(name, int(found.kept[error.row]), error.problem) from None
    return made

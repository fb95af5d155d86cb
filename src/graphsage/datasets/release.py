"""The format of the GraphSAGE release: PREFIX-G.json, -feats.npy (optional), -id_map.json and -class_map.json.

G.json is a graph in node-link form whose nodes carry `val` and `test` marks. `id_map` gives a node's row in feats,
`class_map` its class (a number) or its labels (a list of 0 and 1). Both are keyed by the id written as a string.
"""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from graphsage.datasets.dataset import Dataset
from graphsage.datasets.file_readers import (
    check_count,
    read_classes,
    read_column,
    read_features,
    read_json,
    read_list,
    read_table,
)
from graphsage.errors import DataError
from graphsage.graph.build import from_edges
from graphsage.graph.split import NONE, TEST, TRAIN, VAL, Split

PARTS = ("-G.json", "-id_map.json", "-class_map.json")


def is_release(prefix: Path) -> bool:
    """Whether `prefix` begins the names of the release's files; one that is missing is reported by `load_release`."""
    return any(_part(prefix, part).is_file() for part in PARTS)


def load_release(prefix: str | Path) -> Dataset:
    """Nodes keep the order of G.json; a node with neither mark is in no part of the split `given`."""
    prefix = Path(prefix)
    graph_file, id_file, class_file = (_part(prefix, part) for part in PARTS)
    content = read_json(graph_file)
    nodes = read_list(content, ("nodes",), graph_file)
    ids = _ids(nodes, graph_file)
    split = _split(nodes, graph_file)
    edges = _edges(read_list(content, ("links", "edges"), graph_file), ids, graph_file)
    id_map = read_json(id_file)
    rows = _rows(id_map, ids, id_file)
    feature_file = _part(prefix, "-feats.npy")
    features = None
    if feature_file.is_file():
        check_count(feature_file, len(read_table(feature_file)), len(id_map), id_file.name)
        features = read_features(feature_file, rows)
    graph = from_edges(
        edges,
        len(ids),
        features=features,
        labels=read_classes(class_file, ids, np.ones(len(ids), bool) if split is None else split.codes.numpy() != NONE),
        ids=None if ids == list(range(len(ids))) else ids,
        directed=bool(content.get("directed", False)),
    )
    splits = {} if split is None else {"given": split}
    return Dataset(prefix.name, graph, splits, "random" if split is None else "given")


def _part(prefix: Path, part: str) -> Path:
    return prefix.with_name(prefix.name + part)


def _ids(nodes: list[dict[str, Any]], path: Path) -> list[Any]:
    ids = read_column(nodes, "id", path, "nodes")
    if not ids:
        raise DataError(f"{path} has no nodes")
    for row, value in enumerate(ids):
        if not isinstance(value, int | str) or isinstance(value, bool):
            raise DataError(f"{path}: nodes row {row} has the id {value!r}; ids must be integers or strings")
    if len({str(value) for value in ids}) < len(ids):  # as strings, since the maps are keyed by strings
        seen: set[str] = set()
        for row, value in enumerate(ids):
            if str(value) in seen:
                raise DataError(f"{path}: nodes row {row} repeats the id {value!r}")
            seen.add(str(value))
    return ids if len({type(value) for value in ids}) == 1 else [str(value) for value in ids]


def _split(nodes: list[dict[str, Any]], path: Path) -> Split | None:
    """None where no node carries a mark."""
    codes = []
    for row, node in enumerate(nodes):
        val, test = bool(node.get("val")), bool(node.get("test"))
        if val and test:
            raise DataError(f"{path}: nodes row {row} is marked val and test; a node belongs to one part")
        marked = "val" in node or "test" in node
        codes.append(VAL if val else TEST if test else TRAIN if marked else NONE)
    if all(code == NONE for code in codes):
        return None
    return Split(torch.tensor(codes, dtype=torch.uint8))


def _edges(links: list[dict[str, Any]], ids: list[Any], path: Path) -> npt.NDArray[np.int64]:
    """Rows of each link's ends.

    Ends are ids. Only where ids are strings and the ends are numbers that are no ids are they positions in the list of
    nodes: networkx 1 wrote graphs so, the release's Reddit among them.
    """
    ends = [end for key in ("source", "target") for end in read_column(links, key, path, "links")]
    row_of = {value: row for row, value in enumerate(ids)}
    if isinstance(ids[0], str):
        numbers = all(type(end) is int for end in ends)
        if numbers and not all(str(end) in row_of for end in ends):
            row_of = {row: row for row in range(len(ids))}
        elif any(type(end) is int for end in ends):
            ends = [str(end) if type(end) is int else end for end in ends]
    try:
        rows = [row_of[end] for end in ends]
    except (KeyError, TypeError):
        bad = next(i for i, end in enumerate(ends) if not isinstance(end, int | str) or end not in row_of)
        raise DataError(
            f"{path}: links row {bad % len(links)} points at {ends[bad]!r}, which is not among the {len(ids)} nodes"
        ) from None
    return np.array(rows, np.int64).reshape(2, -1).T


def _rows(id_map: dict[str, Any], ids: list[Any], path: Path) -> npt.NDArray[np.int64]:
    """The row of feats for each node."""
    rows = []
    for value in ids:
        row = id_map.get(str(value))
        if type(row) is not int or not 0 <= row < len(id_map):
            what = (
                f"maps it to {row!r}, not to 0 to {len(id_map) - 1}" if str(value) in id_map else "has no entry for it"
            )
            raise DataError(f"node {value!r}: {path} {what}")
        rows.append(row)
    order = np.array(rows, np.int64)
    values, counts = np.unique(order, return_counts=True)
    if len(values) < len(order):
        raise DataError(f"{path} maps two nodes to row {values[counts > 1][0]}")
    return order

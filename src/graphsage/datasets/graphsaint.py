"""GraphSAINT's folder: adj_full.npz, role.json, class_map.json, feats.npy.

adj_train.npz is the part of adj_full.npz among training nodes; `training_graph` computes that, so it is not read.
"""

from pathlib import Path
from typing import Any

import numpy as np
import torch

from graphsage.datasets.dataset import Dataset
from graphsage.datasets.file_readers import check_count, naming, read_json, read_table, undirected
from graphsage.errors import DataError
from graphsage.graph.npz import Archive, read_sparse
from graphsage.graph.split import NONE, TEST, TRAIN, VAL, Split

ROLES = {"tr": TRAIN, "va": VAL, "te": TEST}


def is_graphsaint(folder: Path) -> bool:
    return (folder / "adj_full.npz").is_file() and (folder / "role.json").is_file()


def load_graphsaint(folder: Path) -> Dataset:
    """Undirected, with the roles as the split `given`; features stay in their file where they are float32."""
    adjacency_file, feature_file = folder / "adj_full.npz", folder / "feats.npy"
    adjacency = read_sparse(Archive(adjacency_file))
    n = int(adjacency.shape[0])
    features = None
    if feature_file.is_file():
        features = read_table(feature_file)
        check_count(feature_file, len(features), n, adjacency_file.name)
    labels = _labels(folder / "class_map.json", n)
    with naming(folder):
        graph = undirected(adjacency, features=features, labels=labels)
    return Dataset(folder.resolve().name, graph, {"given": _split(folder / "role.json", n)}, "given")


def _split(path: Path, n: int) -> Split:
    roles = read_json(path)
    codes = torch.full((n,), NONE, dtype=torch.uint8)
    for role, code in ROLES.items():
        rows = roles.get(role)
        if not isinstance(rows, list):
            raise DataError(f"{path} must have a list of nodes as {role!r}")
        bad = next((row for row in rows if type(row) is not int or not 0 <= row < n), None)
        if bad is not None:
            raise DataError(f"{path}: {role} names node {bad!r}; nodes are 0 to {n - 1}")
        chosen = torch.tensor(rows, dtype=torch.int64)
        if bool((codes[chosen] != NONE).any()):
            raise DataError(f"{path}: {role} names a node that has another role")
        codes[chosen] = code
    return Split(codes)


def _labels(path: Path, n: int) -> Any:
    """Classes (N,), -1 where the map has none, or labels (N, C), of which each node must have a row."""
    classes = read_json(path)
    values = [classes.get(str(row)) for row in range(n)]
    sample = next((value for value in values if value is not None), None)
    if not isinstance(sample, list):
        odd = next((row for row, value in enumerate(values) if value is not None and type(value) is not int), None)
        if odd is not None:
            raise DataError(f"{path}: the class of node {odd} must be a whole number; got {str(values[odd])[:40]}")
        return np.array([-1 if value is None else value for value in values], np.int64)
    for row, value in enumerate(values):
        if not isinstance(value, list) or len(value) != len(sample) or not {*value} <= {0, 1}:
            raise DataError(f"{path}: node {row} must have {len(sample)} labels of 0 and 1; got {str(value)[:40]}")
    return np.array(values, np.uint8)

"""GraphSAINT's folder: adj_full.npz, role.json, class_map.json, feats.npy.

adj_train.npz is the part of adj_full.npz among training nodes; `training_graph` computes that, so it is not read.
"""

from pathlib import Path

import numpy as np
import torch

from graphsage.datasets.dataset import Dataset
from graphsage.datasets.file_readers import check_count, naming, read_classes, read_json, read_table, undirected
from graphsage.errors import DataError
from graphsage.graph.npz import Archive, read_sparse
from graphsage.graph.split import NONE, TEST, TRAIN, VAL, Split

ROLES = {"tr": TRAIN, "va": VAL, "te": TEST}


def is_graphsaint(folder: Path) -> bool:
    return (folder / "adj_full.npz").is_file() and (folder / "role.json").is_file()


def load_graphsaint(folder: Path) -> Dataset:
    """Undirected, with the roles as split `given`; missing classes are unknown. Float32 features stay in their file."""
    adjacency_file, feature_file = folder / "adj_full.npz", folder / "feats.npy"
    adjacency = read_sparse(Archive(adjacency_file))
    n = int(adjacency.shape[0])
    features = None
    if feature_file.is_file():
        features = read_table(feature_file)
        check_count(feature_file, len(features), n, adjacency_file.name)
    labels = read_classes(folder / "class_map.json", range(n), np.zeros(n, bool))
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

"""Reddit as PyG and DGL download it: reddit_data.npz and reddit_graph.npz. The release's own form is `release`.

reddit_data.npz    feature (N, 602), label (N,), node_types (N,): 1 train, 2 validation, 3 test, node_ids (N,)
reddit_graph.npz   the adjacency as scipy.sparse.save_npz writes it
"""

from pathlib import Path

import numpy as np
import torch

from graphsage.datasets.dataset import Dataset
from graphsage.datasets.file_readers import check_count, naming, undirected
from graphsage.errors import DataError
from graphsage.graph.npz import Archive, Array, read_sparse
from graphsage.graph.split import NONE, Split

DATA, GRAPH = "reddit_data.npz", "reddit_graph.npz"


def is_reddit(folder: Path) -> bool:
    return (folder / DATA).is_file()


def load_reddit(folder: Path) -> Dataset:
    """Undirected, with node_types as the split `given`. Arrays stored without compression are mapped, not read."""
    data = Archive(folder / DATA)
    types, features, labels = (data.array(name) for name in ("node_types", "feature", "label"))
    adjacency = read_sparse(Archive(folder / GRAPH))
    n = int(adjacency.shape[0])
    for array in (types, features, labels):
        check_count(data.path, len(array) if array.ndim else 0, n, GRAPH)
    if types.ndim != 1 or not np.isin(types, (0, 1, 2, 3)).all():
        raise DataError(f"{data.path}: node_types must be 1 (train), 2 (validation) or 3 (test)")
    with naming(data.path):
        graph = undirected(adjacency, features=features, labels=labels, ids=_ids(data, n))
    codes = np.where(types == 0, NONE, types.astype(np.int64) - 1).astype(np.uint8)
    return Dataset("reddit", graph, {"given": Split(torch.from_numpy(codes))}, "given")


def _ids(data: Archive, n: int) -> Array | None:
    if "node_ids" not in data or data.dtype("node_ids").kind not in "iuU":
        return None
    ids = data.array("node_ids")
    if ids.shape != (n,) or (ids.dtype.kind in "iu" and np.array_equal(ids, np.arange(n))):
        return None
    return ids

"""The `.npz` files of gnn-benchmark (Shchur et al.): Amazon, Coauthor, Cora-Full. One file, one graph.

adj_data, adj_indices, adj_indptr, adj_shape           the adjacency as CSR
attr_data, attr_indices, attr_indptr, attr_shape       features as CSR, or attr_matrix
labels                                                 classes, or labels_data, ... (CSR of 0 and 1)
class_names, node_names                                optional; pickled ones are not read
"""

from pathlib import Path
from typing import Any

import numpy as np

from graphsage.datasets.dataset import Dataset
from graphsage.datasets.file_readers import naming
from graphsage.errors import DataError
from graphsage.graph.build import dense
from graphsage.graph.convert.scipy import from_scipy
from graphsage.graph.npz import Archive, read_sparse


def is_gnn_benchmark(path: Path) -> bool:
    if path.suffix != ".npz" or not path.is_file():
        return False
    try:
        return "adj_indptr" in Archive(path)
    except DataError:
        return True  # a damaged file is better explained than not found


def load_gnn_benchmark(path: Path) -> Dataset:
    """Undirected, as the benchmark uses them; there is no split in the file."""
    archive = Archive(path)
    features = read_sparse(archive, "attr_") if "attr_data" in archive else None
    if "attr_matrix" in archive:
        features = archive.array("attr_matrix")
    labels: Any = archive.array("labels") if "labels" in archive else None
    if "labels_data" in archive:
        labels = dense(read_sparse(archive, "labels_"), "labels").numpy().astype(np.uint8)
    with naming(path):
        graph = from_scipy(
            read_sparse(archive, "adj_"),
            directed=False,
            features=features,
            labels=labels,
            class_names=_texts(archive, "class_names"),
            ids=_texts(archive, "node_names"),
        )
    return Dataset(path.stem, graph, {}, "random")


def _texts(archive: Archive, name: str) -> list[str] | None:
    if name not in archive or archive.dtype(name).kind != "U":
        return None
    return [str(value) for value in archive.array(name).reshape(-1)]

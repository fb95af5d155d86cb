"""PyG's and DGL's raw PPI folder: {train,valid,test}_{graph.json,feats.npy,labels.npy,graph_id.npy}.

Each part numbers its own nodes from 0. Here they are laid one after another: train, valid, test.
"""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from graphsage.datasets.dataset import Dataset
from graphsage.datasets.file_readers import check_count, read_column, read_features, read_json, read_list, read_table
from graphsage.errors import DataError
from graphsage.graph.build import from_edges
from graphsage.graph.split import TEST, TRAIN, VAL, Split

PARTS = {"train": TRAIN, "valid": VAL, "test": TEST}
FILES = ("graph.json", "feats.npy", "labels.npy", "graph_id.npy")


def is_ppi_folder(folder: Path) -> bool:
    """Whether `folder` has at least the training graph; a file that is missing is reported by `load_ppi_folder`."""
    return (folder / "train_graph.json").is_file()


def load_ppi_folder(folder: str | Path) -> Dataset:
    """All parts as one undirected graph with the split `given`; `graph_number` is what the files say."""
    folder = Path(folder)
    edges, features, labels, numbers, codes = [], [], [], [], []
    start = 0
    for part, code in PARTS.items():
        graph_file, feature_file, label_file, number_file = (folder / f"{part}_{name}" for name in FILES)
        content = read_json(graph_file)
        count = len(read_list(content, ("nodes",), graph_file))
        edges.append(_edges(content, count, graph_file) + start)
        for file in (feature_file, label_file):
            check_count(file, len(read_table(file)), count, graph_file.name)
        features.append(read_features(feature_file))
        labels.append(_labels(label_file))
        numbers.append(_numbers(number_file, count, graph_file))
        codes.append(torch.full((count,), code, dtype=torch.uint8))
        start += count
    _check_widths(folder, features, "feats.npy")
    _check_widths(folder, labels, "labels.npy")
    graph = from_edges(
        np.concatenate(edges),
        start,
        features=np.concatenate(features),
        labels=np.concatenate(labels),
        graph_number=np.concatenate(numbers),
    )
    return Dataset(folder.resolve().name, graph, {"given": Split(torch.cat(codes))}, "given")


def _edges(content: dict[str, Any], count: int, path: Path) -> npt.NDArray[np.int64]:
    links = read_list(content, ("links", "edges"), path)
    columns = [read_column(links, key, path, "links") for key in ("source", "target")]
    for column in columns:
        for row, end in enumerate(column):
            if type(end) is not int or not 0 <= end < count:
                raise DataError(
                    f"{path}: links row {row} points at {end!r}; the part's {count} nodes are 0 to {count - 1}"
                )
    return np.array(columns, np.int64).T


def _labels(path: Path) -> npt.NDArray[np.uint8]:
    labels = read_table(path)
    odd = np.argwhere((labels != 0) & (labels != 1))
    if len(odd):
        row, column = odd[0]
        raise DataError(f"{path} row {row} has {labels[row, column]} for label {column}; labels must be 0 or 1")
    return np.asarray(labels).astype(np.uint8)


def _numbers(path: Path, count: int, graph_file: Path) -> npt.NDArray[np.int64]:
    numbers = read_table(path, dimensions=1)
    check_count(path, len(numbers), count, graph_file.name)
    if numbers.dtype.kind not in "iu":
        raise DataError(f"{path} must hold integers; got {numbers.dtype}")
    return np.asarray(numbers).astype(np.int64)


def _check_widths(folder: Path, tables: list[Any], name: str) -> None:
    widths = {f"{part}_{name}": table.shape[1] for part, table in zip(PARTS, tables, strict=True)}
    if len(set(widths.values())) > 1:
        raise DataError(f"{folder}: {name} must have the same columns in each part; got {widths}")

"""OGB node property data sets: the folder that OGB downloads (such as dataset/ogbn_arxiv), read from its raw files.

    raw/edge.csv.gz  node-feat.csv.gz  node-label.csv.gz  num-node-list.csv.gz  node_year.csv.gz     (no header lines)
    raw/data.npz  node-label.npz          instead of those, for ogbn-papers100M
    split/NAME/{train,valid,test}.csv.gz

`processed/` and `split_dict.pt` are pickles: reading one can run any code, so they are not read; what they hold is
computed from the raw files. Heterogeneous data sets (ogbn-mag) are not supported, edge features are not carried over.
"""

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import torch

from graphsage.errors import DataError
from graphsage.graph.build import from_edges
from graphsage.graph.convert.common import Array, answers_from
from graphsage.graph.graph import Graph
from graphsage.graph.npz import Archive
from graphsage.graph.split import NONE, PARTS, Split

_FILES = {"train": "train", "val": "valid", "test": "test"}
_MAX_LINE = 1 << 20  # bytes: how wide a table may be


def is_ogb_folder(folder: Path) -> bool:
    """Whether `folder` has OGB's raw files, or pickles alone, which `from_ogb` explains."""
    raw = folder / "raw"
    named = ("edge.csv.gz", "edge.csv", "data.npz", "num-node-dict.csv.gz")
    processed = ("processed/geometric_data_processed.pt", "processed/data_processed")
    return any((raw / name).is_file() for name in named) or any((folder / name).is_file() for name in processed)


def from_ogb(folder: str | Path, *, directed: bool = False) -> Graph:
    """The graph of `graph_and_splits`, which also returns the splits."""
    return graph_and_splits(folder, directed=directed)[0]


def graph_and_splits(folder: str | Path, *, directed: bool = False) -> tuple[Graph, dict[str, Split]]:
    """Graph and splits by folder. `directed=True` keeps citing -> cited; `time` is node_year; nan is unknown."""
    folder = Path(folder)
    if folder.name == "raw" and not (folder / "raw").exists():
        folder = folder.parent
    raw = folder / "raw"
    if any(raw.glob("num-node-dict.csv*")) or (raw / "relations").is_dir():
        raise DataError(f"{folder} is heterogeneous; GraphSAGE has one kind of node, so it is not supported")
    if (raw / "data.npz").is_file():
        edges, n, features, year, labels = _binary(raw)
    elif _file(raw, "edge") is not None:
        edges, n, features, year, labels = _text(raw)
    else:
        has = "only pickles, which can run code when read" if (folder / "processed").is_dir() else "no raw files"
        raise DataError(f"{folder} has {has}; OGB's raw/edge.csv.gz and its companions are needed; download it again")
    answers: dict[str, Any] = {}
    if labels is not None:
        answers = answers_from(labels if labels.ndim == 1 or labels.shape[1] > 1 else labels[:, 0])
    graph = from_edges(edges, n, features=features, time=_years(year), directed=directed, **answers)
    return graph, _splits(folder / "split", n)


def _text(raw: Path) -> tuple[Array, int, Array | None, Array | None, Array | None]:
    counts = _read(_needed(raw, "num-node-list"), "int64")
    if counts.shape != (1, 1) or counts[0, 0] < 1:
        raise DataError(f"{raw / 'num-node-list.csv.gz'} must hold the number of nodes of one graph")
    n = int(counts[0, 0])
    edges = _read(_needed(raw, "edge"), "int64", columns=2)
    tables = [
        (_file(raw, name), kind)
        for name, kind in (("node-feat", "float32"), ("node_year", "int64"), ("node-label", "float64"))
    ]
    features, year, labels = (None if path is None else _read(path, kind, rows=n) for path, kind in tables)
    return edges, n, features, year, labels


def _binary(raw: Path) -> tuple[Array, int, Array | None, Array | None, Array | None]:
    archive = Archive(raw / "data.npz")
    counts = archive.array("num_nodes_list")
    if counts.size != 1 or counts.dtype.kind not in "iu":
        raise DataError(f"{archive.path}: num_nodes_list must hold the number of nodes of one graph")
    n = int(counts.reshape(-1)[0])
    index = archive.array("edge_index")
    if index.ndim != 2 or len(index) != 2:
        raise DataError(f"{archive.path}: edge_index must have the shape (2, edges); got {index.shape}")
    features = archive.array("node_feat") if "node_feat" in archive else None
    year = archive.array("node_year") if "node_year" in archive else None
    labels = Archive(raw / "node-label.npz").array("node_label") if (raw / "node-label.npz").is_file() else None
    return index.T, n, features, year, labels


def _splits(folder: Path, n: int) -> dict[str, Split]:
    splits = {}
    for place in sorted(path for path in folder.glob("*") if path.is_dir()):
        codes = torch.full((n,), NONE, dtype=torch.uint8)
        if _file(place, "train") is None:
            continue  # split_dict.pt alone: a pickle
        for part, name in _FILES.items():
            path = _needed(place, name)
            rows = _read(path, "int64", columns=1)[:, 0]
            if len(rows) and not (rows.min() >= 0 and rows.max() < n):
                raise DataError(f"{path} names a node outside 0 to {n - 1}")
            chosen = torch.from_numpy(rows.copy())
            if bool((codes[chosen] != NONE).any()):
                raise DataError(f"{path} names a node that another part of the split has")
            codes[chosen] = PARTS[part]
        splits[place.name] = Split(codes)
    return splits


def _years(year: Array | None) -> Array | None:
    return None if year is None else year.reshape(-1)


def _file(folder: Path, name: str) -> Path | None:
    return next((path for end in (".csv.gz", ".csv") if (path := folder / f"{name}{end}").is_file()), None)


def _needed(folder: Path, name: str) -> Path:
    path = _file(folder, name)
    if path is None:
        raise DataError(f"{folder / name}.csv.gz does not exist; download the data set again")
    return path


def _read(path: Path, kind: str, *, rows: int | None = None, columns: int | None = None) -> Array:
    """A table of numbers without a header line, read in blocks into one array of type `kind`."""
    import pyarrow as pa
    from pyarrow import csv

    width = _width(path)
    if columns is not None and width not in (0, columns):
        raise DataError(f"{path} must have {columns} columns; got {width}")
    types = {f"f{i}": pa.type_for_alias(kind) for i in range(width)}
    blocks: list[Array] = []
    if width:
        try:
            with csv.open_csv(
                path,
                csv.ReadOptions(autogenerate_column_names=True),
                convert_options=csv.ConvertOptions(column_types=types),
            ) as file:
                for block in file:
                    if kind == "int64" and any(column.null_count for column in block.columns):
                        raise DataError(f"{path} has an empty cell")
                    blocks.append(np.stack([column.to_numpy(zero_copy_only=False) for column in block.columns], axis=1))
        except (pa.ArrowException, OSError, EOFError) as error:
            raise DataError(f"{path} is not a whole table of numbers ({error}); download it again") from error
    table = np.concatenate(blocks) if blocks else np.zeros((0, columns or 1), kind)
    if rows is not None and len(table) != rows:
        raise DataError(f"{path} has {len(table)} rows, but num-node-list says {rows} nodes")
    return table


def _width(path: Path) -> int:
    opened: Any = gzip.open if path.suffix == ".gz" else open
    try:
        with opened(path, "rb") as file:
            line = file.readline(_MAX_LINE)
    except (OSError, EOFError) as error:
        raise DataError(f"{path} cannot be read ({error}); download it again") from error
    return line.count(b",") + 1 if line.strip() else 0

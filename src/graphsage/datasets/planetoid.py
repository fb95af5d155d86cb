"""Planetoid's raw files: ind.NAME.{allx,ally,tx,ty,y,graph,test.index}, as everybody has them for Cora and its sisters.

allx and ally describe the first nodes, the training ones (as many as y has rows) before all others; row i of tx and ty
is node test.index[i]. Nodes between them that no file describes have features 0 and an unknown class (CiteSeer has 15).
ind.NAME.x repeats the first rows of allx and is not read.
"""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from graphsage.datasets.dataset import Dataset
from graphsage.datasets.file_readers import naming
from graphsage.datasets.pickles import read_pickle
from graphsage.errors import DataError
from graphsage.graph.build import from_edges
from graphsage.graph.convert.scipy import dense
from graphsage.graph.split import NONE, TEST, TRAIN, VAL, Split

PARTS = ("x", "tx", "allx", "y", "ty", "ally", "graph", "test.index")
VALIDATION_NODES = 500  # after the training nodes: the split that Planetoid's users agree on


def planetoid_prefix(path: Path) -> Path | None:
    """`.../ind.cora` for that prefix, one of its files, or a folder (or its raw/) with the files of one data set."""
    for folder in (path, path / "raw"):
        if folder.is_dir():
            found = sorted(folder.glob("ind.*.graph"))
            if len(found) == 1:
                return found[0].with_suffix("")
    if not path.name.startswith("ind."):
        return None
    for part in PARTS:
        if path.name.endswith(f".{part}") and path.is_file():
            return path.with_name(path.name.removesuffix(f".{part}"))
    return path if any(_file(path, part).is_file() for part in PARTS) else None


def load_planetoid(prefix: Path) -> Dataset:
    """Undirected, without self loops (as PyG and DGL have it), with the public split as `given`."""
    graph_file, index_file = _file(prefix, "graph"), _file(prefix, "test.index")
    allx, tx = (_matrix(_file(prefix, part)) for part in ("allx", "tx"))
    ally, ty, y = (_one_hot(_file(prefix, part)) for part in ("ally", "ty", "y"))
    links = read_pickle(graph_file)
    if not isinstance(links, dict):
        raise DataError(f"{graph_file} must hold a dictionary of lists; got a {type(links).__name__}")
    test = _index(index_file, len(tx), len(allx))
    n = max(len(allx), int(test.max(initial=-1)) + 1)
    if n > len(allx) + len(tx) + len(links):
        raise DataError(f"{index_file} names node {n - 1}, but the files describe {len(links)} nodes")
    for file, got, wanted in ((_file(prefix, "ally"), len(ally), len(allx)), (_file(prefix, "ty"), len(ty), len(tx))):
        if got != wanted:
            raise DataError(f"{file} has {got} rows, but the features have {wanted}; the files do not belong together")
    if allx.shape[1] != tx.shape[1]:
        raise DataError(f"{_file(prefix, 'tx')} has {tx.shape[1]} columns, but allx has {allx.shape[1]}")
    if len(y) > len(allx):
        raise DataError(f"{_file(prefix, 'y')} has {len(y)} training nodes, but allx only {len(allx)} nodes")
    features = np.zeros((n, allx.shape[1]), np.float32)
    features[: len(allx)], features[test] = allx, tx
    labels = np.full(n, -1, np.int64)
    labels[: len(ally)], labels[test] = ally, ty
    pairs = [(node, other) for node, others in links.items() for other in others]
    with naming(graph_file):
        edges = np.array(pairs, np.int64).reshape(-1, 2)
        graph = from_edges(edges, n, features=features, labels=labels, self_loops=False)
    return Dataset(prefix.name.removeprefix("ind."), graph, {"given": _split(n, len(y), len(allx), test)}, "given")


def _file(prefix: Path, part: str) -> Path:
    return prefix.with_name(f"{prefix.name}.{part}")


def _split(n: int, train: int, described: int, test: npt.NDArray[np.int64]) -> Split:
    codes = torch.full((n,), NONE, dtype=torch.uint8)
    codes[train : min(train + VALIDATION_NODES, described)] = VAL
    codes[:train] = TRAIN
    codes[torch.from_numpy(test)] = TEST
    return Split(codes)


def _matrix(path: Path) -> Any:
    value = read_pickle(path)
    table = dense(value) if hasattr(value, "tocoo") else value
    if not isinstance(table, np.ndarray) or table.ndim != 2:
        raise DataError(f"{path} must hold a matrix of features")
    return table


def _one_hot(path: Path) -> npt.NDArray[np.int64]:
    """Classes; a row without a 1 is unknown."""
    table = read_pickle(path)
    if not isinstance(table, np.ndarray) or table.ndim != 2:
        raise DataError(f"{path} must hold one row of 0 and 1 a node")
    ones = (table != 0).sum(axis=1)
    if not np.isin(table, (0, 1)).all() or (ones > 1).any():
        raise DataError(f"{path} must hold one 1 a row; row {int(np.argmax(ones))} has {int(ones.max(initial=0))}")
    return np.where(ones == 1, np.argmax(table, axis=1) if table.shape[1] else -1, -1).astype(np.int64)


def _index(path: Path, wanted: int, described: int) -> npt.NDArray[np.int64]:
    try:
        rows = [int(line) for line in path.read_text("ascii").split()]
    except FileNotFoundError:
        raise DataError(f"{path} does not exist") from None
    except (ValueError, OSError) as error:
        raise DataError(f"{path} must hold one node a line ({error})") from error
    if len(rows) != wanted or len(set(rows)) != wanted:
        raise DataError(f"{path} must name {wanted} different nodes, one for each row of tx; got {len(set(rows))}")
    if rows and not described <= min(rows) <= max(rows) < 2**62:
        raise DataError(f"{path} names node {min(rows)}; test nodes come after the {described} nodes of allx")
    return np.array(rows, np.int64)

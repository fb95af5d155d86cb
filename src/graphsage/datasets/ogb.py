"""OGB's folders as data sets: the first split that the folder has is the default."""

from pathlib import Path

from graphsage.datasets.dataset import Dataset
from graphsage.datasets.file_readers import naming
from graphsage.graph.convert.ogb import graph_and_splits
from graphsage.graph.convert.ogb import is_ogb_folder as is_ogb_folder


def load_ogb(folder: Path) -> Dataset:
    with naming(folder):
        graph, splits = graph_and_splits(folder)
    return Dataset(folder.resolve().name, graph, splits, next(iter(splits), "random"))

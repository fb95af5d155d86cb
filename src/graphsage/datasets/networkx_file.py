"""GML, GraphML and edge lists, through networkx where that is installed."""

import warnings
from pathlib import Path
from typing import Any

from graphsage.datasets.dataset import Dataset
from graphsage.datasets.file_readers import naming
from graphsage.errors import ConfigError, DataError
from graphsage.graph.convert.networkx import from_networkx

SUFFIXES = (".gml", ".graphml", ".edgelist")


def is_networkx_file(path: Path) -> bool:
    return path.suffix in SUFFIXES and path.is_file()


def load_networkx_file(path: Path) -> Dataset:
    """A graph without a split. Node attributes of the usual names are read; an edge list is `node node` a line."""
    try:
        import networkx
    except ImportError:
        raise ConfigError(f"{path} needs networkx, which is not installed; install it: pip install networkx") from None
    try:
        made = _read(networkx, path)
    except Exception as error:  # its readers raise many types of errors on other text
        raise DataError(f"{path} is not a {path.suffix[1:]} file that networkx reads ({error})") from error
    with naming(path):
        return Dataset(path.stem, from_networkx(made), {}, "random")


def _read(networkx: Any, path: Path) -> Any:
    if path.suffix == ".edgelist":
        return networkx.read_edgelist(path, data=False)
    if path.suffix == ".graphml":
        return networkx.read_graphml(path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            return networkx.read_gml(path)
    except networkx.NetworkXError as error:
        if "label" not in str(error):
            raise
        return networkx.read_gml(path, label=None)

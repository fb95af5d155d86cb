"""One door for all data: a built-in name, a graph folder, or files in a format that people have."""

from collections.abc import Callable
from pathlib import Path

from graphsage.datasets.dataset import Dataset
from graphsage.datasets.ppi_folder import is_ppi_folder, load_ppi_folder
from graphsage.datasets.release import is_release, load_release
from graphsage.errors import DataError
from graphsage.graph.storage import open_graph, open_splits


def _load_setmm(folder: Path | None = None) -> Dataset:
    from graphsage.datasets.setmm import load_setmm

    return load_setmm(folder)


BUILT_IN: dict[str, Callable[[], Dataset]] = {"setmm": _load_setmm}


def open_data(spec: str | Path) -> Dataset:
    """Open what `spec` names: a built-in data set, a graph folder, the GraphSAGE release's prefix (`data/ppi` for
    `data/ppi-G.json` and its companions; the G.json file or a folder with just one will do), PyG's raw PPI folder, or
    a folder that `build_setmm` wrote.

    A built-in name wins over a folder of the same name; write `./setmm` for the folder.
    """
    if isinstance(spec, str) and spec in BUILT_IN:
        return BUILT_IN[spec]()
    path = Path(spec)
    if (path / "graph.json").is_file():
        return load_folder(path)
    if is_ppi_folder(path):
        return load_ppi_folder(path)
    if (path / "setmm_nodes.tsv.xz").is_file():
        return _load_setmm(path)
    prefix = _release_prefix(path)
    if prefix is not None:
        return load_release(prefix)
    if str(spec) in BUILT_IN and not path.exists():
        return BUILT_IN[str(spec)]()
    raise DataError(_not_found(path))


def load_folder(folder: Path) -> Dataset:
    """A graph folder with its stored splits; the default is `given`, else the first stored, else `random`."""
    splits = open_splits(folder)
    default = "given" if "given" in splits else next(iter(splits), "random")
    return Dataset(folder.resolve().name, open_graph(folder), splits, default)


def _release_prefix(path: Path) -> Path | None:
    if path.name.endswith("-G.json") and path.is_file():
        return path.with_name(path.name.removesuffix("-G.json"))
    if path.name and is_release(path):
        return path
    if path.is_dir():
        found = sorted(path.glob("*-G.json"))
        if len(found) == 1:
            return found[0].with_name(found[0].name.removesuffix("-G.json"))
    return None


def _not_found(path: Path) -> str:
    looked_for = (
        f"a graph folder ({path / 'graph.json'}), PyG's PPI folder ({path / 'train_graph.json'}) "
        f"or the GraphSAGE release's files ({path}-G.json)"
    )
    what = "is not data that can be opened" if path.exists() else "does not exist"
    return f"{path} {what}; looked for {looked_for}; built-in data: {', '.join(BUILT_IN)}"

"""Open data: a built-in name, a graph folder, or files in one of FORMATS."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from graphsage.datasets.dataset import Dataset
from graphsage.datasets.file_readers import naming
from graphsage.datasets.gnn_benchmark import is_gnn_benchmark, load_gnn_benchmark
from graphsage.datasets.graphsaint import is_graphsaint, load_graphsaint
from graphsage.datasets.networkx_file import is_networkx_file, load_networkx_file
from graphsage.datasets.ppi_folder import is_ppi_folder, load_ppi_folder
from graphsage.datasets.reddit import is_reddit, load_reddit
from graphsage.datasets.release import is_release, load_release
from graphsage.errors import DataError
from graphsage.graph.convert.ogb import graph_and_splits, is_ogb_folder
from graphsage.graph.storage import open_graph, open_splits


def _load_setmm(folder: Path | None = None) -> Dataset:
    from graphsage.datasets.setmm import load_setmm

    return load_setmm(folder)


def load_folder(folder: Path) -> Dataset:
    """A graph folder with its stored splits; the default is `given`, else the first stored, else `random`."""
    splits = open_splits(folder)
    default = "given" if "given" in splits else next(iter(splits), "random")
    return Dataset(folder.resolve().name, open_graph(folder), splits, default)


def load_ogb(folder: Path) -> Dataset:
    """OGB's folder; the first split that it has is the default."""
    with naming(folder):
        graph, splits = graph_and_splits(folder)
    return Dataset(folder.resolve().name, graph, splits, next(iter(splits), "random"))


@dataclass(frozen=True)
class Format:
    """`find` returns what `load` needs where a path is in this format; `file` is what tells it, after `PATH`."""

    name: str
    file: str
    find: Callable[[Path], Path | None]
    load: Callable[[Path], Dataset]


def _if(test: Callable[[Path], bool], *below: str) -> Callable[[Path], Path | None]:
    """The path itself, or what is `below` it, where the test holds."""

    def find(path: Path) -> Path | None:
        return next((place for place in (path, *(path / name for name in below)) if test(place)), None)

    return find


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


BUILT_IN: dict[str, Callable[[], Dataset]] = {"setmm": _load_setmm}
FORMATS = (
    Format("a graph folder", "/graph.json", _if(lambda p: (p / "graph.json").is_file()), load_folder),
    Format("PyG's PPI folder", "/train_graph.json", _if(is_ppi_folder, "raw"), load_ppi_folder),
    Format(
        "set.mm as `data build` writes it",
        "/setmm_nodes.tsv.xz",
        _if(lambda p: (p / "setmm_nodes.tsv.xz").is_file()),
        _load_setmm,
    ),
    Format("the GraphSAGE release's files", "-G.json", _release_prefix, load_release),
    Format("GraphSAINT's folder", "/adj_full.npz", _if(is_graphsaint, "raw"), load_graphsaint),
    Format("PyG's or DGL's Reddit", "/reddit_data.npz", _if(is_reddit, "raw"), load_reddit),
    Format("an OGB node data set", "/raw/edge.csv.gz", _if(is_ogb_folder), load_ogb),
    Format("a gnn-benchmark file", ".npz", _if(is_gnn_benchmark), load_gnn_benchmark),
    Format("GML, GraphML or an edge list", ".gml, .graphml, .edgelist", _if(is_networkx_file), load_networkx_file),
)


def open_data(spec: str | Path) -> Dataset:
    """Open what `spec` names: a built-in data set, or a path in one of FORMATS (docs/convert.md lists them), such as a
    graph folder or the GraphSAGE release's prefix (`data/ppi` for `data/ppi-G.json` and its companions; the G.json file
    or a folder with just one will do).

    A built-in name wins over a folder of the same name; write `./setmm` for the folder.
    """
    if isinstance(spec, str) and spec in BUILT_IN:
        return BUILT_IN[spec]()
    path = Path(spec)
    _refuse_planetoid(path)
    for form in FORMATS:
        found = form.find(path)
        if found is not None:
            return form.load(found)
    if str(spec) in BUILT_IN and not path.exists():
        return BUILT_IN[str(spec)]()
    *first, last = [f"{form.name} ({form.file if ', ' in form.file else f'{path}{form.file}'})" for form in FORMATS]
    what = "is not data that can be opened" if path.exists() else "does not exist"
    raise DataError(f"{path} {what}; looked for {', '.join(first)} or {last}; built-in data: {', '.join(BUILT_IN)}")


def _refuse_planetoid(path: Path) -> None:
    """Planetoid's raw files are pickles, which can run code when read."""
    inside = [file for folder in (path, path / "raw") if folder.is_dir() for file in folder.glob("ind.*.graph")]
    if inside or path.name.startswith("ind."):
        raise DataError(
            f"{path} holds Planetoid's pickles, which can run code when read and are not opened; use "
            "Graph.from_pyg(Planetoid(...)[0]) and save it, or the same graphs as .npz files"
        )

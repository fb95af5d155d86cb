"""The data that a run was trained on, kept in the run's folder: later commands neither parse, split nor cap it again.

    RUN/data/data.json      format, checksums, the split's name, fingerprints of the input files
    RUN/data/graph/         a graph folder: features as the model reads them, ids, labels, times, all named splits
    RUN/data/capped/        the neighbor lists after the degree cap; absent if the cap removes no edge
    RUN/data/split.arrow    the part of each node id in the run's own split
    RUN/data/columns.arrow  the columns that features were computed from; a live graph shows them

Above KEEP_BYTES the run keeps a reference instead: where the data is, and the fingerprints of its files.
"""

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.feather
import torch

from graphsage.atomic import atomic_folder
from graphsage.datasets.dataset import Dataset
from graphsage.datasets.open import BUILT_IN, open_data
from graphsage.datasets.tables import open_tables
from graphsage.errors import BundleError, ConfigError, DataError, setting
from graphsage.features.recipe import Column
from graphsage.graph.graph import Graph
from graphsage.graph.split import NONE, Split
from graphsage.graph.storage import open_adjacency, open_graph, open_splits, save_adjacency, save_graph
from graphsage.inference.fingerprint import checksum, file_fingerprint, has_changed, short
from graphsage.inference.model import KEEP_BYTES, Model, graph_bytes
from graphsage.regular_files import is_regular
from graphsage.tables.columns import TimeScale, cells
from graphsage.tables.spec import TableSpec, is_vector_file

FORMAT = 1
FOLDER, MANIFEST = "data", "data.json"
_NAMED = 3  # changed files that a message names


@dataclass(frozen=True, eq=False)
class RunData:
    """The data set of a run; its graph has the features that the model reads, and `split` is the run's own."""

    dataset: Dataset
    split_name: str
    split: Split
    capped: Graph | None = None
    """The neighbor lists after the degree cap; None: not kept, draw them."""
    graph_folder: Path | None = None
    capped_folder: Path | None = None
    """Folders of `graph` and `capped`, for inference that reads from disk."""
    changed: tuple[str, ...] = ()
    """Input files that differ from those the run was trained on."""

    @property
    def graph(self) -> Graph:
        return self.dataset.graph

    @property
    def remark(self) -> str | None:
        """What to tell the user about changed input files."""
        if not self.changed:
            return None
        names = ", ".join(self.changed[:_NAMED])
        more = f" and {len(self.changed) - _NAMED} more files" if len(self.changed) > _NAMED else ""
        return f"{names}{more} changed after training; using the graph stored in the run"


def split_of(graph: Graph, known: Graph, split: Split) -> Split:
    """The `split` of the graph `known` for another graph, by node id. A node that `known` lacks is in no part."""
    return Split(_codes_of(graph, id_column(known), split.codes), split.cutoff)


def is_run_data(folder: Path) -> bool:
    """Whether a run wrote this folder, so that it can be replaced."""
    return (folder / MANIFEST).is_file() and (folder / "split.arrow").is_file()


def keep_data(
    run: Path,
    model: "Model",
    data: Graph | Dataset,
    graph: Graph,
    split: Split,
    split_name: str,
    capped: Graph | None,
    keep: bool | None = None,
) -> str:
    """Write the data of a run into its folder, whole or not at all, and return the manifest's checksum.

    `graph` is that of `data` with the features that the model reads, `capped` its neighbor lists after the cap. `keep`
    says whether to copy the graph or to refer to it; None decides by its size.
    """
    dataset = data if isinstance(data, Dataset) else Dataset("graph", data, {}, "random")
    if keep is None:
        keep = graph_bytes(graph) + sum(map(_column_bytes, dataset.columns.values())) <= KEEP_BYTES
    with atomic_folder(run / FOLDER, is_run_data) as temporary:
        ids = id_column(graph)
        codes = pa.array(split.codes.numpy())
        _write(temporary / "split.arrow", {"part": codes} if ids is None else {"id": ids, "part": codes})
        if keep:
            save_graph(graph, temporary / "graph", dataset.splits)
            if dataset.columns:
                _write(temporary / "columns.arrow", {name: _arrow(c) for name, c in dataset.columns.items()})
        hubs = capped is not None and _stored_edges(capped) != _stored_edges(graph)
        if capped is not None and hubs:
            save_adjacency(capped, temporary / "capped")
        files = sorted(path for path in temporary.rglob("*") if path.is_file())
        about = {
            "format": FORMAT,
            "name": dataset.name,
            "nodes": graph.num_nodes,
            "stored_edges": _stored_edges(graph),
            "graph": "kept" if keep else "reference",
            "cap": "not kept" if capped is None else "kept" if hubs else "removes no edge",
            "split": {"name": split_name, "cutoff": split.cutoff},
            "sources": {str(path): file_fingerprint(path) for path in source_files(model.about, run)},
            "sha256": {path.relative_to(temporary).as_posix(): checksum(path) for path in files},
        }
        manifest = temporary / MANIFEST
        manifest.write_text(json.dumps(about, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        return checksum(manifest)


def open_run_data(model: "Model") -> RunData:
    """What `model` was trained on: kept in its run, or opened again if the model was not loaded from a run."""
    if model.folder is None:
        dataset = _as_the_model_reads(model, open_training_data(model.about))
        name = model.about.get("split") or dataset.default_split
        return RunData(dataset, name, dataset.split(name))
    folder = model.folder / FOLDER
    about = _manifest(model.folder)
    for name, expected in about["sha256"].items():
        if not is_regular(folder / name) or checksum(folder / name) != expected:
            raise BundleError(f"{folder / name} is not the file that training wrote; copy the run or train again")
    cutoff, split_name = about["split"]["cutoff"], about["split"]["name"]
    parts = _read(folder / "split.arrow")
    if about["graph"] == "kept":
        graph = open_graph(folder / "graph", check=False)  # its files were just checked
        columns = _read(folder / "columns.arrow") if "columns.arrow" in about["sha256"] else {}
        splits = open_splits(folder / "graph")
        changed = tuple(Path(p).name for p, before in about["sources"].items() if _differs(Path(p), before))
        dataset = Dataset(
            about["name"], graph, {}, split_name, {name: cells(c) for name, c in columns.items()}, fitted=model.features
        )
    else:
        _refuse_changed(model, about["sources"])
        dataset = _as_the_model_reads(model, open_training_data(model.about))
        graph, splits, changed = dataset.graph, dataset.splits, ()
        if (graph.num_nodes, _stored_edges(graph)) != (about["nodes"], about["stored_edges"]):
            raise DataError(
                f"{dataset.name} has {graph.num_nodes:,} nodes and {_stored_edges(graph):,} stored edges;"
                f" at training it had {about['nodes']:,} and {about['stored_edges']:,}; train again or "
                "restore it"
            )
    codes = torch.from_numpy(parts["part"].to_numpy(zero_copy_only=False).copy())
    split = Split(_codes_of(graph, parts.get("id"), codes), cutoff)
    dataset = dataclasses.replace(dataset, splits={**splits, split_name: split}, default_split=split_name)
    capped, capped_folder = None, None
    graph_folder = folder / "graph" if about["graph"] == "kept" else None
    if about["cap"] == "kept":
        capped_folder = folder / "capped"
        capped = open_adjacency(capped_folder, graph)
    elif about["cap"] == "removes no edge":
        capped, capped_folder = graph, graph_folder
    return RunData(dataset, split_name, split, capped, graph_folder, capped_folder, changed)


def source_files(about: dict[str, Any], run: Path) -> list[Path]:
    """The files that the data was read from. Built-in data and graphs made in Python have none."""
    spec = table_spec(about)
    if spec is not None:
        named = (spec.nodes, spec.edges, spec.text_model, *filter(is_vector_file, spec.vectors))
        return [path for name in named if name is not None and (path := Path(name)).is_file()]
    name = about.get("data")
    if not isinstance(name, str) or name in BUILT_IN:
        return []
    path = Path(name)
    if path.is_file():
        return [path]
    found = [*path.glob("*"), *path.glob("*/*")] if path.is_dir() else path.parent.glob(f"{path.name}*")
    inside = run.absolute()
    return sorted(file for file in found if file.is_file() and not file.absolute().is_relative_to(inside))


def _stored_edges(graph: Graph) -> int:
    """In the lists that a model reads."""
    return sum(each.num_stored_edges for each in graph.by_relation)


def _manifest(run: Path) -> dict[str, Any]:
    from graphsage.inference.bundle import read_config

    path, expected = run / FOLDER / MANIFEST, read_config(run).get("data")
    if expected is None or not is_regular(path):
        raise BundleError(f"{run} keeps no graph; name the data, or train again")
    if checksum(path) != expected:
        raise BundleError(
            f"{path} does not belong to this model; train again, or continue with {setting('resume', True)}"
        )
    about: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    if about["format"] != FORMAT:
        raise BundleError(
            f"{path.parent} has format {about['format']}, and this version reads format {FORMAT}; "
            f"{'upgrade graphsage' if about['format'] > FORMAT else 'train again'}"
        )
    return about


def _as_the_model_reads(model: "Model", dataset: Dataset) -> Dataset:
    from graphsage.inference.export import graph_for

    return dataclasses.replace(dataset, graph=graph_for(model, dataset), plan=None, fitted=model.features)


def _differs(path: Path, before: dict[str, Any]) -> bool:
    try:
        return has_changed(path, before)
    except OSError:
        return False  # it is gone, and the run does not need it


def refuse_changed_sources(run: Path) -> None:
    """Refuse to continue a run whose input files changed since it began: its scores would be of two versions."""
    path = run / FOLDER / MANIFEST
    about = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    if about.get("format") != FORMAT:
        return
    changed = [name for name, before in about["sources"].items() if _differs(Path(name), before)]
    if changed:
        more = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
        raise DataError(
            f"{changed[0]}{more} changed since {run} began training; restore it, or train without "
            f"{setting('resume', True)}"
        )


def _refuse_changed(model: "Model", sources: dict[str, dict[str, Any]]) -> None:
    tables = model.about.get("tables") or {}
    for name, before in sources.items():
        path = Path(name)
        what = next((f"the {role} table {name}" for role in ("nodes", "edges") if tables.get(role) == name), name)
        if not path.is_file():
            raise DataError(f"{what} is gone, and the run keeps only a reference to it; restore it or train again")
        if has_changed(path, before):
            prints = f"fingerprint {short(before)}, now {short(file_fingerprint(path))}"
            raise DataError(f"{what} changed since training ({prints}); train again or restore it")


def id_column(graph: Graph) -> Any:
    """The ids as an Arrow array; None if row numbers are the ids."""
    if graph.ids is None:
        return None
    arrays = graph.ids.arrays()
    if "ids" in arrays:
        return pa.array(np.asarray(arrays["ids"]))
    offsets, text = (np.ascontiguousarray(arrays[name]) for name in ("ids_offsets", "ids_text"))
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(text)]
    return pa.Array.from_buffers(pa.large_string(), len(graph.ids), buffers)


def _codes_of(graph: Graph, ids: Any, codes: torch.Tensor) -> torch.Tensor:
    """`codes` of `ids` in the order of the nodes of `graph`; ids that are not among them get NONE."""
    own = id_column(graph)
    if own is None and ids is None and len(codes) == graph.num_nodes:
        return codes
    if own is None or ids is None or own.type != ids.type:
        raise DataError("the ids of this graph are not of the type of the run's; give a graph with the same ids")
    if own.equals(ids):
        return codes
    rows = pc.index_in(own, value_set=ids)
    known = torch.from_numpy(rows.is_valid().to_numpy(zero_copy_only=False))
    places = torch.from_numpy(rows.fill_null(0).to_numpy().astype(np.int64))
    return torch.where(known, codes[places], torch.tensor(NONE, dtype=codes.dtype))


def _column_bytes(column: Column) -> int:
    if isinstance(column, np.ndarray) and column.dtype != object:
        return column.nbytes
    return sum(len(value) if isinstance(value, str) else 8 for value in column)


def _arrow(column: Column) -> Any:
    """A column of cells, read back by `cells`."""
    if isinstance(column, np.ndarray) and column.ndim == 2:
        return pa.FixedSizeListArray.from_arrays(pa.array(np.ascontiguousarray(column).ravel()), column.shape[1])
    if isinstance(column, np.ndarray) and column.dtype != object:
        return pa.array(column)
    text = any(isinstance(value, str) for value in column)
    try:
        return pa.array(list(column), pa.large_string() if text else None)
    except (pa.ArrowInvalid, pa.ArrowTypeError, UnicodeError):  # cells of several types, or text that is not Unicode
        words = [None if value is None else str(value).encode("utf-8", "replace").decode() for value in column]
        return pa.array(words, pa.large_string())


def _write(path: Path, columns: dict[str, Any]) -> None:
    pyarrow.feather.write_feather(pa.table(columns), path, compression="uncompressed")


def _read(path: Path) -> dict[str, Any]:
    table = pyarrow.feather.read_table(path, memory_map=True)
    return {name: table[name].combine_chunks() for name in table.column_names}


def table_spec(about: dict[str, Any]) -> TableSpec | None:
    """What the columns of the training tables mean; None if the model was not trained on tables."""
    tables = about.get("tables")
    return TableSpec.from_dict(tables) if isinstance(tables, dict) else None


def edge_scale(about: dict[str, Any]) -> TimeScale | None:
    """How the training tables wrote the times of edges; None if the model was not trained on tables with such times."""
    spec, dates = table_spec(about), about.get("edge_dates")
    if spec is None or not (spec.time_order or isinstance(dates, bool)):
        return None
    return TimeScale(spec.time_order, dates=dates is True)


def open_training_data(about: dict[str, Any]) -> Dataset:
    """The data set that `Model.about` names."""
    spec = table_spec(about)
    if spec is not None:
        return open_tables(spec)
    name = about.get("data")
    if not isinstance(name, str):
        raise ConfigError("the model does not say what it was trained on; give the graph")
    return open_data(name)

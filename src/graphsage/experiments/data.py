"""The data of the paper's experiments, or its stand-in, opened by name: `ppi=PATH`, `setmm`, `debian=PATH`."""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from graphsage.baselines.deepwalk import attached
from graphsage.datasets.dataset import Dataset
from graphsage.errors import ConfigError, DataError
from graphsage.features.recipe import Column
from graphsage.graph.graph import Graph, known_labels
from graphsage.graph.split import NONE, TRAIN, VAL, Split, training_graph, with_validation
from graphsage.kernels.random import Stream, derive, uniform

RELEASED_DENSITY = 0.305  # share of ones in the PPI labels of the paper's release
RARE = 0.01
COLUMNS = {"citation": "citation", "setmm": "citation", "reddit": "reddit", "ppi": "ppi"}
"""The column of Table 1 that a data set is compared with; others have none."""


@dataclass(frozen=True)
class Source:
    """A name and a path; None for built-in data."""

    name: str
    path: str | None = None


@dataclass(frozen=True, eq=False)
class Named:
    """A graph with features, its split, and a note that accompanies its numbers."""

    name: str
    graph: Graph
    split: Split
    note: str
    digest: str

    @property
    def column(self) -> str | None:
        return COLUMNS.get(self.name)

    @property
    def unvalidated(self) -> Split:
        """The same training nodes without validation ones: training then stops for no scores after each epoch."""
        codes = self.split.codes
        return Split(torch.where(codes == VAL, NONE, codes), self.split.cutoff)

    @property
    def one_graph(self) -> bool:
        """Whether unseen nodes are joined to training nodes: DeepWalk can be applied only then."""
        return self.apart is None

    @property
    def apart(self) -> str | None:
        """Why DeepWalk cannot be applied; None if it can."""
        number, trained = self.graph.graph_number, self.split.codes == TRAIN
        if (number is None or len(torch.unique(number)) == 1) and attached(self.graph, trained):
            return None
        if not bool(self.graph.degrees[~trained].any()):
            return "no unseen node has an edge, so no walk starts there"
        return "several graphs: vectors of one mean nothing in another (Appendix D)"


def parse_data(words: Sequence[str]) -> tuple[Source, ...]:
    """`NAME` or `NAME=PATH`, each name once."""
    found: dict[str, Source] = {}
    for word in words:
        name, sign, path = word.partition("=")
        if not name or (sign and not path):
            raise ConfigError(f"--data takes NAME=PATH, such as ppi=data/ppi, or setmm alone; got {word!r}")
        if not sign and name != "setmm":
            raise ConfigError(f"--data {name} needs a path, {name}=PATH; only setmm is built in")
        if sign and name == "setmm":
            raise ConfigError(f"--data setmm is built in and takes no path; give {path} another name, such as citation")
        if name in found:
            raise ConfigError(f"--data names {name} twice")
        found[name] = Source(name, path or None)
    if not found:
        raise ConfigError("give at least one data set, such as --data setmm or --data ppi=PATH")
    return tuple(found.values())


@cache
def opened(source: Source) -> Named:
    """Open a data set by name. `setmm` is split by date. Without validation nodes, 30% of the test nodes validate."""
    data, split = _open(source)
    if not bool((split.codes == VAL).any()):
        split = with_validation(split, Stream(0, "validation"))
    graph, _ = data.with_features(split)
    if graph.labels is None:
        raise ConfigError(f"--data {source.name}: there are no labels, and every experiment scores predictions")
    if graph.features is None:
        raise ConfigError(
            f"--data {source.name}: there are no features, and the experiments compare with them; give "
            "vectors (`graphsage data build tables --vectors COLUMN`)"
        )
    if not len(graph.labeled(split.nodes("train"))):
        raise ConfigError(f"--data {source.name}: no training node has a label, and every experiment learns from them")
    trains = split.codes == TRAIN
    rows, columns = graph.edge_rows, graph.indices
    if not bool((trains[rows] & trains[columns] & (rows != columns)).any()):
        raise ConfigError(
            f"--data {source.name}: no edge joins two training nodes, and models learn from neighbors; "
            "check the edges, or give a split that leaves more nodes for training"
        )
    return Named(source.name, graph, split, _note(source, graph), fingerprint(data, graph, split))


def _open(source: Source) -> tuple[Dataset, Split]:
    from graphsage.datasets.debian import debian_tables
    from graphsage.datasets.open import open_data
    from graphsage.datasets.tables import open_tables

    if folder := _debian_folder(source):
        data = open_tables(debian_tables(folder, train_until="trixie"))
        return data, data.split("time")
    try:
        data = open_data(source.path or source.name)
    except DataError as error:
        if source.name != "debian":
            raise
        raise ConfigError(
            f"--data debian={source.path}: the folder must hold nodes.csv and edges.csv, as "
            f"`graphsage data build debian` writes them ({error})"
        ) from error
    if source.name == "setmm":
        assert data.graph.time is not None
        # Everything older than the test nodes trains, as in the paper, whose validation nodes are as new as those.
        return data, Split.by_time(data.graph.time, (0.8, 0.0, 0.2))
    return data, data.split(None)


def _debian_folder(source: Source) -> Path | None:
    """The folder of `debian` if it holds the two tables, not a graph folder made of them."""
    found = source.name == "debian" and source.path is not None and (Path(source.path) / "nodes.csv").is_file()
    return Path(source.path or "") if found else None


def _note(source: Source, graph: Graph) -> str:
    if source.name == "ppi" and graph.labels is not None and graph.multilabel:
        density = float(graph.labels[known_labels(graph.labels)].float().mean())
        whose = "the released" if abs(density - RELEASED_DENSITY) < 0.002 else "re-derived"
        return f"{whose} labels (density {density:.3f}; the release has {RELEASED_DENSITY})"
    if source.name == "setmm":
        return (
            "theorems of set.mm, a stand-in for the closed citation data and split as that: the newest 20% are "
            "unseen, 30% of these validate"
        )
    if _debian_folder(source):
        return "Debian packages by release: not in the paper"
    return ""


def data_facts(sources: Iterable[Source]) -> dict[str, Any]:
    """The description of data sets in a result, by name."""
    found = {}
    for data in map(opened, sources):
        graph = data.graph
        found[data.name] = {
            "nodes": graph.num_nodes,
            "edges": graph.num_edges,
            "features": graph.num_features,
            "classes": graph.num_classes,
            "split": data.split.sizes(),
            "digest": data.digest,
            "note": data.note,
            **rare_classes(data),
        }
    return found


def rare_classes(data: Named) -> dict[str, float]:
    """The share of test nodes whose class has less than RARE of the training nodes; empty for multi-label data."""
    labels = data.graph.labels
    if labels is None or data.graph.multilabel:
        return {}
    train, test = (known[known >= 0] for known in (labels[data.split.nodes(part)] for part in ("train", "test")))
    counts = torch.bincount(train, minlength=int(labels.max()) + 1)
    rare = counts[test] < RARE * len(train)
    return {"rare_test_share": round(float(rare.double().mean()), 4)}


def fingerprint(data: Dataset, graph: Graph, split: Split) -> str:
    """Of all that decides a result: the same for every format that the same nodes, in the same order, are read from, on
    every machine and with every version of the libraries.

    Features that are computed from columns, such as text by a decomposition, differ in their last digits from one
    machine to the next. For these the columns themselves count, and the recipe.
    """
    assert graph.labels is not None
    made = hashlib.sha256()
    seen = training_graph(graph.replace(features=None, labels=None), split)  # later edges are left out by their time
    for tensor in (graph.indptr, graph.indices, seen.indptr, seen.indices, graph.labels, split.codes):
        _add(made, tensor.numpy().astype(np.int64))
    if data.graph.features is not None:
        _add(made, data.graph.features.float().numpy() + np.float32(0))  # -0.0 and 0.0 are the same feature
    elif data.plan is not None:
        for step in data.plan.steps:
            made.update(repr((step.recipe, step.columns)).encode())
            for name in step.columns:
                _add_column(made, data.columns[name])
    return made.hexdigest()[:12]


def _add(made: Any, values: npt.NDArray[Any]) -> None:
    made.update(repr(values.shape).encode())
    made.update(np.ascontiguousarray(values).astype(values.dtype.newbyteorder("<"), copy=False).tobytes())


def _add_column(made: Any, values: Column) -> None:
    if isinstance(values, np.ndarray) and values.dtype.kind in "fiub":
        _add(made, values.astype(np.float64))
        return
    for value in values:
        cell = str(value).encode("utf-8", "surrogatepass")
        made.update(len(cell).to_bytes(8, "little") + cell)


def with_noise(data: Named, share: float, seed: int) -> Graph:
    """The graph with `share` of its feature columns, drawn by the seed, replaced by standard normal numbers.

    The paper replaces the feature matrix "incrementally" and does not say by rows or columns: columns, so that every
    node keeps the same number of true features. The more are replaced, the fewer stay: those of a smaller share are
    among those of a larger one.
    """
    graph = data.graph
    if not share or graph.features is None:
        return graph
    columns = torch.arange(graph.num_features)
    order = torch.argsort(Stream(seed, "noise columns").keys(columns), stable=True)
    gone = order[: round(share * len(columns))]
    keys = Stream(seed, "noise").keys(torch.arange(graph.num_nodes))
    features = graph.features.float().clone()
    for column in gone.tolist():
        features[:, column] = normal(derive(keys, column)).float()
    return graph.replace(features=features)


def normal(bits: torch.Tensor) -> torch.Tensor:
    """Standard normal numbers from 64-bit draws (Box and Muller), same shape, float64."""
    radius = torch.sqrt(-2 * torch.log1p(-uniform(bits)))
    return radius * torch.cos(2 * torch.pi * uniform(derive(bits, 1)))

"""Two tables in memory -> a data set: the graph, its splits, and the columns that become features."""

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from graphsage.datasets.dataset import Dataset
from graphsage.datasets.file_readers import read_vector_file
from graphsage.errors import ConfigError, DataError, DataWarning, setting
from graphsage.features.columns import Categorical, Dates, Numeric, Ready
from graphsage.features.pipeline import FeaturePlan, Step
from graphsage.features.recipe import Column, Recipe
from graphsage.features.sentences import Sentences
from graphsage.features.text import TfidfSvd
from graphsage.features.word_vectors import Word2Vec, WordVectors
from graphsage.graph.build import from_edges
from graphsage.graph.ids import NodeIds
from graphsage.graph.split import NONE, PARTS, Split
from graphsage.tables import values
from graphsage.tables.columns import TimeScale, cells, number_cells
from graphsage.tables.ids import id_arrays
from graphsage.tables.memory import ReadTables, read_tables
from graphsage.tables.spec import TableSpec, is_vector_file

SPLIT_CODES = {**PARTS, "": NONE}
_READ: dict[str, Any] = {  # the cells of a column, and how a recipe wants them
    "text": (cells, values.texts),
    "numeric": (number_cells, values.numbers),
    "log_numeric": (number_cells, values.numbers),
    "categorical": (cells, values.categories),
    "dates": (cells, values.days),
    "vectors": (cells, values.vectors),
}


def open_tables(spec: TableSpec) -> Dataset:
    """The data set of `spec`. Its splits are `given`, `time` and `random`, if available; the first is the default."""
    read = read_tables(spec, SPLIT_CODES)
    spec = read.spec
    for remark in read.remarks:
        warnings.warn(remark, DataWarning, stacklevel=2)
    if read.edge_weight is not None and (none := int((read.edge_weight == 0).sum())):
        warnings.warn(
            f"{none:,} of {len(read.edge_weight):,} edges have the weight 0, which means that there is no edge",
            DataWarning,
            stacklevel=2,
        )
    n, found = len(read.edges.known), read.edges
    columns = _feature_columns(read)
    answers, numbers = None if read.labels is None else read.labels.numbers, spec.label_type == "number"
    graph = from_edges(
        found.pairs,
        n,
        labels=None if numbers else answers,
        targets=answers if numbers else None,
        class_names=None if read.labels is None else read.labels.names,
        ids=NodeIds.from_arrays(id_arrays(found.known)),
        time=read.time,
        edge_time=read.edge_time,
        edge_weight=read.edge_weight,
        edge_type=None if read.edge_type is None else read.edge_type[0],
        edge_types=None if read.edge_type is None else read.edge_type[1],
        direction=spec.direction,
    )
    splits = {}
    if read.split is not None:
        splits["given"] = Split(torch.from_numpy(read.split))
    if graph.time is not None and read.scale is not None:
        splits["time"] = _time_split(graph.time, read.scale, spec)
    splits["random"] = Split.random(n, spec.fractions, spec.split_seed)
    about: dict[str, Any] = {"data": spec.name, "tables": spec.lasting().as_dict()}
    if read.edge_scale is not None:
        about["edge_dates"] = read.edge_scale.dates
    return Dataset(
        spec.name,
        graph,
        splits,
        next(iter(splits)),
        columns=columns,
        plan=feature_plan(spec),
        dropped_edges=found.dropped,
        place=read.place,
        about=about,
    )


def feature_plan(spec: TableSpec) -> FeaturePlan | None:
    """None if no column becomes a feature."""
    steps = [Step(_text(spec), spec.text)] if spec.text else []
    steps += [Step(Numeric(), (name,)) for name in spec.numeric]
    steps += [Step(Numeric(log=True), (name,)) for name in spec.log_numeric]
    steps += [Step(Categorical(), (name,)) for name in spec.categorical]
    steps += [Step(Dates(), (name,)) for name in spec.dates]
    steps += [Step(Ready(), (Path(name).stem if is_vector_file(name) else name,)) for name in spec.vectors]
    return FeaturePlan(tuple(steps)) if steps else None


def _text(spec: TableSpec) -> Recipe:
    model = spec.text_model or ""
    if spec.text_method == "vectors":
        return WordVectors(path=model)
    if spec.text_method == "sentences":
        return Sentences(path=model)
    if spec.text_method == "word2vec":
        return Word2Vec() if spec.text_dim is None else Word2Vec(dim=spec.text_dim)
    return TfidfSvd() if spec.text_dim is None else TfidfSvd(dim=spec.text_dim)


def _feature_columns(read: ReadTables) -> dict[str, Column]:
    """The columns as their recipes want them; a cell that cannot be read is an error with its row."""
    columns: dict[str, Column] = {}
    for role, name in read.spec.features_by_role:
        assert read.place is not None
        if read.added and role == "vectors":
            raise ConfigError(
                f"{setting('unknown_nodes', 'add')}: {read.added} nodes would have no vector ({name}); drop them"
            )
        if is_vector_file(name) and role == "vectors":
            stem, matrix = Path(name).stem, read_vector_file(Path(name))
            if len(matrix) != len(read.edges.known):
                raise DataError(
                    f"{name} has {len(matrix)} rows, but {read.place} has {len(read.edges.known)}; they must match"
                )
            if stem in columns or stem in read.columns:
                raise ConfigError(f"{name} would be the column {stem!r}, which there is already; rename the file")
            columns[stem] = matrix
            continue
        take, make = _READ[role]
        with read.place.naming():
            columns[name] = make(take(read.columns[name]), name)
    return columns


def _time_split(time: torch.Tensor, scale: TimeScale, spec: TableSpec) -> Split:
    """By `train_until` and `val_until`, or by fractions of the nodes."""
    if spec.train_until is None:
        return Split.by_time(time, spec.fractions)
    train_end = scale.until(spec.train_until, "train_until")
    val_end = train_end if spec.val_until is None else scale.until(spec.val_until, "val_until")
    if val_end < train_end:
        raise ConfigError(
            f"{setting('val_until', spec.val_until)} is before {setting('train_until', spec.train_until)}"
        )
    if not bool((time <= train_end).any()):
        raise DataError(f"no node is from {spec.train_until} or before: there is nothing to train on")
    return Split.at_times(time, train_end, val_end)


def new_labels_only_in(data: Dataset, split: Split, part: str = "test") -> dict[str, int]:
    """Classes of `part` that no training node has, with their number of nodes: no model can know them."""
    graph = data.graph
    if graph.labels is None or graph.regression:
        return {}
    names: Sequence[str] = graph.class_names or tuple(map(str, range(graph.num_classes)))
    counts = [graph.class_counts(split.nodes(each)) for each in ("train", part)]
    return {name: here for name, seen, here in zip(names, *counts, strict=True) if here and not seen}

"""A model's results as files: whole or not at all, in the format that the file's suffix names."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from graphsage.atomic import atomic_file
from graphsage.datasets.dataset import Dataset
from graphsage.errors import ConfigError, DataError
from graphsage.graph.external.row_file import RowWriter
from graphsage.graph.graph import Graph, known_labels
from graphsage.inference.model import Model

Column = Sequence[Any] | npt.NDArray[Any]
"""N values, N lists of words or numbers, or an (N, D) array."""
Batch = Mapping[str, Column]
"""Columns of equal length."""


def graph_for(model: Model, data: Dataset) -> Graph:
    """The graph of `data` as `model` reads it: columns become features by the recipes fitted in training."""
    if model.features is None:
        return data.graph
    if not data.columns:
        raise DataError(
            f"the model reads nodes' columns ({', '.join(model.features.columns)}), and {data.name} has none"
        )
    return data.graph.replace(features=torch.from_numpy(model.features.transform(data.columns)))


def embedding_columns(graph: Graph, nodes: Tensor, z: Tensor) -> dict[str, Column]:
    """id, embedding."""
    return {"id": _ids(graph, nodes), "embedding": z.numpy()}


def label_column(graph: Graph, nodes: Tensor) -> Column:
    """The true class of each node, its list of labels, or its number (several are an array, NaN if unknown); None if
    unknown."""
    if graph.labels is None:
        raise DataError("the data has no labels to write; leave the label out")
    names = graph.class_names or tuple(map(str, range(graph.num_classes)))
    own = graph.labels[nodes]
    if graph.regression:
        return own.numpy() if own.shape[1] > 1 else [None if y != y else y for y in own[:, 0].tolist()]
    if graph.multilabel:
        known = known_labels(own).tolist()
        rows = zip(own.numpy(), known, strict=True)
        return _lists([[names[label] for label in np.flatnonzero(row)] if good else None for row, good in rows])
    return [names[label] if label >= 0 else None for label in own.tolist()]


def prediction_columns(model: Model, graph: Graph, nodes: Tensor, z: Tensor) -> dict[str, Column]:
    """id, the predicted class (or list of labels), its probability (or theirs), and `p_<name>` for every class; for a
    regression id and `predicted_<name>` for every target."""
    if model.regression:
        numbers = model.values(z).numpy()
        named = enumerate(class_names(model, numbers.shape[1]))
        return {"id": _ids(graph, nodes), **{f"predicted_{name}": numbers[:, t] for t, name in named}}
    probabilities = model.probabilities(z)
    names, p = class_names(model, probabilities.shape[1]), probabilities.numpy()
    decided = decided_column(model, z)
    columns: dict[str, Column] = {"id": _ids(graph, nodes)}
    if model.multilabel:
        chosen = model.decide(probabilities).bool().numpy()
        columns["labels"] = decided
        columns["probability"] = _lists([row[labels].tolist() for row, labels in zip(p, chosen, strict=True)], "double")
    else:
        columns["class"] = decided
        columns["probability"] = p.max(axis=1)
    return columns | {f"p_{name}": p[:, c] for c, name in enumerate(names)}


def decided_column(model: Model, z: Tensor) -> Column:
    """The predicted class of each node, its list of labels, or its number (several are an array)."""
    decided, probabilities = model.outputs(z)
    if probabilities is None:
        return decided.numpy() if decided.shape[1] > 1 else decided[:, 0].numpy()
    names = class_names(model, probabilities.shape[1])
    if model.multilabel:
        return _lists([[names[label] for label in np.flatnonzero(row)] for row in decided.numpy()])
    return [names[label] for label in decided.tolist()]


def _lists(rows: list[Any], item: str = "string") -> Column:
    """A column of lists, whose type does not depend on its rows: other batches may have other rows."""
    import pyarrow as pa

    column: Column = pa.array(rows, pa.list_(pa.type_for_alias(item)))
    return column


def class_names(model: Model, count: int) -> tuple[str, ...]:
    """The names of the classes; where there are none, their numbers."""
    return model.class_names or tuple(map(str, range(count)))


def write_table(path: str | Path, columns: Batch) -> list[Path]:
    """Write columns of equal length to a .parquet, .csv, .npy or .txt (word2vec) file, and return the files made.

    An (N, D) column is a list in Parquet, and D columns `name_0`... in CSV. .npy holds one array, and the `id` column
    goes to `.ids.json` next to it.
    """
    return write_batches(path, [columns], len(next(iter(columns.values()))))


def write_batches(path: str | Path, batches: Iterable[Batch], count: int) -> list[Path]:
    """`write_table` of all batches, one after the other; `count` is their rows together. One batch is in memory."""
    path = Path(path)
    return [*check_suffix(path)(path, iter(batches), count), path]


def check_suffix(path: str | Path, known: Sequence[str] | None = None) -> Callable[..., list[Path]]:
    """The writer for a file's suffix. A suffix outside `known` is an error; check it before a long computation."""
    suffix = Path(path).suffix.lower()
    known = tuple(_WRITERS) if known is None else known
    if suffix not in known:
        raise ConfigError(f"{path}: the file must end in {', '.join(known)}; got {suffix or 'no ending'!r}")
    return _WRITERS[suffix]


def _write_parquet(path: Path, batches: Iterator[Batch], count: int) -> list[Path]:
    import pyarrow.parquet

    return _write_tables(path, map(_parquet_table, batches), pyarrow.parquet.ParquetWriter)


def _write_csv(path: Path, batches: Iterator[Batch], count: int) -> list[Path]:
    import pyarrow.csv

    return _write_tables(path, map(_csv_table, batches), pyarrow.csv.CSVWriter)


def _write_tables(path: Path, tables: Iterator[Any], make_writer: Callable[[Path, Any], Any]) -> list[Path]:
    """All with the columns of the first."""
    import pyarrow as pa

    with atomic_file(path) as temporary, ExitStack() as stack:
        writer = schema = None
        for table in tables:
            if writer is None:
                # A first batch of unknown classes only would say nothing about their type.
                fields = [pa.field(f.name, pa.string() if pa.types.is_null(f.type) else f.type) for f in table.schema]
                schema = pa.schema(fields)
                writer = stack.enter_context(make_writer(temporary, schema))
            writer.write_table(table.cast(schema))
    return []


def _parquet_table(columns: Batch) -> Any:
    """Columns as an Arrow table; a matrix is a column of lists of one length."""
    import pyarrow as pa

    def arrow(values: Column) -> Any:
        if isinstance(values, np.ndarray) and values.ndim == 2:
            flat = pa.array(np.ascontiguousarray(values).ravel())
            return pa.FixedSizeListArray.from_arrays(flat, values.shape[1])
        return pa.array(values)

    return pa.table({name: arrow(values) for name, values in columns.items()})


def _csv_table(columns: Batch) -> Any:
    """Columns as an Arrow table; each column of a matrix is one of its own, and a list is joined by semicolons."""
    import pyarrow as pa

    flat: dict[str, Any] = {}
    for name, column in columns.items():
        values = column.to_pylist() if isinstance(column, pa.Array) else column
        if isinstance(values, np.ndarray) and values.ndim == 2:
            flat |= {f"{name}_{d}": values[:, d] for d in range(values.shape[1])}
        elif any(isinstance(value, list) for value in values):
            flat[name] = [None if row is None else ";".join(map(_word, row)) or "[]" for row in values]
        else:
            flat[name] = values
    return pa.table(flat)


def _write_npy(path: Path, batches: Iterator[Batch], count: int) -> list[Path]:
    beside = path.with_suffix(".ids.json")
    with ExitStack() as stack:
        matrix = stack.enter_context(atomic_file(path))
        writer, ids = None, None
        for batch in batches:
            z = next((values for name, values in batch.items() if name != "id"), None)
            if len({*batch} - {"id"}) != 1 or not isinstance(z, np.ndarray) or z.ndim != 2:
                raise ConfigError(f"{path}: .npy holds one array and nothing else; write .parquet or .csv")
            if writer is None:
                writer = stack.enter_context(RowWriter(matrix, z.dtype, z.shape[1:]))
                if "id" in batch:
                    ids = stack.enter_context(stack.enter_context(atomic_file(beside)).open("w", encoding="utf-8"))
            if ids is not None:
                ids.write("[" if writer.count == 0 else ", ")
                ids.write(json.dumps(_listed(batch["id"]), ensure_ascii=False)[1:-1])
            writer.write(z)
        if ids is not None:
            ids.write("]\n")
    return [] if ids is None else [beside]


def _write_word2vec(path: Path, batches: Iterator[Batch], count: int) -> list[Path]:
    """word2vec's text format, which gensim reads: a line `N D`, then per line an id and its numbers."""
    with atomic_file(path) as temporary, temporary.open("w", encoding="utf-8") as file:
        for number, batch in enumerate(batches):
            z = batch.get("embedding")
            if not isinstance(z, np.ndarray) or set(batch) != {"id", "embedding"}:
                raise ConfigError(f"{path}: .txt (word2vec's format) holds embeddings only; write .parquet or .csv")
            if number == 0:
                file.write(f"{count} {z.shape[1]}\n")
            for value, row in zip(map(str, batch["id"]), z.tolist(), strict=True):
                if value.split() != [value]:
                    raise DataError(
                        f"{path}: word2vec's format cannot hold the id {value!r} (white space); write .parquet"
                    )
                file.write(f"{value} {' '.join(f'{x:.8g}' for x in row)}\n")
    return []


_WRITERS: dict[str, Callable[[Path, Iterator[Batch], int], list[Path]]] = {
    ".parquet": _write_parquet,
    ".csv": _write_csv,
    ".npy": _write_npy,
    ".txt": _write_word2vec,
}


def _listed(values: Column) -> list[Any]:
    return values.tolist() if isinstance(values, np.ndarray) else list(values)


def _word(item: Any) -> str:
    return f"{item:.6g}" if isinstance(item, float) else str(item)


def _ids(graph: Graph, nodes: Tensor) -> list[str | int]:
    return [graph.id_of(row) for row in nodes.tolist()]

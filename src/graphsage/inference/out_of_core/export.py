"""Results that never are in memory whole, written batch by batch into the files that `write_table` makes."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import torch

from graphsage.atomic import atomic_file
from graphsage.errors import ConfigError
from graphsage.graph.external.row_file import RowWriter
from graphsage.graph.graph import Graph
from graphsage.inference.export import (
    Column,
    check_suffix,
    csv_table,
    decided_column,
    embedding_columns,
    label_column,
    parquet_table,
    word2vec_lines,
)
from graphsage.inference.model import Model
from graphsage.inference.out_of_core.embed import Embedded, Progress

Batch = Mapping[str, Column]


def embedding_batches(
    found: Embedded,
    graph: Graph,
    model: Model | None = None,
    *,
    with_label: bool = False,
    on_block: Progress | None = None,
) -> Iterator[Batch]:
    """id, embedding, and on request the class; with a model also the class that it predicts."""
    for start, z in found.batches():
        nodes = torch.arange(start, start + len(z))
        columns = embedding_columns(graph, nodes, z)
        if with_label:
            columns["label"] = label_column(graph, nodes)
        if model is not None:
            columns["prediction"] = decided_column(model, model.probabilities(z))
        yield columns
        if on_block is not None:
            on_block(start + len(z), found.num_nodes)


def write_batches(path: str | Path, batches: Iterable[Batch], count: int) -> list[Path]:
    """`write_table` of all batches, one after the other; `count` is their rows together."""
    path = Path(path)
    check_suffix(path)
    return [*_WRITERS[path.suffix.lower()](path, iter(batches), count), path]


def _parquet(path: Path, batches: Iterator[Batch], count: int) -> list[Path]:
    import pyarrow.parquet

    return _tables(path, map(parquet_table, batches), pyarrow.parquet.ParquetWriter)


def _csv(path: Path, batches: Iterator[Batch], count: int) -> list[Path]:
    import pyarrow.csv

    return _tables(path, map(csv_table, batches), pyarrow.csv.CSVWriter)


def _tables(path: Path, tables: Iterator[Any], make_writer: Callable[[Path, Any], Any]) -> list[Path]:
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


def _npy(path: Path, batches: Iterator[Batch], count: int) -> list[Path]:
    beside = path.with_suffix(".ids.json")
    with atomic_file(path) as matrix, atomic_file(beside) as names, names.open("w", encoding="utf-8") as ids:
        with ExitStack() as stack:
            writer: RowWriter | None = None
            for batch in batches:
                z = batch["embedding"]
                if set(batch) != {"id", "embedding"} or not isinstance(z, np.ndarray):
                    raise ConfigError(f"{path}: .npy holds one array and nothing else; write .parquet or .csv")
                if writer is None:
                    writer = stack.enter_context(RowWriter(matrix, z.dtype, z.shape[1:]))
                ids.write("[" if writer.count == 0 else ", ")
                ids.write(json.dumps(list(batch["id"]), ensure_ascii=False)[1:-1])
                writer.write(z)
        ids.write("]\n")
    return [beside]


def _word2vec(path: Path, batches: Iterator[Batch], count: int) -> list[Path]:
    with atomic_file(path) as temporary, temporary.open("w", encoding="utf-8") as file:
        for number, batch in enumerate(batches):
            z = batch["embedding"]
            if set(batch) != {"id", "embedding"} or not isinstance(z, np.ndarray):
                raise ConfigError(f"{path}: .txt (word2vec's format) holds embeddings only; write .parquet or .csv")
            if number == 0:
                file.write(f"{count} {z.shape[1]}\n")
            file.writelines(word2vec_lines(path, [str(value) for value in batch["id"]], z))
    return []


_WRITERS: dict[str, Callable[[Path, Iterator[Batch], int], list[Path]]] = {
    ".parquet": _parquet,
    ".csv": _csv,
    ".npy": _npy,
    ".txt": _word2vec,
}

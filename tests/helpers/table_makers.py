"""Small tables in every format, written without the code under test."""

import csv
import gzip
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import feather, parquet

FORMATS = (".csv", ".tsv", ".csv.gz", ".parquet", ".feather", ".arrow", ".jsonl", ".jsonl.gz", ".parquet.gz")


def write_table(path: Path, columns: Mapping[str, Sequence[Any]]) -> Path:
    """Columns as the file's suffix says."""
    plain = path.with_name(path.name.removesuffix(".gz"))
    if plain.suffix in (".csv", ".tsv"):
        with plain.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, delimiter="\t" if plain.suffix == ".tsv" else ",")
            writer.writerows([columns, *zip(*columns.values(), strict=True)])
    elif plain.suffix == ".jsonl":
        rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        plain.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    elif plain.suffix == ".parquet":
        parquet.write_table(pa.table(dict(columns)), plain)
    elif plain.suffix == ".feather":
        feather.write_feather(pa.table(dict(columns)), str(plain))
    else:
        table = pa.table(dict(columns))
        with pa.ipc.new_stream(str(plain), table.schema) as writer:
            writer.write_table(table)
    if path != plain:
        path.write_bytes(gzip.compress(plain.read_bytes()))
        plain.unlink()
    return path

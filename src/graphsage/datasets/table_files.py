"""Tables in files: CSV, TSV, Parquet, Arrow/Feather and JSON-lines, `.gz` too, read in batches.

Nothing is guessed: every cell of a CSV file is text, `nan` and `2048` included; typed files keep their types. Errors
name the file and, where there is one, the row: row 1 is the first below the header.
"""

import csv
import gzip
import io
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any, cast

import pyarrow as pa

from graphsage.datasets.table import Table
from graphsage.errors import ConfigError, DataError

_BLOCK = 1 << 26  # bytes of a CSV file parsed at once; a longer row is an error
_BUFFER = 1 << 20  # bytes of a Parquet column read at once
_KEYS_FROM = 10_000  # lines of a JSON-lines file whose keys are its columns
DELIMITERS = {".csv": ",", ".tsv": "\t", ".tab": "\t"}
ARROW = (".feather", ".arrow", ".ipc")
LINES = (".jsonl", ".ndjson", ".jl")
KNOWN = (*DELIMITERS, ".parquet", *ARROW, *LINES)


def open_table(path: str | Path, delimiter: str | None = None, batch_rows: int = 1 << 16) -> Table:
    """Open a file by its suffix; only its column names are read yet. Parquet is read `batch_rows` at a time."""
    path = Path(path)
    suffix = Path(path.name.removesuffix(".gz")).suffix.lower()
    if suffix not in KNOWN:
        raise ConfigError(f"{path}: a table must end in {', '.join(KNOWN)} (or those with .gz); got {suffix!r}")
    if delimiter is not None and (len(delimiter) != 1 or delimiter in '"\r\n'):
        raise ConfigError(f"delimiter must be one character, such as ; or a tab; got {delimiter!r}")
    if not path.exists():
        raise DataError(f"{path} does not exist; it must be a table ({', '.join(KNOWN)})")
    if not path.is_file():
        raise DataError(f"{path} is a folder, not a table ({', '.join(KNOWN)})")
    if path.stat().st_size == 0:
        raise DataError(f"{path} is empty; a table has at least a line of column names")
    try:
        if suffix in DELIMITERS:
            return _csv(path, delimiter or DELIMITERS[suffix])
        return _parquet(path, batch_rows) if suffix == ".parquet" else _arrow(path) if suffix in ARROW else _json(path)
    except (pa.ArrowInvalid, OSError, EOFError) as error:
        raise _unreadable(path, error) from error


def _csv(path: Path, delimiter: str) -> Table:
    names = _header(path, delimiter)

    def batches(columns: Sequence[str]) -> Iterator[Any]:
        from pyarrow import csv as arrow_csv

        bad: list[Any] = []

        def on_bad_row(row: Any) -> str:
            bad.append(row)
            return "error"

        try:
            with _opened(path) as file:
                read = arrow_csv.ReadOptions(block_size=_BLOCK, use_threads=False)
                parse = arrow_csv.ParseOptions(
                    delimiter=delimiter, newlines_in_values=True, invalid_row_handler=on_bad_row
                )
                convert = arrow_csv.ConvertOptions(
                    column_types={name: pa.large_string() for name in names}, include_columns=list(columns),
                    strings_can_be_null=False, null_values=[],
                )  # fmt: skip
                yield from arrow_csv.open_csv(file, read, parse, convert)
        except (pa.ArrowInvalid, OSError, EOFError) as error:
            if bad:
                raise DataError(
                    f"{path} row {bad[0].number - 1} has {bad[0].actual_columns} cells, but there are "
                    f"{bad[0].expected_columns} columns; quote cells that contain {delimiter!r} or a quote"
                ) from error
            place = re.match(r"In CSV column #(\d+): Row #(\d+): .*UTF8", str(error))
            if place is not None:
                column, row = names[int(place[1])], int(place[2]) - 1
                raise DataError(f"{path} column {column!r} row {row} is not UTF-8 text; save it in UTF-8") from error
            raise _unreadable(path, error) from error

    return Table(str(path), names, batches)


def _header(path: Path, delimiter: str) -> tuple[str, ...]:
    try:
        with io.TextIOWrapper(_opened(path), encoding="utf-8-sig", newline="") as lines:
            names = next(csv.reader(lines, delimiter=delimiter, strict=True), [])
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not UTF-8 text ({error.reason}); save it as CSV in UTF-8") from error
    except csv.Error as error:
        raise DataError(f"{path} does not begin with a line of column names ({error}); is it a CSV file?") from error
    if not any(name.strip() for name in names):
        raise DataError(f"{path} does not begin with a line of column names")
    if any("\0" in name for name in names):
        raise DataError(f"{path} does not begin with a line of column names (it holds zero bytes); is it a CSV file?")
    others = [sign for sign in ";\t|," if sign != delimiter and sign in names[0]]
    if len(names) == 1 and others:
        raise DataError(f"{path} has one column, {names[0][:60]!r}; it seems to be separated by {others[0]!r}, not "
                        f"{delimiter!r}: set delimiter")  # fmt: skip
    return tuple(names)


def _parquet(path: Path, batch_rows: int) -> Table:
    from pyarrow import parquet

    file = parquet.ParquetFile(_seekable(path), buffer_size=_BUFFER, pre_buffer=False)

    def batches(columns: Sequence[str]) -> Iterator[Any]:
        try:
            yield from file.iter_batches(batch_rows, columns=list(columns))
        except (pa.ArrowException, OSError) as error:
            raise _unreadable(path, error) from error

    return Table(str(path), tuple(file.schema_arrow.names), batches)


def _arrow(path: Path) -> Table:
    source = _seekable(path)
    try:
        file = pa.ipc.open_file(source)
        numbers: Any = range(file.num_record_batches)
    except pa.ArrowInvalid:
        source.seek(0)
        file, numbers = pa.ipc.open_stream(source), None

    def batches(columns: Sequence[str]) -> Iterator[Any]:
        try:
            read = (file.get_batch(number) for number in numbers) if numbers is not None else iter(file)
            for batch in read:
                yield batch.select(list(columns))
        except (pa.ArrowException, OSError) as error:
            raise _unreadable(path, error) from error

    return Table(str(path), tuple(file.schema.names), batches)


def _json(path: Path) -> Table:
    names: dict[str, None] = {}
    for row, record in _records(path):
        names |= dict.fromkeys(record)
        if row >= _KEYS_FROM:
            break
    if not names:
        raise DataError(f"{path} has no row with a key; write one JSON object a line")

    def batches(columns: Sequence[str]) -> Iterator[Any]:
        cells: dict[str, list[Any]] = {name: [] for name in columns}
        for _, record in _records(path):
            for name, column in cells.items():
                column.append(record.get(name))
        yield pa.RecordBatch.from_pydict({name: _typed(path, name, column) for name, column in cells.items()})

    return Table(str(path), tuple(names), batches)


def _records(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    row = 0
    try:
        with io.TextIOWrapper(_opened(path), encoding="utf-8-sig") as lines:
            for line in lines:
                if not line.strip():
                    continue
                row += 1
                record = json.loads(line)
                if not isinstance(record, dict):
                    raise DataError(f"{path} row {row} is not a JSON object {{...}}; write one a line")
                yield row, record
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not UTF-8 text ({error.reason}); write JSON-lines in UTF-8") from error
    except (ValueError, RecursionError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{path} row {row} is not whole JSON ({error}); write one object a line") from error
    except (OSError, EOFError) as error:
        raise _unreadable(path, error) from error


def _typed(path: Path, name: str, cells: list[Any]) -> Any:
    """An Arrow array of JSON values that are all of one type."""
    try:
        return pa.array(cells)
    except (pa.ArrowException, OverflowError):
        for row, value in enumerate(cells, 1):
            try:
                pa.array([*[v for v in cells[: row - 1] if v is not None][-1:], value])
            except (pa.ArrowException, OverflowError):
                raise DataError(f"{path} column {name!r} row {row} is {value!r:.60}, which does not go with the rows "
                                "before; a column holds one type") from None  # fmt: skip
        raise DataError(f"{path} column {name!r} mixes types; a column holds one type") from None


def _opened(path: Path) -> IO[bytes]:
    return cast(IO[bytes], gzip.open(path)) if path.suffix == ".gz" else path.open("rb")


def _seekable(path: Path) -> Any:
    """For formats that are not read from front to back; a compressed file is unpacked in memory."""
    if path.suffix != ".gz":
        return pa.OSFile(str(path))  # not mapped: what was read would stay in memory
    with _opened(path) as file:
        return pa.BufferReader(file.read())


def _unreadable(path: Path, error: Exception) -> DataError:
    first = str(error).splitlines()[0] if str(error) else type(error).__name__
    return DataError(f"{path} cannot be read ({first.rstrip('.')[:200]}); is it damaged, or in another format?")

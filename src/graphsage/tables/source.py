"""Table sources: CSV, TSV, Parquet, Arrow/Feather and JSON-lines files (`.gz` too), and tables in memory.

Each yields Arrow record batches of the chosen columns. Nothing is guessed: every cell of a CSV file is text, `nan` and
`2048` included; typed sources keep their types.
"""

import csv
import gzip
import io
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO, Any, cast

import pyarrow as pa
import pyarrow.compute as pc

from graphsage.errors import ConfigError, DataError, setting
from graphsage.tables.messages import Place, listed

_BLOCK = 1 << 26  # bytes of a CSV file parsed at once; a longer row is an error
_BUFFER = 1 << 20  # bytes of a Parquet column read at once
_KEYS_FROM = 10_000  # lines of a JSON-lines file whose keys are its columns
DELIMITERS = {".csv": ",", ".tsv": "\t", ".tab": "\t"}
ARROW = (".feather", ".arrow", ".ipc")
LINES = (".jsonl", ".ndjson", ".jl")
KNOWN = (*DELIMITERS, ".parquet", *ARROW, *LINES)
IN_MEMORY = "(in memory)"  # how a saved spec refers to a table that has no path


@dataclass(frozen=True, eq=False)
class Table:
    """Names of columns, and batches of the chosen ones. Equal only to itself."""

    place: Place
    names: tuple[str, ...]
    read_batches: Callable[[Sequence[str]], Iterator[Any]]

    def __post_init__(self) -> None:
        for number, name in enumerate(self.names, 1):
            if not name.strip():
                raise DataError(f"{self.place}: column {number} of {len(self.names)} has no name")
            if self.names.index(name) != number - 1:
                raise DataError(f"{self.place} has two columns {name!r}; rename one")

    def __str__(self) -> str:
        return str(self.place)

    def batches(self, columns: Sequence[str], rows: int = 1, most: int = 1) -> Iterator[dict[str, Any]]:
        """The chosen columns, at least `rows` rows at a time: name -> Arrow array of plain type. After each batch
        `rows` doubles, up to `most`."""
        self.need(columns)
        held: list[Any] = []
        count = 0
        for batch in self.read_batches(columns):
            count += batch.num_rows
            held += [batch] if batch.num_rows else []
            if count >= rows:
                yield _joined(held)
                held, count, rows = [], 0, max(rows, min(2 * rows, most))
        if held:
            yield _joined(held)

    def with_missing(self, words: Sequence[str], ids: Sequence[str]) -> "Table":
        """The same table, in which cells that are one of `words` are null, except in the columns `ids`."""
        if not words:
            return self
        wanted = pa.array(words, pa.large_string())

        def without(name: str, array: Any) -> Any:
            array = plain(array)
            if name in ids or not pa.types.is_large_string(array.type):
                return array
            return pc.if_else(pc.is_in(pc.utf8_trim_whitespace(array), wanted), pa.scalar(None, array.type), array)

        def batches(columns: Sequence[str]) -> Iterator[Any]:
            for batch in self.read_batches(columns):
                names = batch.schema.names
                yield pa.RecordBatch.from_arrays([*map(without, names, batch.columns)], names)

        return Table(self.place, self.names, batches)

    def read(self, columns: Sequence[str]) -> dict[str, Any]:
        """All rows of the chosen columns: name -> Arrow array."""
        return next(self.batches(columns, sys.maxsize), {name: pa.array([], pa.large_string()) for name in columns})

    def need(self, columns: Sequence[str]) -> None:
        """Refuse columns that the table lacks."""
        missing = [name for name in columns if name not in self.names]
        if missing:
            raise DataError(f"{self} has no column {listed(missing)}; its columns are {listed(self.names)}")


def as_table(data: Any, name: str, delimiter: str | None = None, batch_rows: int = 1 << 16) -> Table:
    """A path, a pandas, polars or Arrow table, or a dict of columns; `name` is for messages. Ignores a pandas index."""
    if isinstance(data, Table):
        return data
    if isinstance(data, str | Path):
        return open_table(data, delimiter, batch_rows)
    try:
        if isinstance(data, Mapping):
            data = pa.table({str(name): _cells(values) for name, values in data.items()})
        elif hasattr(data, "iloc"):
            data = pa.Table.from_pandas(data, preserve_index=False)
        elif isinstance(data, pa.RecordBatch) or hasattr(data, "__arrow_c_stream__"):
            data = pa.table(data)
    except (pa.ArrowException, ValueError, TypeError) as error:
        raise DataError(f"{name} cannot be read as a table ({str(error).splitlines()[0]:.200})") from error
    if not isinstance(data, pa.Table):
        got = f"{type(data).__name__}{'; pass .collect()' if hasattr(data, 'collect') else ''}"
        raise DataError(f"{name} must be a path, a pandas, polars or Arrow table, or a dict of columns; got {got}")
    return Table(Place(name), tuple(data.schema.names), lambda columns: iter(data.select(list(columns)).to_batches()))


def plain(array: Any) -> Any:
    """The array with dictionaries decoded and every type of string as large_string."""
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    text = any(test(array.type) for test in (pa.types.is_string, pa.types.is_string_view, pa.types.is_null))
    return array.cast(pa.large_string()) if text else array


def _joined(batches: list[Any]) -> dict[str, Any]:
    found = {}
    for index, name in enumerate(batches[0].schema.names):
        arrays = [plain(batch.column(index)) for batch in batches]
        kind = next((a.type for a in arrays if a.null_count < len(a)), arrays[0].type)
        cast = [a if a.type == kind else a.cast(kind) for a in arrays]
        found[name] = cast[0] if len(cast) == 1 else pa.concat_arrays(cast)  # which copies
    return found


def _cells(values: Any) -> Any:
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values
    return pa.array(list(values) if getattr(values, "ndim", 1) == 2 else values)


def open_table(path: str | Path, delimiter: str | None = None, batch_rows: int = 1 << 16) -> Table:
    """Open a file by its suffix; only its column names are read yet. Parquet is read `batch_rows` at a time."""
    if path == IN_MEMORY:
        raise DataError("the model was trained on tables in memory, which were not saved; pass the graph")
    path = Path(path)
    suffix = Path(path.name.removesuffix(".gz")).suffix.lower()
    if suffix not in KNOWN:
        raise ConfigError(f"{path}: a table must end in {', '.join(KNOWN)} (or those with .gz); got {suffix!r}")
    if delimiter is not None and (len(delimiter) != 1 or delimiter in '"\r\n'):
        raise ConfigError(f"{setting('delimiter')} must be one character, such as ; or a tab; got {delimiter!r}")
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
                parse = arrow_csv.ParseOptions(delimiter=delimiter, newlines_in_values=True)
                parse.invalid_row_handler = on_bad_row
                text = dict.fromkeys(names, pa.large_string())
                convert = arrow_csv.ConvertOptions(column_types=text, include_columns=list(columns), null_values=[])
                yield from arrow_csv.open_csv(file, read, parse, convert)
        except (pa.ArrowInvalid, OSError, EOFError) as error:
            if bad:
                raise DataError(
                    f"{path} row {bad[0].number} has {bad[0].actual_columns} cells, but there are "
                    f"{bad[0].expected_columns} columns; quote cells that contain {delimiter!r} or a quote"
                ) from error
            found = re.match(r"In CSV column #(\d+): Row #(\d+): .*UTF8", str(error))
            if found is not None:
                where = f"{path} column {names[int(found[1])]!r} row {found[2]}"
                raise DataError(f"{where} is not UTF-8 text; save it in UTF-8") from error
            raise _unreadable(path, error) from error

    return Table(Place(str(path), first_row=2), names, batches)


def _header(path: Path, delimiter: str) -> tuple[str, ...]:
    try:
        with io.TextIOWrapper(_opened(path), encoding="utf-8-sig", newline="") as lines:
            names = next(csv.reader(lines, delimiter=delimiter, strict=True), [])
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not UTF-8 text ({error.reason}); save it as CSV in UTF-8") from error
    except csv.Error as error:
        raise DataError(f"{path} does not begin with a line of column names ({error}); is it a CSV file?") from error
    if not any(name.strip() for name in names) or any("\0" in name for name in names):
        raise DataError(f"{path} does not begin with a line of column names; is it a CSV file?")
    others = [sign for sign in ";\t|," if sign != delimiter and sign in names[0]]
    if len(names) == 1 and others:
        raise DataError(
            f"{path} has one column, {names[0][:60]!r}; it seems to be separated by {others[0]!r}, not "
            f"{delimiter!r}: set {setting('delimiter')}"
        )
    return tuple(names)


def _parquet(path: Path, batch_rows: int) -> Table:
    from pyarrow import parquet

    file = parquet.ParquetFile(_seekable(path), buffer_size=_BUFFER, pre_buffer=False)

    def batches(columns: Sequence[str]) -> Iterator[Any]:
        try:
            yield from file.iter_batches(batch_rows, columns=list(columns))
        except (pa.ArrowException, OSError) as error:
            raise _unreadable(path, error) from error

    return Table(Place(str(path)), tuple(file.schema_arrow.names), batches)


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

    return Table(Place(str(path)), tuple(file.schema.names), batches)


def _json(path: Path) -> Table:
    names = dict.fromkeys(name for _, record in islice(_records(path), _KEYS_FROM) for name in record)
    if not names:
        raise DataError(f"{path} has no row with a key; write one JSON object per line")

    def batches(columns: Sequence[str]) -> Iterator[Any]:
        cells: dict[str, list[Any]] = {name: [] for name in columns}
        for _, record in _records(path):
            for name, column in cells.items():
                column.append(record.get(name))
        yield pa.RecordBatch.from_pydict({name: _typed(path, name, column) for name, column in cells.items()})

    return Table(Place(str(path)), tuple(names), batches)


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
                    raise DataError(f"{path} row {row} is not a JSON object {{...}}; write one per line")
                yield row, record
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not UTF-8 text ({error.reason}); write JSON-lines in UTF-8") from error
    except (ValueError, RecursionError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{path} row {row} is not whole JSON ({error}); write one object per line") from error
    except (OSError, EOFError) as error:
        raise _unreadable(path, error) from error


def _typed(path: Path, name: str, cells: list[Any]) -> Any:
    """An Arrow array of JSON values that are all of one type."""
    try:
        return pa.array(cells)
    except (pa.ArrowException, OverflowError):
        before: list[Any] = []
        for row, value in enumerate(cells, 1):
            try:
                pa.array([*before, value])
            except (pa.ArrowException, OverflowError):
                raise DataError(
                    f"{path} column {name!r} row {row} is {value!r:.60}, not of the type of the rows "
                    "before; a column holds one type"
                ) from None
            before = before if value is None else [value]
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

"""A table as this package sees it, from a file or from memory: names of columns, and batches of the chosen ones."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from graphsage.errors import DataError


@dataclass(frozen=True)
class Table:
    """`place` is what errors call it: a file's path or an argument's name."""

    place: str
    names: tuple[str, ...]
    read_batches: Callable[[Sequence[str]], Iterator[Any]]

    def __post_init__(self) -> None:
        for number, name in enumerate(self.names, 1):
            if not name.strip():
                raise DataError(f"{self.place}: column {number} of {len(self.names)} has no name")
            if self.names.index(name) != number - 1:
                raise DataError(f"{self.place} has two columns {name!r}; give each its own name")

    def batches(self, columns: Sequence[str]) -> Iterator[dict[str, Any]]:
        """The chosen columns, a batch of rows at a time: name -> Arrow array of plain type."""
        self.need(columns)
        for batch in self.read_batches(columns):
            if batch.num_rows:
                yield {name: plain(batch.column(place)) for place, name in enumerate(batch.schema.names)}

    def read(self, columns: Sequence[str]) -> dict[str, Any]:
        """The chosen columns whole: name -> Arrow array."""
        parts: dict[str, list[Any]] = {name: [] for name in columns}
        for batch in self.batches(columns):
            for name, array in batch.items():
                parts[name].append(array)
        return {name: _joined(arrays) for name, arrays in parts.items()}

    def need(self, columns: Sequence[str]) -> None:
        """All of `columns` must be there; those that are not are named."""
        missing = [name for name in columns if name not in self.names]
        if missing:
            raise DataError(
                f"{self.place} has no column {', '.join(map(repr, missing))}; its columns are {some(self.names)}"
            )


def as_table(data: Any, place: str) -> Table:
    """A table of what people hold in memory: a pandas, polars or Arrow table, or a dict of columns."""
    if isinstance(data, Table):
        return data
    try:
        if isinstance(data, pa.RecordBatch):
            data = pa.Table.from_batches([data])
        elif isinstance(data, Mapping):
            data = pa.table({str(name): _cells(values) for name, values in data.items()})
        elif not isinstance(data, pa.Table) and hasattr(data, "__arrow_c_stream__"):
            data = pa.table(data)
    except (pa.ArrowException, ValueError, TypeError) as error:
        raise DataError(f"{place} cannot be read as a table ({str(error).splitlines()[0]:.200})") from error
    if not isinstance(data, pa.Table):
        raise DataError(
            f"{place} must be a pandas, polars or Arrow table, a dict of columns or a path; got {type(data).__name__}"
        )
    held = data.select([name for name in data.schema.names if not name.startswith("__index_level_")])
    return Table(place, tuple(held.schema.names), lambda columns: iter(held.select(list(columns)).to_batches()))


def plain(array: Any) -> Any:
    """The array with dictionaries decoded and all kinds of strings as one."""
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if pa.types.is_string(array.type) or pa.types.is_string_view(array.type):
        array = array.cast(pa.large_string())
    return array.cast(pa.large_string()) if pa.types.is_null(array.type) else array


def some(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names[:12])) + (", ..." if len(names) > 12 else "")


def _joined(arrays: list[Any]) -> Any:
    if not arrays:
        return pa.array([], pa.large_string())
    kind = next((a.type for a in arrays if a.null_count < len(a)), arrays[0].type)
    return pa.concat_arrays([a if a.type == kind else a.cast(kind) for a in arrays])


def _cells(values: Any) -> Any:
    if getattr(values, "ndim", 1) == 2:
        return pa.array(list(values))
    return values if isinstance(values, pa.Array | pa.ChunkedArray) else pa.array(values)

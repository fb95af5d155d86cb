"""Columns of a table as the rest of the package wants them: ids, and plain values for features."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, ParamSpec, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from graphsage.datasets.table import Table
from graphsage.errors import DataError
from graphsage.features.recipe import Column

LONGEST_ID = 10_000  # characters; a longer one means that the wrong column was taken
Given = ParamSpec("Given")
Made = TypeVar("Made")


def ids(array: Any, name: str, place: str, start: int = 0) -> Any:
    """An Arrow array of strings or int64 without missing ones; `start` rows came before it."""

    def refuse(where: Any, what: str) -> None:
        row = pc.index(where, True).as_py()
        if row >= 0:
            raise DataError(f"{place} column {name!r} row {start + row + 1} {what}")

    kind = array.type
    if not (pa.types.is_large_string(kind) or pa.types.is_integer(kind)):
        hint = "; whole numbers with missing ones become floats, fill those first" if pa.types.is_floating(kind) else ""
        raise DataError(f"{place} column {name!r} holds {kind}; ids are strings or whole numbers{hint}")
    refuse(pc.is_null(array), "has no id")
    if pa.types.is_integer(kind):
        if kind == pa.uint64():
            refuse(pc.greater(array, np.uint64(2**63 - 1)), "is beyond 64 signed bits; write such ids as text")
        return array.cast(pa.int64())
    refuse(pc.equal(pc.utf8_trim_whitespace(array), ""), "has no id")
    refuse(pc.greater(pc.utf8_length(array), LONGEST_ID), f"is longer than {LONGEST_ID} characters, too long for an id")
    return array


def like(array: Any, kind: Any, name: str, place: str, start: int = 0) -> Any:
    """Ids of edges in the type of the nodes' ids: digits as numbers, numbers as text."""
    array = ids(array, name, place, start)
    if array.type == kind:
        return array
    try:
        return array.cast(kind)
    except pa.ArrowInvalid:
        for row, value in enumerate(array.to_pylist(), start + 1):
            if not str(value).lstrip("-").isdigit() or abs(int(value)) >= 2**63:
                raise DataError(
                    f"{place} column {name!r} row {row} is {value!r:.60}, but the nodes' ids are whole numbers"
                ) from None
        raise


def cells(array: Any) -> Column:
    """Plain Python values or, for numbers and vectors of one length, a NumPy array (NaN for missing floats)."""
    kind = array.type
    if pa.types.is_floating(kind) or (pa.types.is_integer(kind) and array.null_count == 0):
        return np.asarray(array.to_numpy(zero_copy_only=False))
    if pa.types.is_fixed_size_list(kind) and array.null_count == 0:
        flat = array.flatten()
        if flat.null_count == 0 and (pa.types.is_floating(flat.type) or pa.types.is_integer(flat.type)):
            return np.asarray(flat.to_numpy(zero_copy_only=False)).reshape(len(array), kind.list_size)
    values: Sequence[Any] = array.to_pylist()
    return values


def number_cells(array: Any) -> Column:
    """`cells` of a column that is to be numbers: text is read all at once where every cell is plainly one or empty.
    Where it is not, cells stay as they are, for whoever reads them one by one and can name the row."""
    if pa.types.is_string(array.type) or pa.types.is_large_string(array.type):
        with suppress(pa.ArrowInvalid):
            return _floats(array)
        with suppress(pa.ArrowInvalid):  # looked for only now: most columns have no empty cell
            return _floats(pc.if_else(pc.equal(array, ""), pa.scalar(None, array.type), array))
    return cells(array)


def _floats(array: Any) -> Column:
    return np.asarray(array.cast(pa.float64()).to_numpy(zero_copy_only=False))


def reading(table: Table, make: Callable[Given, Made], *given: Given.args, **named: Given.kwargs) -> Made:
    """What `make` returns; an error about a column gets the table's name in front."""
    try:
        return make(*given, **named)
    except DataError as error:
        raise DataError(f"{table.place} {error}") from error


def guess(table: Table, wanted: str | None, candidates: Sequence[str], what: str) -> str:
    """The column `wanted`, or the only one with an obvious name; case does not matter."""
    if wanted is not None:
        table.need([wanted])
        return wanted
    for candidate in candidates:
        found = [name for name in table.names if name.strip().lower() == candidate]
        if len(found) == 1:
            return found[0]
        if found:
            raise DataError(f"{table.place} has the columns {' and '.join(map(repr, found))}; say which is the {what}")
    names = ", ".join(map(repr, table.names[:12]))
    raise DataError(f"{table.place} has no column called {' or '.join(candidates)}; say which is the {what} "
                    f"(columns: {names})")  # fmt: skip

"""Cells as numbers, words, days or vectors. A cell that cannot be read is a CellError.

A cell is missing if it is null, NaN or blank, in every kind of column. Words such as NA are values, unless the user
names them (`TableSpec.missing`).
"""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime
from typing import Any

import numpy as np
import numpy.typing as npt

from graphsage.errors import DataError, setting
from graphsage.tables.messages import CellError, shown

UNKNOWN = 255
"""The marks of a node whose labels are unknown. A node without any label has zeros."""
LARGEST_TARGET = 1e38
"""Of a regression: about the largest float32, whose square is a float64."""
Column = Sequence[Any] | npt.NDArray[Any]
LIKE_MISSING = frozenset({"na", "n/a", "#n/a", "nan", "null"})  # in any case: a message asks whether they are meant so
_LARGEST = float(np.finfo(np.float32).max)
_DAY = 86_400


def missing(value: Any) -> bool:
    """Whether a cell is None, NaN, NaT or blank."""
    if isinstance(value, str):
        return not value.strip()
    return value is None or (not isinstance(value, np.ndarray | list) and bool(value != value))


def numbers(values: Column, name: str, advice: str = "correct it or take it as categorical") -> npt.NDArray[np.float64]:
    """(N,) with NaN for missing values. Infinity is an error. `advice` follows if a cell is no number."""
    if isinstance(values, np.ndarray) and values.ndim == 1 and values.dtype.kind in "fiub":
        found = values.astype(np.float64)
    else:
        found = np.array([_number(value, name, row, advice) for row, value in enumerate(values)], np.float64)
    bad = np.flatnonzero(np.isinf(found))
    if len(bad):
        raise CellError(name, int(bad[0]), "is infinite; numbers must be finite, or empty for missing")
    return found


def _number(value: Any, name: str, row: int, advice: str) -> float:
    if missing(value):
        return np.nan
    try:
        if isinstance(value, str | int | float | np.number | np.bool_) and "_" not in str(value):
            found = float(value)
            if found == found:
                return found
    except (ValueError, OverflowError):
        pass
    problem = f"is {shown(value)}, not a number; {_hint(value) or advice}"
    raise CellError(name, row, problem)


def _hint(value: Any) -> str:
    alike = isinstance(value, str) and value.strip().lower() in LIKE_MISSING
    return f"if it means a missing value, give {setting('missing', value.strip())}" if alike else ""


def fits_float32(values: npt.NDArray[np.float64], name: str) -> None:
    bad = np.flatnonzero(np.abs(values) > _LARGEST)
    if len(bad):
        problem = f"is {values[bad[0]]:g}, beyond float32; scale it, or take it as a logarithm (log_numeric)"
        raise CellError(name, int(bad[0]), problem)


def texts(values: Column, name: str) -> list[str]:
    """(N,) strings, '' for missing. Numbers are written out."""
    return [word(value, name, row, "text") for row, value in enumerate(values)]


def categories(values: Column, name: str) -> list[str]:
    """(N,) names of categories without space around them, '' for missing. Integers are written without a point."""
    return [word(value, name, row, "a category").strip() for row, value in enumerate(values)]


def word(value: Any, name: str, row: int, what: str) -> str:
    if isinstance(value, str):
        return value
    if missing(value):
        return ""
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if isinstance(value, int | np.integer):
        return str(int(value))
    if isinstance(value, float | np.floating):
        number = float(value)
        return str(int(number)) if number.is_integer() and abs(number) < 1e15 else str(number)
    if isinstance(value, date | np.datetime64):
        return str(value)
    raise CellError(name, row, f"is {shown(value)}, not {what}; give one word or number per row")


def moment(value: Any) -> float | None:
    """Seconds since 1970 of an ISO 8601 date or time, a date or a timestamp; None for anything else."""
    if isinstance(value, np.datetime64):
        return float(value.astype("datetime64[us]").astype(np.int64)) / 1e6
    if isinstance(value, str):
        text = value.strip()
        if len(text) < 10 or text[4:5] != "-":  # 20190601 is an integer before it is a date
            return None
        try:
            value = datetime.fromisoformat(text)
        except ValueError:
            return None
    if isinstance(value, datetime):
        aware = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
        with suppress(OverflowError):  # an offset may lead out of the years 1 to 9999
            return aware.timestamp()
        return None
    if isinstance(value, date):
        return float((value.toordinal() - date(1970, 1, 1).toordinal()) * _DAY)
    return None


def days(values: Column, name: str) -> npt.NDArray[np.float64]:
    """(N,) days since 1970-01-01 with a fraction, NaN for missing values; numbers are taken as days already."""
    return np.array([_day(value, name, row) for row, value in enumerate(values)], np.float64)


def _day(value: Any, name: str, row: int) -> float:
    if missing(value):
        return np.nan
    number = isinstance(value, float | int | np.number) and not isinstance(value, bool)
    if number and abs(value) < 1_000_000:
        return float(value)
    seconds = moment(value)
    if seconds is None:
        raise CellError(name, row, f"is {shown(value)}, not a date; {_hint(value) or 'write dates as 2024-12-31'}")
    return seconds / _DAY


def median(seen: npt.NDArray[np.float64], name: str, what: str) -> float:
    """Of the values that are not missing; `what` they are."""
    known = seen[~np.isnan(seen)]
    if not len(known):
        raise DataError(f"column {name!r} has no {what} in any training row; leave it out")
    return float(np.median(known))


def vectors(values: Column, name: str, width: int | None = None) -> npt.NDArray[np.float32]:
    """(N, width) float32 from a matrix, from lists, or from cells such as `0.5;1` or `[0.5, 1]`."""
    if not (isinstance(values, np.ndarray) and values.ndim == 2):
        rows = [_vector(value, name, row) for row, value in enumerate(values)]
        width = len(rows[0]) if width is None and rows else width or 0
        for row, vector in enumerate(rows):
            if len(vector) != width:
                raise CellError(name, row, f"has {len(vector)} numbers; {width} were expected")
        values = np.array(rows, np.float64).reshape(len(rows), width)
    if values.dtype.kind not in "fiub":
        raise DataError(f"column {name!r} must hold vectors of numbers; got {values.dtype}")
    if width is not None and values.shape[1] != width and len(values):
        raise CellError(name, 0, f"has {values.shape[1]} numbers; {width} were expected")
    with np.errstate(over="ignore"):  # beyond float32: reported as infinity
        table = np.ascontiguousarray(values, dtype=np.float32)
    for start in range(0, len(table), 1 << 14):
        finite = np.isfinite(table[start : start + (1 << 14)]).all(axis=1)
        if not finite.all():
            row = start + int(np.flatnonzero(~finite)[0])
            raise CellError(name, row, "holds NaN or infinity (as float32); fill or drop it first")
    return table


def _vector(value: Any, name: str, row: int) -> list[float]:
    cells: Iterable[Any] = value
    if isinstance(value, str):
        inside = value.strip().removeprefix("[").removesuffix("]")
        cells = inside.replace(";", " ").replace(",", " ").split()
    try:
        found = [float(cell) for cell in cells]
    except (TypeError, ValueError):
        found = []
    if not found:
        raise CellError(name, row, f"is {shown(value)}, not a vector; give a list of numbers")
    return found

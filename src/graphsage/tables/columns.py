"""Arrow columns as features, classes, splits and times. A cell that cannot be read is a CellError."""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from graphsage.errors import ConfigError, DataError, setting
from graphsage.tables import values
from graphsage.tables.messages import CellError, shown
from graphsage.tables.values import Column

LONGEST_CLASS = 1_000  # characters
PARTS = {"training": "train", "valid": "val", "validation": "val"}
_MOST = 1 << 28  # cells of a label matrix
_DAY = 86_400
Read = TypeVar("Read")


def cells(array: Any) -> Column:
    """Python values or, for numbers and for vectors of one length, a NumPy array (NaN for missing floats)."""
    kind = array.type
    if pa.types.is_floating(kind) or (pa.types.is_integer(kind) and array.null_count == 0):
        return np.asarray(array.to_numpy(zero_copy_only=False))
    if is_list(kind) and len(array) and array.null_count == 0:
        flat, lengths = array.flatten(), pc.list_value_length(array)
        width = lengths[0].as_py()
        number = pa.types.is_floating(flat.type) or pa.types.is_integer(flat.type)
        if width and number and flat.null_count == 0 and pc.all(pc.equal(lengths, width)).as_py():
            return np.asarray(flat.to_numpy(zero_copy_only=False)).reshape(len(array), width)
    found: Sequence[Any] = array.to_pylist()
    return found


def number_cells(array: Any) -> Column:
    """`cells` of a numeric column. Text is parsed in one call if every cell is a plain number or empty; otherwise the
    cells stay text, and `values.numbers` names the row that is wrong."""
    if pa.types.is_string(array.type) or pa.types.is_large_string(array.type):
        with suppress(pa.ArrowInvalid):
            return _floats(array)
        with suppress(pa.ArrowInvalid):  # tried second: most columns have no empty cell
            return _floats(pc.if_else(pc.equal(array, ""), pa.scalar(None, array.type), array))
    return cells(array)


def is_list(kind: Any) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def _floats(array: Any) -> Column:
    return np.asarray(array.cast(pa.float64()).to_numpy(zero_copy_only=False))


def _distinct(array: Any, name: str, read: Callable[[Any, int], Read]) -> tuple[list[Read], npt.NDArray[np.int64]]:
    """`read(value, 0)` of each distinct cell, and its position for each row."""
    if pa.types.is_nested(array.type):
        return [read(value, row) for row, value in enumerate(array.to_pylist())], np.arange(len(array))
    found = array.dictionary_encode(null_encoding="encode")
    made = []
    for position, value in enumerate(found.dictionary.to_pylist()):
        try:
            made.append(read(value, 0))
        except CellError as error:
            raise CellError(name, pc.index(found.indices, position).as_py(), error.problem) from None
    return made, found.indices.to_numpy(zero_copy_only=False)


@dataclass(frozen=True)
class Labels:
    """`numbers`: (N,) int64 with -1 for unknown, or (N, C) of 0 and 1; `names` of the classes in order."""

    numbers: npt.NDArray[Any]
    names: tuple[str, ...]


class Classes:
    """One class per node, read in batches. A cell is the name of a class; an empty cell is an unknown class."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._codes: dict[str, int] = {"": 0}

    def add(self, array: Any) -> npt.NDArray[np.int64]:
        """Codes of the cells, numbered by appearance; `numbering` translates them."""
        words, rows = _distinct(array, self.name, lambda value, row: _class(value, self.name, row))
        return np.array([self._codes.setdefault(word, len(self._codes)) for word in words], np.int64)[rows]

    def numbering(self) -> tuple[tuple[str, ...], npt.NDArray[np.int64]]:
        """The classes in order, and the class of each code (-1: unknown)."""
        names = _in_order(self._codes, self.name)
        places = {word: place for place, word in enumerate(names)} | {"": -1}
        return names, np.array([places[word] for word in self._codes], np.int64)


def read_labels(array: Any, name: str, separator: str = ";", multilabel: bool | None = None) -> Labels:
    """One class per node, or many labels if a cell is a list or contains the separator. With many labels, an empty
    cell is a node without any."""
    if multilabel is None:
        multilabel = has_many(array, separator)
    if not multilabel:
        classes = Classes(name)
        codes = classes.add(array)
        names, table = classes.numbering()
        return Labels(table[codes], names)
    marks = cells(array)
    if isinstance(marks, np.ndarray) and marks.ndim == 2 and marks.shape[1] > 1 and np.isin(marks, (0, 1)).all():
        return Labels(marks.astype(np.uint8), tuple(map(str, range(marks.shape[1]))))  # one mark per class
    rows = [_many(cell, name, row, separator) for row, cell in enumerate(array.to_pylist())]
    names = _in_order({word for words in rows for word in words}, name)
    if len(rows) * len(names) > _MOST:
        raise DataError(f"column {name!r} has {len(names)} labels for {len(rows)} rows, too many; is it the label?")
    places = {word: place for place, word in enumerate(names)}
    numbers = np.zeros((len(rows), len(names)), np.uint8)
    for row, words in enumerate(rows):
        numbers[row, [places[word] for word in words]] = 1
    return Labels(numbers, names)


def has_many(array: Any, separator: str) -> bool:
    """Whether a cell holds many labels."""
    if not (pa.types.is_string(array.type) or pa.types.is_large_string(array.type)):
        return is_list(array.type)
    return bool(pc.any(pc.match_substring(array, separator)).as_py())


def _class(value: Any, name: str, row: int) -> str:
    word = values.word(value, name, row, "a category").strip()
    if len(word) > LONGEST_CLASS:
        raise CellError(name, row, f"has a class of {len(word)} characters; is it the label?")
    return word


def _many(cell: Any, name: str, row: int, separator: str) -> list[str]:
    parts = cell if isinstance(cell, list) else values.word(cell, name, row, "a category").split(separator)
    return [word for part in parts if (word := _class(part, name, row))]


def _in_order(words: Iterable[str], name: str) -> tuple[str, ...]:
    """Classes in sorted order; integers in numeric order."""
    names = set(words) - {""}
    if not names:
        raise DataError(f"column {name!r} has no label in any row; choose another label, or none")
    if all(re.fullmatch(r"-?[0-9]{1,18}", word) for word in names):
        return tuple(sorted(names, key=lambda word: (int(word), word)))
    return tuple(sorted(names))


def read_split(array: Any, name: str, codes: Mapping[str, int]) -> npt.NDArray[np.uint8]:
    """The code of train, val (valid, validation) or test in each row; of '' for an empty cell, which is in no part."""

    def part(value: Any, row: int) -> int:
        word = "" if values.missing(value) else str(value).strip().lower()
        code = codes.get(PARTS.get(word, word))
        if code is None:
            raise CellError(name, row, f"is {shown(value)}; a split column holds train, val and test")
        return code

    found, rows = _distinct(array, name, part)
    return np.array(found, np.uint8)[rows]


@dataclass(frozen=True)
class TimeScale:
    """How times are read. `order`: names from the oldest to the newest -> 0, 1, ...; `dates`: ISO 8601 -> seconds
    since 1970; neither: integers."""

    order: tuple[str, ...] = ()
    dates: bool = False

    @staticmethod
    def of(array: Any, name: str, order: Sequence[str]) -> "TimeScale":
        """The scale that fits the cells. Names without an order are an error."""
        if order:
            return TimeScale(tuple(order))
        found = _time_cells(array)
        if isinstance(found, np.ndarray):
            return TimeScale(dates=found.dtype.kind == "M")
        for row, value in enumerate(found):
            if _missing(value):
                raise CellError(name, row, "has no time; every row needs one")
            if _whole(value) is None:
                if values.moment(value) is None:
                    raise CellError(
                        name,
                        row,
                        f"is {shown(value)}: neither an integer nor an ISO date (2024-12-31); "
                        f"names need {setting('time_order')}, from the oldest to the newest",
                    )
                return TimeScale(dates=True)
        return TimeScale()

    def read(self, array: Any, name: str) -> npt.NDArray[np.int64]:
        """Times (N,) as integers."""
        found = _time_cells(array)
        if isinstance(found, np.ndarray) and not self.order and self.dates == (found.dtype.kind == "M"):
            return found.astype("datetime64[us]").astype(np.int64) // 1_000_000 if self.dates else found
        times = np.empty(len(found), np.int64)
        for row, value in enumerate(array.to_pylist()):
            number = self._number(value)
            if number is None:
                raise CellError(name, row, self._problem(value))
            times[row] = number
        return times

    def until(self, text: str, name: str) -> int:
        """The time that a setting names; the end of the day if it is a day."""
        number = self._number(text)
        if number is None:
            raise ConfigError(f"{setting(name)} {self._problem(text)}")
        return number + _DAY - 1 if self.dates and len(text.strip()) == 10 else number

    def _number(self, value: Any) -> int | None:
        if self.order:
            whole = isinstance(value, float) and value.is_integer()
            word = str(int(value)) if whole else str(value)
            return self.order.index(word) if word in self.order else None
        if not self.dates:
            return _whole(value)
        seconds = values.moment(value)
        return None if seconds is None else math.floor(seconds)

    def _problem(self, value: object) -> str:
        if _missing(value):
            return "has no time; every row needs one"
        if self.order:
            return f"is {shown(value)}, which {setting('time_order')} does not have ({', '.join(self.order)})"
        kind = "an ISO date (2024-12-31)" if self.dates else "an integer"
        return f"is {shown(value)}, not {kind} as the other times are; names need {setting('time_order')}"


def _time_cells(array: Any) -> Column:
    """int64 or datetime64 if no cell is missing, otherwise Python values."""
    kind = array.type
    typed = pa.types.is_integer(kind) or pa.types.is_date(kind) or pa.types.is_timestamp(kind)
    if typed and array.null_count == 0:
        found = np.asarray(array.to_numpy(zero_copy_only=False))
        if found.dtype.kind == "M":
            return found
        if not len(found) or max(abs(int(found.min())), abs(int(found.max()))) < 2**62:
            return found.astype(np.int64)
    found_values: Sequence[Any] = array.to_pylist()
    return found_values


def _whole(value: object) -> int | None:
    if isinstance(value, str):
        number = int(value) if value.strip().lstrip("+-").isdecimal() else None
    elif isinstance(value, int | float) and not isinstance(value, bool) and float(value).is_integer():
        number = int(value)
    else:
        return None
    return number if number is not None and abs(number) < 2**62 else None


def _missing(value: object) -> bool:
    return values.missing(value) or (isinstance(value, str) and not value.strip())

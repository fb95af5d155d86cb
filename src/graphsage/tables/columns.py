"""Arrow columns as features, classes, splits and times. A cell that cannot be read is a CellError."""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from graphsage.errors import ConfigError, DataError, setting
from graphsage.tables import values
from graphsage.tables.messages import CellError, shown
from graphsage.tables.values import LARGEST_TARGET, UNKNOWN, Column

LONGEST_CLASS = 1_000  # characters
NO_LABELS = "[]"  # in a text cell
MOST_NUMBERS, MOST_SHARE = 50, 0.2  # more different numbers, per labeled row, are measurements
_NUMBER = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?")
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
    """A numeric column; it stays text if a cell is no plain number, and `values.numbers` then names the faulty row."""
    if _is_text(array.type):
        with suppress(pa.ArrowInvalid):
            empty = pc.equal(array, "")
            found = pc.if_else(empty, pa.scalar(None, array.type), array) if pc.any(empty).as_py() else array
            numbers = np.asarray(found.cast(pa.float64()).to_numpy(zero_copy_only=False))
            if np.count_nonzero(np.isnan(numbers)) == found.null_count:
                return numbers
    return cells(array)


def _is_text(kind: Any) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def is_list(kind: Any) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


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
    """`numbers`: (N,) int64 with -1 for unknown, (N, C) of 0 and 1 with UNKNOWN, or (N, T) float64 with NaN; `names` of
    the classes, labels or targets in order."""

    numbers: npt.NDArray[Any]
    names: tuple[str, ...]
    remarks: tuple[str, ...] = ()


class Classes:
    """One class per node by name; missing cells are unknown. Numeric targets are refused unless `insist`."""

    def __init__(self, name: str, insist: bool = False) -> None:
        self.name, self.insist = name, insist
        self.known = 0
        """Cells that are not missing."""
        self._codes: dict[str, int] = {"": 0}

    def add(self, array: Any) -> npt.NDArray[np.int64]:
        """Codes of the cells, numbered by appearance; `numbering` translates them."""
        words, rows = _distinct(array, self.name, lambda value, row: _class(value, self.name, row))
        codes = np.array([self._codes.setdefault(word, len(self._codes)) for word in words], np.int64)[rows]
        self.known += int(np.count_nonzero(codes))
        return codes

    def numbering(self) -> tuple[tuple[str, ...], npt.NDArray[np.int64]]:
        """The classes in order, and the class of each code (-1: unknown)."""
        names = _in_order(self._codes, self.name)
        if not self.insist:
            self._refuse_measurements(names)
        places = {word: place for place, word in enumerate(names)} | {"": -1}
        return names, np.array([places[word] for word in self._codes], np.int64)

    @property
    def remarks(self) -> list[str]:
        return [*_like_missing(self.name, self._codes), *self._like_numbers()]

    def _like_numbers(self) -> list[str]:
        """Integers that are not numbered from 0 or 1, as classes are, may be years."""
        words = [word for word in self._codes if word]
        if self.insist or not words or not all(_NUMBER.fullmatch(word) for word in words):
            return []
        low, high = (int(float(pick(words, key=float))) for pick in (min, max))
        if 0 <= low <= 1:
            return []
        return [
            f"column {self.name!r}: each of the {len(words):,} numbers from {low} to {high} is read as a class; to "
            f"predict numbers give {setting('task', 'regression')} and {setting('label_type', 'number')}; if they are "
            f"classes, give {setting('label_type', 'class')}"
        ]

    def _refuse_measurements(self, names: Sequence[str]) -> None:
        """Numbers are measurements if one has a fraction, or if many have gaps or occur a few times each."""
        if not all(_NUMBER.fullmatch(word) for word in names):
            return
        fraction = next((word for word in names if not float(word).is_integer()), None)
        many = len(names) > MOST_NUMBERS and (len(names) > MOST_SHARE * self.known or not _without_gaps(names))
        if fraction is not None or many:
            what = f"{len(names):,} different numbers" if fraction is None else f"numbers with a fraction ({fraction})"
            raise DataError(
                f"column {self.name!r} holds {what}, which are no classes; to predict numbers give "
                f"{setting('task', 'regression')} and {setting('label_type', 'number')}; to predict each number as a "
                f"class give {setting('label_type', 'class')}"
            )


def _without_gaps(names: Sequence[str]) -> bool:
    numbers = {int(float(word)) for word in names}
    return max(numbers) - min(numbers) < len(names)


def read_labels(array: Any, name: str, separator: str = ";", label_type: str | None = None) -> Labels:
    """One class per node, or a set of labels per node.

    `label_type` is class or labels. None means labels if the cells are lists or most of them contain the separator. A
    missing cell is unknown. An empty list, written `[]` in text, is a node without labels.
    """
    chosen = label_type
    remarks: tuple[str, ...] = ()
    if is_list(array.type):
        if label_type == "class":
            raise DataError(f"column {name!r} holds lists; give {setting('label_type', 'labels')}, or leave it out")
    elif chosen is None:
        chosen, remarks = _guessed_type(array, name, separator)
    if chosen == "class":
        classes = Classes(name, label_type is not None)
        codes = classes.add(array)
        names, table = classes.numbering()
        return Labels(table[codes], names, (*remarks, *classes.remarks))
    marks = _marks(array, name)
    if marks is not None:
        return Labels(marks, tuple(map(str, range(marks.shape[1]))))
    rows = [_many(cell, name, row, separator) for row, cell in enumerate(array.to_pylist())]
    names = _in_order({word for words in rows for word in words or ()}, name)
    if len(rows) * len(names) > _MOST:
        raise DataError(f"column {name!r} has {len(names)} labels for {len(rows)} rows, too many; is it the label?")
    places = {word: place for place, word in enumerate(names)}
    numbers = np.zeros((len(rows), len(names)), np.uint8)
    for row, labels in enumerate(rows):
        if labels is None:
            numbers[row] = UNKNOWN
        else:
            numbers[row, [places[word] for word in labels]] = 1
    return Labels(numbers, names, (*remarks, *_like_missing(name, names)))


def read_targets(columns: Mapping[str, Any]) -> Labels:
    """Numbers to predict, one column for each target. A missing cell is unknown."""
    table = np.stack([target_numbers(array, name) for name, array in columns.items()], axis=1)
    refuse_empty_targets(tuple(columns), np.asarray(~np.isnan(table).all(axis=0)))
    return Labels(table, tuple(columns))


def refuse_empty_targets(names: Sequence[str], known: npt.NDArray[np.bool_]) -> None:
    """`known` (T,) says which columns have a number in any row."""
    if not known.all():
        raise DataError(f"column {names[int(known.argmin())]!r} has no number in any row; choose another label")


def target_numbers(array: Any, name: str) -> npt.NDArray[np.float64]:
    """Numbers to predict of some rows, NaN where a cell is missing."""
    found = values.numbers(number_cells(array), name, "regression predicts columns of numbers only")
    large = np.flatnonzero(np.abs(found) > LARGEST_TARGET)
    if len(large):
        row = int(large[0])
        raise CellError(name, row, f"is {found[row]:g}; targets are at most {LARGEST_TARGET:g} in size, so scale them")
    return found


def _guessed_type(array: Any, name: str, separator: str) -> tuple[str, tuple[str, ...]]:
    """What most cells look like, and a remark if some look otherwise."""
    if not _is_text(array.type):
        return "class", ()
    words = pc.utf8_trim_whitespace(array)
    several, known = (pc.sum(cells).as_py() or 0 for cells in (has_several(words, separator), pc.not_equal(words, "")))
    if not several:
        return "class", ()
    chosen, other, read = "class", "labels", "the name of a class"
    if 2 * several > known:
        chosen, other, read = "labels", "class", "a set of labels"
    cells = f"{several:,} of {known:,} cells hold {separator!r} or {NO_LABELS}"
    advice = f"if that is wrong, give {setting('label_type', other)}"
    return chosen, (f"column {name!r}: {cells}, and each cell is read as {read}; {advice}",)


def has_several(words: Any, separator: str) -> Any:
    """Which cells of text are written as a set of labels."""
    return pc.or_(pc.match_substring(words, separator), pc.equal(words, NO_LABELS))


def _marks(array: Any, name: str) -> npt.NDArray[np.uint8] | None:
    """Lists of 0 and 1 of one length, above 1, as a matrix; None if the lists are something else."""
    tests = (pa.types.is_boolean, pa.types.is_integer, pa.types.is_floating)
    if not is_list(array.type) or not any(test(array.type.value_type) for test in tests):
        return None
    known = np.flatnonzero(array.is_valid().to_numpy(zero_copy_only=False))
    lists = array.drop_null()
    item, lengths = lists.flatten(), pc.list_value_length(lists).to_numpy(zero_copy_only=False)
    widths = set(lengths.tolist()) - {0}
    if len(widths) != 1 or widths == {1}:
        return None
    (width,) = widths
    flat = np.asarray(item.cast(pa.float64()).to_numpy(zero_copy_only=False))
    if not np.isin(flat[~np.isnan(flat)], (0, 1)).all():
        return None
    if 0 in lengths:
        problem = f"is an empty list, but others hold {width} marks; write {width} zeros, or null if they are unknown"
        raise CellError(name, int(known[np.flatnonzero(lengths == 0)[0]]), problem)
    rows = flat.reshape(-1, width)
    unknown = np.isnan(rows)
    partly = np.flatnonzero(unknown.any(axis=1) & ~unknown.all(axis=1))
    if len(partly):
        raise CellError(name, int(known[partly[0]]), "lacks some of its marks; give all, or null if they are unknown")
    marks = np.full((len(array), width), UNKNOWN, np.uint8)
    marks[known] = np.where(unknown, UNKNOWN, np.nan_to_num(rows))
    return marks


def _class(value: Any, name: str, row: int) -> str:
    word = values.word(value, name, row, "a category").strip()
    if len(word) > LONGEST_CLASS:
        raise CellError(name, row, f"has a class of {len(word)} characters; is it the label?")
    return word


def _many(cell: Any, name: str, row: int, separator: str) -> list[str] | None:
    """The labels of a cell; None if they are unknown."""
    if values.missing(cell):
        return None
    if isinstance(cell, list):
        parts = cell
    else:
        text = values.word(cell, name, row, "a category")
        parts = [] if text.strip() == NO_LABELS else text.split(separator)
    return [word for part in parts if (word := _class(part, name, row))]


def _like_missing(name: str, words: Iterable[str]) -> list[str]:
    found = [word for word in words if word.lower() in values.LIKE_MISSING]
    if not found:
        return []
    return [
        f"column {name!r}: {found[0]!r} is read as a class; if it means unknown, give {setting('missing', found[0])}"
    ]


def _in_order(words: Iterable[str], name: str) -> tuple[str, ...]:
    """Classes in sorted order; integers in numeric order."""
    names = set(words) - {""}
    if not names:
        raise DataError(f"column {name!r} has no label in any row; choose another label, or none")
    if all(re.fullmatch(r"-?[0-9]{1,18}", word) for word in names):
        return tuple(sorted(names, key=lambda word: (int(word), word)))
    return tuple(sorted(names))


def read_edge_types(array: Any, name: str, known: Sequence[str] = ()) -> tuple[npt.NDArray[np.int64], tuple[str, ...]]:
    """The type of each edge as a number of the names, which are those `known` or the sorted ones of the column."""

    def word(value: Any, row: int) -> str:
        if values.missing(value):
            raise CellError(name, row, "has no edge type; fill it, or leave the edge types out")
        found = values.word(value, name, row, "an edge type")
        if known and found not in known:
            raise CellError(
                name, row, f"has the edge type {shown(found)}, which the model does not know ({', '.join(known)})"
            )
        return found

    words, rows = _distinct(array, name, word)
    names = tuple(known) or tuple(sorted({*words}))
    place = {each: number for number, each in enumerate(names)}
    return np.array([place[each] for each in words], np.int64)[rows], names


def read_weights(array: Any, name: str) -> npt.NDArray[np.float64]:
    """Weights of edges: finite numbers from 0 on."""
    found = values.numbers(number_cells(array), name)
    odd = np.flatnonzero(~((found >= 0) & (found <= LARGEST_TARGET)))
    if len(odd):
        row = int(odd[0])
        problem = "has no weight" if np.isnan(found[row]) else f"is {found[row]:g}"
        raise CellError(name, row, f"{problem}; weights are finite numbers from 0, which means that there is no edge")
    return found.astype(np.float64)


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
    """How times are read: `order` of names, oldest first; `dates` in ISO 8601, as seconds since 1970; or integers."""

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
            if values.missing(value):
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

    @staticmethod
    def of_text(text: str, order: Sequence[str]) -> "TimeScale":
        """The scale of a time that a setting names: one of `order`, an integer or a date."""
        return TimeScale(tuple(order)) if order else TimeScale(dates=_whole(text) is None)

    def at(self, text: str, name: str) -> int:
        """The time that a setting names; the beginning of the day if it is a day."""
        number = self._number(text)
        if number is None:
            raise ConfigError(f"{setting(name)} {self._problem(text)}")
        return number

    def text(self, number: int) -> str:
        """A time as the cells write it."""
        if self.order:
            return self.order[number]
        if not self.dates:
            return str(number)
        return (datetime(1970, 1, 1) + timedelta(seconds=number)).isoformat().removesuffix("T00:00:00")

    def until(self, text: str, name: str) -> int:
        """The time that a setting names; the end of the day if it is a day."""
        number = self.at(text, name)
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
        if values.missing(value):
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

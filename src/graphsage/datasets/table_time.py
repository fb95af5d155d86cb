"""A column of moments -> whole numbers that can be compared: whole numbers, ISO dates, or names in a given order."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from graphsage.errors import ConfigError, DataError
from graphsage.features.recipe import Column
from graphsage.features.values import moment, shown

_DAY = 86_400


@dataclass(frozen=True)
class TimeScale:
    """How moments are read. `order`: names from the oldest to the newest -> 0, 1, ...; `dates`: ISO 8601 -> seconds
    since 1970; neither: whole numbers as they are."""

    order: tuple[str, ...] = ()
    dates: bool = False

    @staticmethod
    def of(values: Column, name: str, order: Sequence[str]) -> "TimeScale":
        """The scale that fits the values. Names without an order are an error: the alphabet knows no time."""
        if order:
            return TimeScale(tuple(order))
        for row, value in enumerate(values, 1):
            if _missing(value):
                raise DataError(f"column {name!r} row {row} has no time; every row needs one")
            if _whole(value) is None:
                if moment(value) is None:
                    raise DataError(
                        f"column {name!r} row {row} is {shown(value)}: neither a whole number nor an ISO date "
                        "(2024-12-31); names need time_order, from the oldest to the newest"
                    )
                return TimeScale(dates=True)
        return TimeScale()

    def read(self, values: Column, name: str) -> npt.NDArray[np.int64]:
        """Moments (N,) as whole numbers."""
        found = np.empty(len(values), np.int64)
        places = {word: place for place, word in enumerate(self.order)}
        for row, value in enumerate(values):
            number = places.get(_text(value)) if self.order else self._number(value)
            if number is None:
                raise DataError(f"column {name!r} row {row + 1} {self._problem(value)}")
            found[row] = number
        return found

    def until(self, text: str, name: str) -> int:
        """A moment that a person names; the whole day where only a day is given."""
        number = {word: place for place, word in enumerate(self.order)}.get(text) if self.order else self._number(text)
        if number is None:
            raise ConfigError(f"{name} {self._problem(text)}")
        return number + _DAY - 1 if self.dates and len(text.strip()) == 10 else number

    def _number(self, value: object) -> int | None:
        if not self.dates:
            return _whole(value)
        seconds = moment(value)
        return None if seconds is None else math.floor(seconds)

    def _problem(self, value: object) -> str:
        if _missing(value):
            return "has no time; every row needs one"
        if self.order:
            return f"is {shown(value)}, which time_order does not have ({', '.join(self.order)})"
        kind = "an ISO date (2024-12-31)" if self.dates else "a whole number"
        return f"is {shown(value)}, not {kind} as the other times are; names need time_order"


def _whole(value: object) -> int | None:
    if isinstance(value, str):
        number = int(value) if value.strip().lstrip("+-").isdecimal() else None
    elif isinstance(value, int | float | np.number) and not isinstance(value, bool) and float(value).is_integer():
        number = int(value)
    else:
        return None
    return number if number is not None and abs(number) < 2**62 else None


def _missing(value: object) -> bool:
    return value is None or value != value or (isinstance(value, str) and not value.strip())


def _text(value: object) -> str:
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return str(value)

"""Features of single columns: numbers, categories, dates and vectors.

Standardizing is left to the encoder's scaler, which does it for all features alike.
"""

import hashlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Self

import numpy as np

from graphsage.errors import BundleError, DataError, at_least
from graphsage.features.recipe import Arrays, Column, Columns, Floats, Rows, Saved, take
from graphsage.tables import values
from graphsage.tables.messages import CellError

_FIRST, _LAST = -719_162, 2_932_896  # days of the years 1 to 9999


@dataclass(frozen=True)
class _OneColumn(Saved):
    @property
    def name(self) -> str:
        return self.columns[0]

    @classmethod
    def from_state(cls, config: Mapping[str, Any], arrays: Arrays) -> Self:
        made = super().from_state(config, arrays)
        if len(made.columns) != 1:
            raise BundleError("the saved features' columns must be one column; train the model again")
        return made


def _only(columns: Columns) -> tuple[str, Column]:
    """The name and values of the one column given."""
    if len(columns) != 1:
        raise DataError(f"such features are made of one column; got {', '.join(columns) or 'none'}")
    return next(iter(columns.items()))


@dataclass(frozen=True, kw_only=True)
class Numeric:
    """`log` takes sign(x) * log(1 + |x|) first, for columns with a heavy tail."""

    log: bool = False

    def fit(self, columns: Columns, rows: Rows) -> "FittedNumeric":
        name, column = _only(columns)
        seen = values.numbers(take(column, rows), name)
        return FittedNumeric((name,), self.log, values.median(seen, name, "number"), bool(np.isnan(seen).any()))


@dataclass(frozen=True)
class FittedNumeric(_OneColumn):
    """A missing value becomes the training median; `indicator` adds a column that is 1 there."""

    saved = "numeric"
    log: bool
    median: float
    indicator: bool

    @property
    def width(self) -> int:
        return 2 if self.indicator else 1

    @property
    def kind(self) -> str:
        return "number (log)" if self.log else "number"

    def transform(self, columns: Columns) -> Floats:
        found = values.numbers(columns[self.name], self.name)
        missing = np.isnan(found)
        filled = np.where(missing, self.median, found)
        filled = np.sign(filled) * np.log1p(np.abs(filled)) if self.log else filled
        values.fits_float32(filled, self.name)
        return np.stack([filled, missing], axis=1).astype(np.float32)[:, : self.width]

    @classmethod
    def from_state(cls, config: Mapping[str, Any], arrays: Arrays) -> Self:
        made = super().from_state(config, arrays)
        if not np.isfinite(made.median):
            raise BundleError("the saved features' median is not finite; train the model again")
        return made


@dataclass(frozen=True, kw_only=True)
class Categorical:
    """A missing value is a category of its own, called ''."""

    min_count: int = 2
    """Training rows that a category needs for a column of its own; 1 if no category has that many."""
    limit: int = 256
    """With more columns than this, categories are hashed to `hashed` columns instead."""
    hashed: int = 256

    def __post_init__(self) -> None:
        at_least(1, self, "min_count", "limit", "hashed")

    def fit(self, columns: Columns, rows: Rows) -> "FittedCategorical":
        name, column = _only(columns)
        counts = Counter(values.categories(take(column, rows), name))
        enough = min(self.min_count, max(counts.values(), default=1))
        frequent = sorted(word for word, count in counts.items() if count >= enough)
        if len(frequent) > self.limit:
            return FittedCategorical((name,), (), self.hashed)
        return FittedCategorical((name,), tuple(frequent), 0)


@dataclass(frozen=True)
class FittedCategorical(_OneColumn):
    """`names` have a column each and the last column is for all others; with `hashed` above 0 there are no names."""

    saved = "categorical"
    names: tuple[str, ...]
    hashed: int

    @property
    def width(self) -> int:
        return self.hashed or len(self.names) + 1

    @property
    def kind(self) -> str:
        return "category (hashed)" if self.hashed else "category"

    def transform(self, columns: Columns) -> Floats:
        words = values.categories(columns[self.name], self.name)
        other = len(self.names)
        if self.hashed:
            places = [_bucket(word, self.hashed) for word in words]
        else:
            places = [self._places.get(word, other) for word in words]
        features = np.zeros((len(words), self.width), np.float32)
        features[np.arange(len(words)), places] = 1
        return features

    @cached_property
    def _places(self) -> dict[str, int]:
        return {word: place for place, word in enumerate(self.names)}


@lru_cache(1 << 16)
def _bucket(word: str, width: int) -> int:
    digest = hashlib.blake2b(word.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little") % width


@dataclass(frozen=True)
class Dates:
    """ISO 8601 dates and times, timestamps, or numbers that already count days since 1970."""

    def fit(self, columns: Columns, rows: Rows) -> "FittedDates":
        name, column = _only(columns)
        seen = values.days(take(column, rows), name)
        return FittedDates((name,), values.median(seen, name, "date"), bool(np.isnan(seen).any()))


@dataclass(frozen=True)
class FittedDates(_OneColumn):
    """Columns: days since 1970, year, sine and cosine of the month, `indicator` of missing (median) dates."""

    saved = "dates"
    median: float
    indicator: bool

    @property
    def width(self) -> int:
        return 5 if self.indicator else 4

    @property
    def kind(self) -> str:
        return "date"

    def transform(self, columns: Columns) -> Floats:
        found = values.days(columns[self.name], self.name)
        missing = np.isnan(found)
        day = np.where(missing, self.median, found)
        bad = np.flatnonzero((day < _FIRST) | (day > _LAST))
        if len(bad):
            raise CellError(self.name, int(bad[0]), "is no day of the years 1 to 9999")
        whole = np.floor(day).astype(np.int64).astype("datetime64[D]")
        months = whole.astype("datetime64[M]").astype(np.int64)  # since January 1970
        angle = 2 * np.pi * (months % 12) / 12
        parts = [day, 1970 + months // 12, np.sin(angle), np.cos(angle), missing]
        return np.stack(parts, axis=1).astype(np.float32)[:, : self.width]

    @classmethod
    def from_state(cls, config: Mapping[str, Any], arrays: Arrays) -> Self:
        made = super().from_state(config, arrays)
        if not _FIRST <= made.median <= _LAST:
            raise BundleError("the saved features' median is no day; train the model again")
        return made


@dataclass(frozen=True)
class Ready:
    def fit(self, columns: Columns, rows: Rows) -> "FittedReady":
        name, column = _only(columns)
        return FittedReady((name,), values.vectors(take(column, rows[:1]), name).shape[1])


@dataclass(frozen=True)
class FittedReady(_OneColumn):
    saved = "ready"
    width: int

    @property
    def kind(self) -> str:
        return "vector"

    def transform(self, columns: Columns) -> Floats:
        return values.vectors(columns[self.name], self.name, self.width)

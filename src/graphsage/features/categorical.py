"""A column of categories -> one-hot, or hashed to a fixed width where there are too many to give each a column."""

import hashlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from graphsage.errors import one_or_more
from graphsage.features.recipe import Columns, Floats, OneColumn, Rows, State, only, read_field, read_words, take
from graphsage.tables import values


@dataclass(frozen=True, kw_only=True)
class Categorical:
    """A missing value is a category of its own, called ''."""

    min_count: int = 2
    """A category gets a column when so many training rows have it (one is enough where no category has more)."""
    limit: int = 256
    """With more columns than this, categories are hashed to `hashed` columns instead."""
    hashed: int = 256

    def __post_init__(self) -> None:
        one_or_more(self, "min_count", "limit", "hashed")

    def fit(self, columns: Columns, rows: Rows) -> "FittedCategorical":
        name, column = only(columns)
        counts = Counter(values.categories(take(column, rows), name))
        enough = min(self.min_count, max(counts.values(), default=1))
        frequent = sorted(word for word, count in counts.items() if count >= enough)
        if len(frequent) > self.limit:
            return FittedCategorical(name, (), self.hashed)
        return FittedCategorical(name, tuple(frequent), 0)


@dataclass(frozen=True)
class FittedCategorical(OneColumn):
    """`names` have a column each and the last column is for all others; with `hashed` above 0 there are no names."""

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

    def state(self) -> State:
        return {"kind": "categorical", "name": self.name, "names": list(self.names), "hashed": self.hashed}, {}

    @staticmethod
    def from_state(config: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> "FittedCategorical":
        return FittedCategorical(
            read_field(config, "name", str), read_words(config, "names"), read_field(config, "hashed", int)
        )


@lru_cache(1 << 16)
def _bucket(word: str, width: int) -> int:
    digest = hashlib.blake2b(word.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little") % width

"""The paper's text features for Reddit (section 4.1): the mean of pre-trained word vectors, for each column by itself.

The bundle keeps the vectors of the words that occur in the training texts and of the first words of the file, so it
needs no file later; the files have their most frequent words first.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from graphsage.errors import ConfigError, DataError
from graphsage.features.recipe import Columns, Floats, Rows, State, read_array, read_words, take
from graphsage.features.vector_file import read_vectors
from graphsage.features.words import average, words_of
from graphsage.tables import values


@dataclass(frozen=True, kw_only=True)
class WordVectors:
    path: str
    """A GloVe or word2vec file."""
    keep: int = 50_000
    """So many words of the file are kept even if no training text has them."""

    def __post_init__(self) -> None:
        if self.keep < 0:
            raise ConfigError(f"keep must be 0 or more; got {self.keep}")

    def fit(self, columns: Columns, rows: Rows) -> "FittedWordVectors":
        seen = {
            word
            for name, column in columns.items()
            for text in values.texts(take(column, rows), name)
            for word in words_of(text)
        }
        kept: dict[str, Floats] = {}
        for number, (word, vector) in enumerate(read_vectors(Path(self.path))):
            if (number < self.keep or word in seen) and word not in kept:
                kept[word] = vector
        if seen.isdisjoint(kept):
            raise DataError(f"{self.path} has a vector for no word of the training texts ({', '.join(columns)})")
        return FittedWordVectors(tuple(columns), tuple(kept), np.stack(list(kept.values())))


@dataclass(frozen=True, eq=False)
class FittedWordVectors:
    """`vectors` (V, D) of `words`; the result has D features for each column, side by side."""

    columns: tuple[str, ...]
    words: tuple[str, ...]
    vectors: Floats

    @property
    def width(self) -> int:
        return int(self.vectors.shape[1]) * len(self.columns)

    @property
    def kind(self) -> str:
        return "text (word vectors)"

    def transform(self, columns: Columns) -> Floats:
        parts = []
        for name in self.columns:
            documents = (words_of(text) for text in values.texts(columns[name], name))
            parts.append(average(documents, self._places, self.vectors))
        return np.concatenate(parts, axis=1)

    @cached_property
    def _places(self) -> dict[str, int]:
        return {word: place for place, word in enumerate(self.words)}

    def state(self) -> State:
        config = {"kind": "word-vectors", "columns": list(self.columns), "words": list(self.words)}
        return config, {"vectors": self.vectors}

    @staticmethod
    def from_state(config: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> "FittedWordVectors":
        words = read_words(config, "words")
        return FittedWordVectors(
            read_words(config, "columns"), words, read_array(arrays, "vectors", (len(words), None))
        )

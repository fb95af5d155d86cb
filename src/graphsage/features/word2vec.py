"""The paper's text features for citation data (section 4.1): word2vec trained on the texts, sentences by SIF weighting.

Arora, Liang and Ma (2017): a text is the average of its words' vectors, each weighted by a / (a + p(w)), where p(w) is
the word's share of all words; then what all texts have in common, their first singular vector, is taken off.
Several columns are read as one text. Words, vectors, p(w) and the common part come from the training rows alone.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from graphsage.errors import BundleError, ConfigError, DataError, one_or_more
from graphsage.features.recipe import Columns, Floats, Rows, State, read_array, read_field, read_words, take
from graphsage.features.words import average, words_of
from graphsage.tables import values

_INSTALL = "word2vec features need gensim; install it with: pip install 'graphsage[text]'"


@dataclass(frozen=True, kw_only=True)
class Word2Vec:
    dim: int = 300
    min_count: int = 5
    """A word must occur so often in the training texts (once is enough where no word does)."""
    window: int = 5
    epochs: int = 5
    a: float = 1e-3
    """SIF's smoothing; Arora et al. use 1e-3 to 1e-4."""
    seed: int = 0

    def __post_init__(self) -> None:
        one_or_more(self, "dim", "min_count", "window", "epochs")
        if not self.a > 0:
            raise ConfigError(f"a must be above 0; got {self.a}")

    def fit(self, columns: Columns, rows: Rows) -> "FittedWord2Vec":
        documents = _documents({name: take(column, rows) for name, column in columns.items()}, tuple(columns))
        counts = Counter(word for document in documents for word in document)
        if not counts:
            raise DataError(f"the text columns {', '.join(columns)} hold no word in any training row; leave them out")
        enough = min(self.min_count, max(counts.values()))
        words = tuple(sorted(word for word, count in counts.items() if count >= enough))
        vectors = self._train(documents, words, enough)
        share = np.array([counts[word] for word in words], np.float64) / sum(counts.values())
        weights = (self.a / (self.a + share)).astype(np.float32)
        fitted = FittedWord2Vec(self, tuple(columns), words, vectors, weights, np.zeros(self.dim, np.float32))
        common = first_singular_vector(fitted.averages(documents))
        return FittedWord2Vec(self, tuple(columns), words, vectors, weights, common)

    def _train(self, documents: Sequence[list[str]], words: Sequence[str], enough: int) -> Floats:
        """One thread, so that the same seed gives the same vectors."""
        try:
            from gensim.models import Word2Vec as Trainer
        except ImportError:
            raise ConfigError(_INSTALL) from None
        trained = Trainer(
            documents,
            vector_size=self.dim,
            window=self.window,
            min_count=enough,
            epochs=self.epochs,
            seed=self.seed,
            workers=1,
        )
        return np.stack([trained.wv[word] for word in words]).astype(np.float32)


@dataclass(frozen=True, eq=False)
class FittedWord2Vec:
    """`vectors` (V, dim) of `words`, their SIF `weights` (V,) and the `common` direction (dim,), of length 1 or 0."""

    settings: Word2Vec
    columns: tuple[str, ...]
    words: tuple[str, ...]
    vectors: Floats
    weights: Floats
    common: Floats

    @property
    def width(self) -> int:
        return self.settings.dim

    @property
    def kind(self) -> str:
        return "text (word2vec, SIF)"

    def transform(self, columns: Columns) -> Floats:
        found = self.averages(_documents(columns, self.columns))
        found -= np.outer(found @ self.common, self.common)
        return found

    def averages(self, documents: Iterable[Sequence[str]]) -> Floats:
        """Weighted averages (N, dim), the common direction still in them."""
        return average(documents, self._places, self.vectors * self.weights[:, None])

    @cached_property
    def _places(self) -> dict[str, int]:
        return {word: place for place, word in enumerate(self.words)}

    def state(self) -> State:
        config = {
            "kind": "word2vec",
            "settings": asdict(self.settings),
            "columns": list(self.columns),
            "words": list(self.words),
        }
        return config, {"vectors": self.vectors, "weights": self.weights, "common": self.common}

    @staticmethod
    def from_state(config: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> "FittedWord2Vec":
        settings = _read_settings(config)
        words = read_words(config, "words")
        return FittedWord2Vec(
            settings,
            read_words(config, "columns"),
            words,
            read_array(arrays, "vectors", (len(words), settings.dim)),
            read_array(arrays, "weights", (len(words),)),
            read_array(arrays, "common", (settings.dim,)),
        )


def first_singular_vector(x: Floats) -> Floats:
    """The first right singular vector (D,) of x (N, D), by the eigenvectors of x'x: N may be large. Zero for x = 0."""
    gram = x.astype(np.float64).T @ x.astype(np.float64)
    if not gram.any():
        return np.zeros(x.shape[1], np.float32)
    return np.linalg.eigh(gram)[1][:, -1].astype(np.float32)


def _documents(columns: Columns, names: Sequence[str]) -> list[list[str]]:
    texts = [values.texts(columns[name], name) for name in names]
    return [[word for text in row for word in words_of(text)] for row in zip(*texts, strict=True)]


def _read_settings(config: Mapping[str, Any]) -> Word2Vec:
    saved = read_field(config, "settings", dict)
    kinds = {field.name: (int, float) if field.name == "a" else (int,) for field in fields(Word2Vec)}
    if set(saved) != set(kinds):
        raise BundleError(f"the word2vec features' settings must be {', '.join(kinds)}; train the model again")
    checked = {name: read_field(saved, name, kind) for name, kind in kinds.items()}
    try:
        return Word2Vec(**checked)
    except ConfigError as error:
        raise BundleError(f"the word2vec features' settings are wrong: {error}") from error

"""The paper's text features (section 4.1): averages of word vectors, from a file or trained by word2vec.

`WordVectors`, for Reddit: the mean of pre-trained vectors, for each column by itself. The bundle keeps the vectors of
the words in the training texts and of the first words of the file, so it needs no file later. Files have their most
frequent words first.

`Word2Vec`, for citation data: vectors trained on the texts, sentences by SIF weighting (Arora, Liang and Ma, 2017). A
text is the average of its words' vectors, each weighted by a / (a + p(w)), where p(w) is the word's share of all words.
Then the first singular vector, common to all texts, is subtracted. Several columns are read as one text. Words,
vectors, p(w) and the common vector come from the training rows alone.

Files of vectors (`.gz` too):

    GloVe           the 0.1 0.2 ...
    word2vec text   a first line `words width`, then as GloVe
    word2vec binary a first line `words width`, then for each word its name, a space and `width` float32
"""

import gzip
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import IO, Any, cast

import numpy as np

from graphsage.errors import ConfigError, DataError, at_least
from graphsage.features.recipe import Arrays, Columns, Floats, Rows, State, read_array, read_settings, read_words, take
from graphsage.features.text import UNSPACED, groups
from graphsage.tables import values

_INSTALL = "word2vec features need gensim; install it with: pip install 'graphsage[text]'"
_LONGEST = 1 << 16  # bytes of a word; a longer one means that the file is something else
_WORD = re.compile(r"\w+(?:['’]\w+)*")


def words_of(text: str) -> list[str]:
    """Lower-case words (letters, digits, _, inner apostrophes); pairs of characters in scripts without spaces."""
    parts = enumerate(UNSPACED.split(text.lower()))  # the odd ones are such scripts
    return [word for i, part in parts for word in (groups(part, 2) if i % 2 else _WORD.findall(part))]


def average(documents: Iterable[Sequence[str]], places: Mapping[str, int], vectors: Floats) -> Floats:
    """Means (N, D) of the rows of `vectors` that belong to each document's known words; zero where none is known."""
    from scipy.sparse import csr_matrix

    indices: list[int] = []
    indptr = [0]
    for document in documents:
        indices.extend(place for word in document if (place := places.get(word)) is not None)
        indptr.append(len(indices))
    sizes = np.diff(indptr)
    ones = np.repeat(1.0 / np.maximum(sizes, 1), sizes).astype(np.float32)
    counts = csr_matrix((ones, np.array(indices, np.int64), np.array(indptr)), (len(sizes), len(vectors)))
    return np.asarray(counts @ vectors, dtype=np.float32)


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
    """`vectors` (V, D) of `words`; the result has D features per column."""

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
    def from_state(config: Mapping[str, Any], arrays: Arrays) -> "FittedWordVectors":
        words = read_words(config, "words")
        return FittedWordVectors(
            read_words(config, "columns"), words, read_array(arrays, "vectors", (len(words), None))
        )


@dataclass(frozen=True, kw_only=True)
class Word2Vec:
    dim: int = 300
    min_count: int = 5
    """Occurrences in the training texts that a word needs; 1 if no word has that many."""
    window: int = 5
    epochs: int = 5
    a: float = 1e-3
    """SIF's smoothing; Arora et al. use 1e-3 to 1e-4."""
    seed: int = 0

    def __post_init__(self) -> None:
        at_least(1, self, "dim", "min_count", "window", "epochs")
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
    def from_state(config: Mapping[str, Any], arrays: Arrays) -> "FittedWord2Vec":
        settings = read_settings(config, Word2Vec)
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


def read_vectors(path: Path) -> Iterator[tuple[str, Floats]]:
    """Words and their vectors in the order of the file; all vectors have the same width."""
    try:
        with _opened(path) as file:
            first = file.readline(1 << 20)
            header = first.split()
            if len(header) == 2 and all(part.isdigit() for part in header):
                count, width = int(header[0]), int(header[1])
                binary = path.name.removesuffix(".gz").endswith(".bin")
                yield from _binary(file, count, width, path) if binary else _text(file, width, 2, path)
            elif first:
                word, vector = _line(first, None, 1, path)
                yield word, vector
                yield from _text(file, len(vector), 2, path)
            else:
                raise DataError(f"{path} is empty; it must hold word vectors")
    except FileNotFoundError:
        raise DataError(f"{path} does not exist; it must be a file of word vectors (GloVe or word2vec)") from None
    except (OSError, EOFError) as error:
        raise DataError(f"{path} cannot be read ({error}); fetch it again") from error


def _opened(path: Path) -> IO[bytes]:
    return cast(IO[bytes], gzip.open(path)) if path.suffix == ".gz" else path.open("rb")


def _text(file: IO[bytes], width: int, start: int, path: Path) -> Iterator[tuple[str, Floats]]:
    for number, line in enumerate(file, start):
        if line.strip():
            yield _line(line, width, number, path)


def _line(line: bytes, width: int | None, number: int, path: Path) -> tuple[str, Floats]:
    parts = line.decode("utf-8", "replace").rstrip().split(" ")
    width = len(parts) - 1 if width is None else width
    try:  # a word may itself contain spaces (GloVe 840B has some)
        vector = np.array(parts[len(parts) - width :], np.float32)
        whole = len(vector) == width > 0 and bool(np.isfinite(vector).all()) and len(parts) > width
    except ValueError:
        whole = False
    if not whole:
        raise DataError(f"{path} line {number} is not a word and {width} numbers; is it a file of word vectors?")
    return " ".join(parts[: len(parts) - width]), vector


def _binary(file: IO[bytes], count: int, width: int, path: Path) -> Iterator[tuple[str, Floats]]:
    for number in range(1, count + 1):
        name = bytearray()
        while (byte := file.read(1)) != b" ":
            if not byte or len(name) > _LONGEST:
                raise DataError(f"{path} ends within word {number} of {count}; fetch it again")
            name += byte
        numbers = file.read(4 * width)
        if len(numbers) < 4 * width:
            raise DataError(f"{path} ends within word {number} of {count}; fetch it again")
        yield name.decode("utf-8", "replace").lstrip("\n"), np.frombuffer(numbers, "<f4").astype(np.float32)

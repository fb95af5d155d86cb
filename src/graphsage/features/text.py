"""Text columns -> numbers: TF-IDF and a truncated SVD, learned from the training nodes alone.

Each column has a vocabulary of its own, because a symbol of a formula and the same letter in a sentence are
different words. A document's weight for a term that occurs t times is (1 + ln t) * idf, where
idf = 1 + ln((1 + n) / (1 + n_term)) over the n training documents; a column's weights are scaled to length 1, the
columns are concatenated, and the SVD's right singular vectors project them.

Scripts without spaces between words (Chinese, Japanese, Thai and others) count by pairs of characters. A column whose
words fail, because most texts share none with another text, counts by groups of three characters.
"""

import dataclasses
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from graphsage.errors import BundleError, ConfigError, DataError, DataWarning, at_least
from graphsage.features.recipe import Columns, Floats, State, read_array, read_settings, read_words, take
from graphsage.tables import values

Tokenize = Callable[[str], Iterator[str]]
_EDGES = re.compile(r"^\W+|[\W_]+$")
_PARTS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
# Thai, Lao, Tibetan, Myanmar, Khmer; kana; Chinese characters; their compatibility forms and later planes.
UNSPACED = re.compile(
    "([\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]+)"
)
_GROUP = 3
_ENOUGH = 0.5  # of the texts with any word must share one with another text
_RANK = 1e-5  # singular values below this share of the largest are rounding
_NEARLY_NONE = 0.1  # below this share of texts with a known term, a warning


def tokens(text: str) -> Iterator[str]:
    """Terms of a text: each piece between spaces, the lower-case word inside it, and the words that the piece joins.

    So `detachment,` also counts as `detachment`, and `one-to-one` or `USGraph` as their parts, while the symbols of a
    formula (`|-`, `e.`, `U_`) stay what they are. A run of a script without spaces counts by its pairs of characters.
    """
    for piece in text.split():
        yield from _terms(piece)


@lru_cache(1 << 16)
def _terms(piece: str) -> tuple[str, ...]:
    word = _EDGES.sub("", piece).lower()
    parts = _PARTS.findall(piece)
    return (
        piece,
        *([word] if word and word != piece else []),
        *(part.lower() for part in parts if len(parts) > 1),
        *(pair for run in UNSPACED.findall(piece) for pair in groups(run, 2) if pair != piece),
    )


def characters(text: str) -> Iterator[str]:
    """Groups of three characters of a text in lower case, one space between words."""
    return groups(" ".join(text.lower().split()), _GROUP)


def groups(text: str, size: int) -> Iterator[str]:
    """Each `size` characters in a row; all of a shorter text."""
    return (text[start : start + size] for start in range(max(1, len(text) - size + 1)) if text)


@dataclass(frozen=True, kw_only=True)
class TfidfSvd:
    """How text becomes `dim` numbers per node; `fit` learns the rest from the training rows."""

    dim: int = 256
    """Width of the result. If the training texts differ in fewer directions, the last columns are zero."""
    min_df: int = 2
    """A term must occur in this many training documents (in all of them if there are fewer)."""
    max_features: int = 20_000
    """Terms kept in each column: the most frequent ones."""
    iterations: int = 2
    """Power iterations of the randomized SVD."""
    seed: int = 0

    def __post_init__(self) -> None:
        at_least(1, self, "dim", "min_df", "max_features")
        if self.iterations < 0:
            raise ConfigError(f"iterations must be 0 or more; got {self.iterations}")

    def fit(self, columns: Columns, rows: npt.NDArray[np.int64]) -> "FittedText":
        """Learn vocabularies, idf and the projection from `rows`; the text of other rows is never read."""
        total = _check_columns(columns)
        rows = np.asarray(rows)
        if len(rows) == 0:
            raise DataError("text features need at least one training row; got none")
        if rows.min() < 0 or rows.max() >= total:
            raise DataError(f"training rows must be 0 to {total - 1}; got {rows.min()} to {rows.max()}")
        chosen = {name: values.texts(take(texts, rows), name) for name, texts in columns.items()}
        learned = {name: self._learn_column(name, texts) for name, texts in chosen.items()}
        vocabularies = {name: terms for name, (terms, _, _) in learned.items()}
        by_character = tuple(name for name, (_, _, split) in learned.items() if split is characters)
        idf = np.concatenate([weights for _, weights, _ in learned.values()])
        unprojected = FittedText(self, vocabularies, by_character, idf, np.zeros((0, len(idf)), np.float32))
        return dataclasses.replace(unprojected, components=self._project(unprojected.weigh(chosen)))

    def _learn_column(self, name: str, texts: list[str]) -> tuple[tuple[str, ...], Floats, Tokenize]:
        """The column's terms in alphabetic order, their idf, and what splits texts into terms."""
        words = self._count(texts, tokens)
        split, documents, share = tokens, words, self._covered(texts, words, tokens)
        if share < _ENOUGH:
            grouped = self._count(texts, characters)
            covered = self._covered(texts, grouped, characters)
            if covered > share:
                split, documents, share = characters, grouped, covered
        if share < _NEARLY_NONE:
            warnings.warn(
                f"column {name!r}: {share:.0%} of its training texts share a term with another, so it has (nearly) no "
                "vocabulary; take it as categorical, or leave it out",
                DataWarning,
                stacklevel=2,
            )
        frequent = [term for term, count in documents.items() if count >= min(self.min_df, len(texts))]
        kept = sorted(sorted(frequent, key=lambda term: (-documents[term], term))[: self.max_features])
        counts = np.array([documents[term] for term in kept], np.float64)
        weights = (1 + np.log((1 + len(texts)) / (1 + counts))).astype(np.float32)
        return tuple(kept), weights, split

    def _count(self, texts: list[str], split: Tokenize) -> dict[str, int]:
        """The number of documents with each term."""
        documents: dict[str, int] = {}
        for text in texts:
            for term in set(split(text)):
                documents[term] = documents.get(term, 0) + 1
        return documents

    def _covered(self, texts: list[str], documents: Mapping[str, int], split: Tokenize) -> float:
        """The share of texts that are not blank in which some term is frequent enough to be kept."""
        enough, full = min(self.min_df, len(texts)), [text for text in texts if text.strip()]
        return sum(any(documents[term] >= enough for term in split(text)) for text in full) / len(full) if full else 0.0

    def _project(self, weights: Any) -> Floats:
        """Right singular vectors (at most dim, terms) of the training documents' weights."""
        from sklearn.utils.extmath import randomized_svd
        from threadpoolctl import threadpool_limits

        rank = min(self.dim, *weights.shape)
        if rank == 0 or weights.nnz == 0:
            return np.zeros((0, weights.shape[1]), np.float32)
        with threadpool_limits(1):  # so that the result does not depend on the number of threads
            _, strengths, components = randomized_svd(
                weights, rank, n_iter=self.iterations, power_iteration_normalizer="LU", random_state=self.seed
            )
        # Directions without a training text would be scaled up to it by their rounding, and huge for a new text.
        return np.ascontiguousarray(components[strengths > _RANK * strengths[0]], dtype=np.float32)


@dataclass(frozen=True, eq=False)
class FittedText:
    """What `TfidfSvd.fit` learned: `idf` (T,) over the terms of all columns in order, `components` (at most dim, T)."""

    settings: TfidfSvd
    vocabularies: dict[str, tuple[str, ...]]
    by_character: tuple[str, ...]
    """Columns whose terms are groups of characters."""
    idf: Floats
    components: Floats

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(self.vocabularies)

    @property
    def width(self) -> int:
        return self.settings.dim

    @property
    def kind(self) -> str:
        return f"text (TF-IDF{' of characters' if self.by_character else ''}, SVD)"

    def transform(self, columns: Columns) -> Floats:
        """Features (N, dim) of any rows. Unknown terms are ignored; a row without a known term is zero."""
        weights = self.weigh(columns)
        features = np.zeros((weights.shape[0], self.settings.dim), np.float32)
        if len(self.components):
            features[:, : len(self.components)] = weights @ self._projection
        return features

    def weigh(self, columns: Columns) -> Any:
        """TF-IDF weights before the projection: a sparse (N, T) matrix, each column's part of length 1 or 0."""
        from scipy.sparse import csr_matrix

        missing = [name for name in self.vocabularies if name not in columns]
        if missing:
            raise DataError(f"text features were fitted on {', '.join(self.vocabularies)}; got no {', '.join(missing)}")
        read = [values.texts(columns[name], name) for name in self.vocabularies]
        rows = _check_columns(dict(zip(self.vocabularies, read, strict=True)))
        # One row for each text, so that a text's length is a row's; then the texts of a node are joined.
        splits = [characters if name in self.by_character else tokens for name in self.vocabularies]
        counts = _count(list(zip(*read, strict=True)), splits, list(self._positions.values()))
        counts.data = (1 + np.log(counts.data)) * self.idf[counts.indices]
        sizes = np.diff(counts.indptr)
        starts = counts.indptr[:-1][sizes > 0]
        lengths = np.sqrt(np.add.reduceat(counts.data * counts.data, starts)) if len(starts) else counts.data
        counts.data /= np.repeat(lengths, sizes[sizes > 0])  # an empty row has nothing to divide
        joined = counts.indptr[:: len(self.vocabularies)]
        return csr_matrix((counts.data, counts.indices, joined), (rows, len(self.idf)))

    @cached_property
    def _projection(self) -> Floats:
        """(T, dim), contiguous: SciPy would copy a transposed matrix for every call, however few the rows."""
        return np.ascontiguousarray(self.components.T)

    @cached_property
    def _positions(self) -> dict[str, dict[str, int]]:
        """Where each column's terms are among those of all columns."""
        positions, start = {}, 0
        for name, terms in self.vocabularies.items():
            positions[name] = {term: i for i, term in enumerate(terms, start)}
            start += len(terms)
        return positions

    def state(self) -> State:
        """Everything learned, as JSON values and arrays; `from_state` makes the same transform of it."""
        columns = [{"name": name, "terms": list(terms)} for name, terms in self.vocabularies.items()]
        config = {
            "kind": "tfidf-svd",
            "settings": asdict(self.settings),
            "columns": columns,
            "by_character": list(self.by_character),
        }
        return config, {"idf": self.idf, "components": self.components}

    @staticmethod
    def from_state(config: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> "FittedText":
        """Rebuild from `state`; anything missing or inconsistent is a BundleError that names it."""
        if not isinstance(config, Mapping) or config.get("kind") != "tfidf-svd":
            raise BundleError("the text features' description must be of kind 'tfidf-svd'; save the model again")
        vocabularies = _read_vocabularies(config.get("columns"))
        terms = sum(map(len, vocabularies.values()))
        idf = read_array(arrays, "idf", (terms,))
        components = read_array(arrays, "components", (None, terms))
        settings = read_settings(config, TfidfSvd)
        if len(components) > settings.dim:
            raise BundleError(f"the text features' components have {len(components)} rows; dim is {settings.dim}")
        return FittedText(settings, vocabularies, read_words(config, "by_character"), idf, components)


def _check_columns(columns: Columns) -> int:
    """The common number of rows."""
    if not columns:
        raise DataError("text features need at least one text column; got none")
    lengths = {name: len(texts) for name, texts in columns.items()}
    if len(set(lengths.values())) > 1:
        raise DataError(f"text columns must have the same number of rows; got {lengths}")
    return next(iter(lengths.values()))


def _count(nodes: Sequence[Sequence[str]], splits: Sequence[Tokenize], positions: Sequence[dict[str, int]]) -> Any:
    """How often each known term occurs in each text of each node: a sparse float32 matrix, a row for each text."""
    from scipy.sparse import csr_matrix

    indices: list[int] = []
    indptr = [0]
    for texts in nodes:
        for text, split, known in zip(texts, splits, positions, strict=True):
            indices.extend(position for term in split(text) if (position := known.get(term)) is not None)
            indptr.append(len(indices))
    shape = (len(indptr) - 1, sum(map(len, positions)))
    counts = csr_matrix((np.ones(len(indices), np.float32), np.array(indices, np.int32), np.array(indptr)), shape)
    counts.sum_duplicates()
    return counts


def _read_vocabularies(columns: Any) -> dict[str, tuple[str, ...]]:
    try:
        read = {column["name"]: tuple(column["terms"]) for column in columns}
    except (TypeError, KeyError) as error:
        raise BundleError(f"the text features' columns cannot be read ({error!r}); save the model again") from error
    for name, terms in read.items():
        if not all(isinstance(term, str) for term in (name, *terms)) or len(set(terms)) != len(terms):
            raise BundleError(f"the terms of text column {name!r} must be different strings; save the model again")
    if not read:
        raise BundleError("the text features name no column; save the model again")
    return read

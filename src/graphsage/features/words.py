"""Words of a text, and texts as averages of word vectors."""

import re
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from graphsage.features.recipe import Floats

_WORD = re.compile(r"\w+(?:['’]\w+)*")


def words_of(text: str) -> list[str]:
    """Lower-case words in order: runs of letters, digits and underscores, apostrophes inside included."""
    return _WORD.findall(text.lower())


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

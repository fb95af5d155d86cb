"""A column of labels -> classes: one a node, or many where a cell is a list or is joined by a separator."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from graphsage.errors import DataError
from graphsage.features import values
from graphsage.features.recipe import Column

LONGEST = 1_000  # characters of a class's name
_MOST = 1 << 28  # cells of the matrix of labels


@dataclass(frozen=True)
class Labels:
    """`numbers`: (N,) int64 with -1 for unknown, or (N, C) of 0 and 1; `names` of the classes, sorted."""

    numbers: npt.NDArray[Any]
    names: tuple[str, ...]


def read_labels(column: Column, name: str, separator: str = ";", multilabel: bool | None = None) -> Labels:
    """An empty cell is an unknown class; where nodes have many labels it is a node without any."""
    if multilabel is None:
        multilabel = any(isinstance(c, list | np.ndarray) or (isinstance(c, str) and separator in c) for c in column)
    return _many(column, name, separator) if multilabel else _one(column, name)


def _one(column: Column, name: str) -> Labels:
    words = [word.strip() for word in values.categories(column, name)]
    names = _names([[word] for word in words], name)
    places = {word: place for place, word in enumerate(names)} | {"": -1}
    return Labels(np.array([places[word] for word in words], np.int64), names)


def _many(column: Column, name: str, separator: str) -> Labels:
    rows = [_labels(cell, name, row, separator) for row, cell in enumerate(column, 1)]
    names = _names(rows, name)
    if len(rows) * len(names) > _MOST:
        raise DataError(f"column {name!r} has {len(names)} labels for {len(rows)} rows, too many; is it the label?")
    places = {word: place for place, word in enumerate(names)}
    numbers = np.zeros((len(rows), len(names)), np.uint8)
    for row, words in enumerate(rows):
        numbers[row, [places[word] for word in words]] = 1
    return Labels(numbers, names)


def _labels(cell: Any, name: str, row: int, separator: str) -> list[str]:
    if isinstance(cell, list | np.ndarray):
        parts = [values.word(part, name, row, "a category") for part in cell]
    else:
        parts = values.word(cell, name, row, "a category").split(separator)
    return [word for part in parts if (word := part.strip())]


def _names(rows: list[list[str]], name: str) -> tuple[str, ...]:
    for row, words in enumerate(rows, 1):
        for word in words:
            if len(word) > LONGEST:
                raise DataError(f"column {name!r} row {row} has a class of {len(word)} characters; is it the label?")
    return tuple(sorted({word for words in rows for word in words} - {""}))

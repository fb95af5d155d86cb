"""A part of the report: a title, a sentence, a picture and tables."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

Record = dict[str, Any]


@dataclass(frozen=True)
class Table:
    head: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]


@dataclass(frozen=True)
class Section:
    title: str
    text: str
    tables: tuple[Table, ...] = ()
    picture: str | None = None


def value(cell: Record) -> str:
    mean = f"{cell['mean']:.3f}"
    return f"{mean} ± {cell['std']:.3f}" if len(cell["values"]) > 1 else mean

"""Messages about cells: each names the table, the column and the row as an editor or a spreadsheet numbers it."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from graphsage.errors import DataError


class CellError(DataError):
    """A cell cannot be read. `row` is its index in the values that were passed, from 0."""

    def __init__(self, column: str, row: int, problem: str) -> None:
        super().__init__(f"column {column!r} row {row + 1} {problem}")
        self.column, self.row, self.problem = column, row, problem


@dataclass(frozen=True)
class Place:
    """The name of a table, and the number of its first row: 2 below the header of a CSV file, otherwise 1."""

    name: str
    first_row: int = 1

    def __str__(self) -> str:
        return self.name

    @contextmanager
    def naming(self, start: int = 0) -> Iterator[None]:
        """Add the table's name to an error about values that begin at row index `start`."""
        try:
            yield
        except CellError as error:
            row = self.first_row + start + error.row
            raise DataError(f"{self} column {error.column!r} row {row} {error.problem}") from error
        except DataError as error:
            raise DataError(f"{self}{' ' if str(error).startswith('column ') else ': '}{error}") from error


def shown(value: Any) -> str:
    """A cell in a message: short, on one line."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names[:12])) + (", ..." if len(names) > 12 else "")

"""Ids of nodes, and edges as pairs of rows of the node table.

Ids are strings or 64-bit integers, as the source holds them. The ids of edges are cast to the type of the nodes' ids.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from graphsage.errors import DataError, setting
from graphsage.tables.messages import CellError, Place
from graphsage.tables.source import Table

LONGEST_ID = 10_000  # characters; a longer one means that the wrong column was taken
EXAMPLES = 3  # in a message
_FEW, _MANY = 1 << 17, 1 << 20  # edges of a batch; each builds a hash table of all ids, so later ones are larger
Ends = tuple[str, str]


def ids(array: Any, name: str) -> Any:
    """An Arrow array of large_string or int64 without missing ids."""

    def refuse(bad: Any, problem: str) -> None:
        row = pc.index(bad, True).as_py()
        if row >= 0:
            raise CellError(name, row, problem)

    kind = array.type
    if not (pa.types.is_large_string(kind) or pa.types.is_integer(kind)):
        hint = "; integers with missing cells become floats, fill those first" if pa.types.is_floating(kind) else ""
        raise DataError(f"column {name!r} holds {kind}; ids are strings or integers{hint}")
    refuse(pc.is_null(array), "has no id")
    if pa.types.is_integer(kind):
        if kind == pa.uint64():
            refuse(pc.greater(array, np.uint64(2**63 - 1)), "is beyond 64 signed bits; write such ids as text")
        return array.cast(pa.int64())
    refuse(pc.equal(pc.utf8_trim_whitespace(array), ""), "has no id")
    refuse(pc.greater(pc.utf8_length(array), LONGEST_ID), f"is longer than {LONGEST_ID} characters, too long for an id")
    return array


def like(array: Any, kind: Any, name: str) -> Any:
    """Ids in the type of the nodes' ids: digits as integers, integers as text."""
    array = ids(array, name)
    if array.type == kind:
        return array
    try:
        return array.cast(kind)
    except pa.ArrowInvalid:
        for row, value in enumerate(array.to_pylist()):
            if not str(value).lstrip("-").isdigit() or abs(int(value)) >= 2**63:
                raise CellError(name, row, f"is {value!r:.60}, but the nodes' ids are integers") from None
        raise


def arrow_ids(values: Sequence[str | int]) -> Any:
    """Ids of a graph as the Arrow array in which edges are looked up."""
    return pa.array(values, pa.int64() if values and isinstance(values[0], int) else pa.large_string())


def id_arrays(array: Any) -> dict[str, npt.NDArray[Any]]:
    """The arrays that hold ids in a graph: `ids`, or the UTF-8 bytes `ids_text` and where each begins and ends."""
    if pa.types.is_integer(array.type):
        return {"ids": np.asarray(array.to_numpy(zero_copy_only=False))}
    _, starts, text = array.buffers()
    offsets = np.frombuffer(starts, np.int64)[array.offset : array.offset + len(array) + 1]
    held = np.frombuffer(text or b"", np.uint8)[offsets[0] : offsets[-1]]
    return {"ids_text": held, "ids_offsets": offsets - offsets[0]}


def node_ids(array: Any, name: str, place: Place) -> Any:
    """The ids of a node table, each of which occurs once."""
    with place.naming():
        found = ids(array, name)
    if len(found.unique()) < len(found):
        rows: dict[Any, list[int]] = {}
        for row, value in enumerate(found.to_pylist()):
            rows.setdefault(value, []).append(row)
        twice = [(value, where) for value, where in rows.items() if len(where) > 1]
        raise repeated_ids(place, name, len(twice), twice[:EXAMPLES])
    return found


def repeated_ids(place: Place, name: str, count: int, examples: Sequence[tuple[Any, Sequence[int]]]) -> DataError:
    """`count` ids occur more than once; `examples` are some of them with their row indices."""
    shown = [
        f"{value!r:.60} (rows {', '.join(str(place.first_row + row) for row in rows[:EXAMPLES])})"
        for value, rows in examples
    ]
    what = f"{count} ids more than once" if count > 1 else "an id more than once"
    return DataError(f"{place} column {name!r} has {what}: {', '.join(shown)}; ids must differ")


@dataclass(frozen=True)
class Edges:
    """`pairs` (E, 2) of rows; `known` ids, added ones last; `dropped` edges; Arrow `columns` of the rows `kept`."""

    pairs: npt.NDArray[np.int64]
    known: Any
    dropped: int
    kept: npt.NDArray[np.int64]
    columns: dict[str, Any] = field(default_factory=dict)


def edge_batches(
    table: Table, ends: Ends, kind: Any, *more: str, rows: int = 1, most: int = 1
) -> Iterator[tuple[int, list[Any], dict[str, Any]]]:
    """(first row index, [sources, targets] as ids of type `kind`, batch with columns `more`) of each batch."""
    start = 0
    for batch in table.batches(list(dict.fromkeys([*ends, *more])), rows, most):
        with table.place.naming(start):
            kind = ids(batch[ends[0]], ends[0]).type if kind is None else kind
            found = [like(batch[name], kind, name) for name in ends]
        yield start, found, batch
        start += len(found[0])


def read_edges(
    table: Table,
    ends: Ends,
    known: Any,
    unknown: str = "error",
    more: Sequence[str] = (),
    lacking: str | None = None,
    row: str = "edge",
) -> Edges:
    """`known` are the nodes' ids, an Arrow array; None takes the nodes from the edges, in order of appearance.

    `lacking` is said of unknown nodes where `unknown` is no choice of the user, such as "the graph does not have".
    Messages call a row a `row`.
    """
    add = unknown == "add" or known is None
    pairs: list[npt.NDArray[np.int64]] = []
    kept: list[npt.NDArray[np.int64]] = []
    columns: dict[str, list[Any]] = {name: [] for name in more}  # of the edges that are kept
    lost = UnknownNodes(table.place, ends)
    kind = None if known is None else known.type
    for start, found, batch in edge_batches(table, ends, kind, *more, rows=_FEW, most=_MANY):
        if add:
            known = _with_new(found[0].slice(0, 0) if known is None else known, found)
        rows = _rows(found, known)
        good = rows.min(axis=1) >= 0
        if not good.all():
            bad = np.flatnonzero(~good)
            sides = [(row, 0 if rows[row, 0] < 0 else 1) for row in bad[:EXAMPLES].tolist()]
            lost.add(len(bad), [(start + row, end, found[end][row].as_py()) for row, end in sides])
        pairs.append(rows if good.all() else rows[good])
        if more:
            kept.append(start + np.flatnonzero(good))
        for name, values in columns.items():
            values.append(batch[name].filter(pa.array(good)))
    if unknown == "error":
        lost.refuse(lacking, row)
    empty = np.zeros((0, 2), np.int64)
    read = {name: pa.concat_arrays(parts) if parts else pa.array([], pa.int64()) for name, parts in columns.items()}
    return Edges(np.concatenate([empty, *pairs]), known, lost.edges, np.concatenate([empty[:, 0], *kept]), read)


class UnknownNodes:
    """Counts edges whose ends are not in the node table and keeps the first three."""

    def __init__(self, place: Place, ends: Ends) -> None:
        self.place, self.ends, self.edges = place, ends, 0
        self._first: list[tuple[int, int, Any]] = []

    def add(self, count: int, examples: list[tuple[int, int, Any]]) -> None:
        """`count` more edges; an example is the row index of an edge, the unknown end (0 or 1) and its id."""
        self.edges += count
        self._first = sorted([*self._first, *examples])[:EXAMPLES]

    def refuse(self, lacking: str | None = None, row: str = "edge") -> None:
        if self.edges:
            what = f"{row} names a node" if self.edges == 1 else f"{row}s name nodes"
            shown = [
                f"{value!r:.60} (column {self.ends[end]!r} row {self.place.first_row + edge})"
                for edge, end, value in self._first
            ]
            choice = f", or give {setting('unknown_nodes')} drop or add" if lacking is None else ""
            raise DataError(
                f"{self.place}: {self.edges} {what} that {lacking or 'the node table does not have'}, such as "
                f"{', '.join(shown)}; correct them{choice}"
            )


def _rows(ends: list[Any], known: Any) -> npt.NDArray[np.int64]:
    """(E, 2) rows of both ends, -1 for unknown ids."""
    found = pc.fill_null(pc.index_in(pa.concat_arrays(ends), value_set=known), -1)
    return np.asarray(found.to_numpy(zero_copy_only=False), np.int64).reshape(2, -1).T


def _with_new(known: Any, ends: list[Any]) -> Any:
    """`known` followed by the ids that it lacks, in order of appearance: edge by edge, the source first."""
    size = len(ends[0])
    both = pa.concat_arrays(ends).take(pa.array(np.arange(2 * size).reshape(2, size).T.ravel()))
    fresh = both.filter(pc.invert(pc.is_in(both, value_set=known)))
    return pa.concat_arrays([known, fresh.unique()]) if len(fresh) else known

"""An edge table -> pairs of rows of the node table, a batch at a time."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from graphsage.datasets.table import Table
from graphsage.datasets.table_cells import cells, ids, like
from graphsage.errors import DataError
from graphsage.features.recipe import Column


@dataclass(frozen=True)
class Edges:
    """`pairs` (E, 2) of rows; `known` is all ids, those that `add` appended last; `dropped` edges had an unknown end.
    `time` are the edge-time cells of the edges that are left."""

    pairs: npt.NDArray[np.int64]
    known: Any
    dropped: int = 0
    time: Column | None = None


def read_edges(
    table: Table, source: str, target: str, known: Any | None, *, unknown: str = "error", time: str | None = None
) -> Edges:
    """`known` are the nodes' ids, an Arrow array; None takes the nodes from the edges, in order of appearance."""
    add = unknown == "add" or known is None
    pairs: list[npt.NDArray[np.int64]] = []
    times: list[Any] = []
    lost = _Unknown(table.place, source, target)
    start = 0
    for batch in table.batches(list(dict.fromkeys([source, target, *([] if time is None else [time])]))):
        ends = [batch[source], batch[target]]
        if known is None:
            known = ids(ends[0], source, table.place, start).slice(0, 0)
        ends = [
            like(end, known.type, name, table.place, start) for end, name in zip(ends, (source, target), strict=True)
        ]
        if add:
            known = _with_new(known, ends)
        rows = np.stack([_rows(end, known) for end in ends], axis=1)
        if time is not None:
            times.append(batch[time])
        bad = rows.min(axis=1) < 0
        if bad.any():
            lost.count(ends, rows, bad, start)
            rows = rows[~bad]
            if time is not None:
                times[-1] = times[-1].filter(pa.array(~bad))
        pairs.append(rows)
        start += len(bad)
    if lost.edges and unknown == "error":
        raise DataError(lost.sentence())
    kept = np.concatenate(pairs) if pairs else np.zeros((0, 2), np.int64)
    when = None if time is None else cells(pa.concat_arrays(times)) if times else []
    return Edges(kept, known, lost.edges, when)


def _rows(end: Any, known: Any) -> npt.NDArray[np.int64]:
    found = pc.fill_null(pc.index_in(end, value_set=known), -1)
    return np.asarray(found.to_numpy(zero_copy_only=False), dtype=np.int64)


def _with_new(known: Any, ends: list[Any]) -> Any:
    """`known` followed by the ids that it lacks, in order of appearance: edge by edge, the source first."""
    size = len(ends[0])
    both = pa.concat_arrays(ends).take(pa.array(np.arange(2 * size).reshape(2, size).T.ravel()))
    fresh = both.filter(pc.invert(pc.is_in(both, value_set=known)))
    return pa.concat_arrays([known, fresh.unique()]) if len(fresh) else known


class _Unknown:
    """Counts edges whose ends are not in the node table and remembers three of them."""

    def __init__(self, place: str, source: str, target: str) -> None:
        self.place, self.names = place, (source, target)
        self.edges = 0
        self.examples: list[str] = []

    def count(self, ends: list[Any], rows: npt.NDArray[np.int64], bad: npt.NDArray[np.bool_], start: int) -> None:
        self.edges += int(bad.sum())
        for row in np.flatnonzero(bad)[: 3 - len(self.examples)].tolist():
            end = 0 if rows[row, 0] < 0 else 1
            self.examples.append(f"{ends[end][row].as_py()!r:.60} (column {self.names[end]!r} row {start + row + 1})")

    def sentence(self) -> str:
        return unknown_sentence(self.place, self.edges, self.examples)


def unknown_sentence(place: str, edges: int, examples: list[str]) -> str:
    """`edges` edges of a table name nodes that are not there, such as the `examples`."""
    what = "edge names a node" if edges == 1 else "edges name nodes"
    return (f"{place}: {edges} {what} that the node table does not have, such as "
            f"{', '.join(examples)}; correct them, or set unknown_nodes to drop or add")  # fmt: skip

"""Tables are read in batches: how large they are, and that results do not depend on it."""

import numpy as np
import pyarrow as pa
import pytest

from graphsage.tables import ids
from graphsage.tables.source import Table, as_table


def one_row_at_a_time(table: pa.Table) -> Table:
    whole = as_table(table, "edges")
    parts = [table.slice(row, 1).to_batches()[0] for row in range(table.num_rows)]
    return Table(whole.place, whole.names, lambda columns: (part.select(list(columns)) for part in parts))


def test_batches_double_up_to_the_most() -> None:
    table = one_row_at_a_time(pa.table({"a": range(30)}))
    assert [len(batch["a"]) for batch in table.batches(["a"], 2, 8)] == [2, 4, 8, 8, 8]
    assert [len(batch["a"]) for batch in table.batches(["a"], 12)] == [12, 12, 6]


@pytest.mark.parametrize("known", [None, pa.array(range(9))])
def test_edges_do_not_depend_on_the_batches(known: pa.Array | None, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = np.random.default_rng(0)
    edges = pa.table({"source": draw.integers(12, size=50), "target": draw.integers(12, size=50)})
    whole = ids.read_edges(as_table(edges, "edges"), ("source", "target"), known, "drop")
    monkeypatch.setattr(ids, "_FEW", 3)
    monkeypatch.setattr(ids, "_MANY", 7)
    parts = ids.read_edges(one_row_at_a_time(edges), ("source", "target"), known, "drop")
    assert (parts.pairs == whole.pairs).all()
    assert parts.known.equals(whole.known)
    assert parts.dropped == whole.dropped
    assert (whole.dropped > 0) == (known is not None)

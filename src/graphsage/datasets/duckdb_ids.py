"""Ids of more nodes than memory holds -> rows, by DuckDB's joins, which spill to disk."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from graphsage.errors import ConfigError
from graphsage.tables.ids import EXAMPLES, repeated_ids
from graphsage.tables.messages import Place

_BATCH = 1 << 18  # rows per batch of a result


class IdRows:
    """A database of ids and their rows in `scratch`. `kind` is their Arrow type, string or int64."""

    def __init__(self, scratch: Path, kind: Any, memory: int) -> None:
        try:
            import duckdb
        except ImportError as error:
            raise ConfigError("ids that are not row numbers need DuckDB: pip install 'graphsage[cluster]'") from error
        scratch.mkdir(parents=True, exist_ok=True)
        self.kind = kind
        self._db = duckdb.connect(str(scratch / "ids.duckdb"))
        self._db.execute(f"SET memory_limit = '{max(memory // 1_000_000, 64)}MB'")
        self._db.execute("SET temp_directory = ?", [str(scratch / "spill")])
        self._db.execute("SET preserve_insertion_order = false")
        self._type = "BIGINT" if pa.types.is_integer(kind) else "VARCHAR"
        self._db.execute(f"CREATE TABLE nodes (id {self._type}, row BIGINT)")
        self._db.execute(f"CREATE TABLE edges (source {self._type}, target {self._type}, number BIGINT)")
        self.count = 0

    def add(self, ids: Any) -> None:
        """The next nodes, in order."""
        self._insert("nodes", [ids], self.count)
        self.count += len(ids)

    def add_edges(self, ends: list[Any], start: int) -> None:
        """Edges by the ids of their ends, numbered from `start`."""
        self._insert("edges", ends, start)

    def _insert(self, table: str, columns: list[Any], start: int) -> None:
        numbers = pa.array(np.arange(start, start + len(columns[0])))
        batch = pa.table([*columns, numbers], names=[*"ab"[: len(columns)], "number"])
        self._db.register("batch", batch)
        self._db.execute(f"INSERT INTO {table} SELECT * FROM batch")
        self._db.unregister("batch")

    def refuse_repeated(self, place: Place, name: str) -> None:
        repeated = "SELECT id, list_sort(list(row)) AS rows FROM nodes GROUP BY id HAVING count(*) > 1"
        (count,) = self._one(f"SELECT count(*) FROM ({repeated})")
        if count:
            first = self._db.execute(f"{repeated} ORDER BY rows[1] LIMIT {EXAMPLES}").fetchall()
            raise repeated_ids(place, name, count, first)

    def add_unknown(self) -> None:
        """The ids that only edges have become nodes, in order of appearance: edge by edge, the source first."""
        ends = "SELECT source AS id, 2 * number AS place FROM edges UNION ALL SELECT target, 2 * number + 1 FROM edges"
        self._db.execute(f"""
            INSERT INTO nodes
            SELECT id, {self.count} - 1 + row_number() OVER (ORDER BY place) FROM (
                SELECT ends.id, min(place) AS place FROM ({ends}) AS ends ANTI JOIN nodes ON ends.id = nodes.id
                GROUP BY ends.id)""")
        (self.count,) = self._one("SELECT count(*) FROM nodes")

    def ids(self) -> Iterator[Any]:
        """Arrow arrays of the ids, in the order of their rows."""
        found: Any = self._db.sql("SELECT id FROM nodes ORDER BY row")
        for batch in found.to_arrow_reader(_BATCH):
            yield batch.column(0).cast(self.kind)

    def pairs(self) -> Iterator[tuple[Any, Any, Any, Any]]:
        """(edge number, source row, target row, unknown id) arrays, in no order; a row is null where it is unknown."""
        found: Any = self._db.sql("""
            SELECT e.number, s.row AS source, t.row AS target,
                   CASE WHEN s.row IS NULL THEN e.source WHEN t.row IS NULL THEN e.target END AS unknown
            FROM edges e LEFT JOIN nodes s ON e.source = s.id LEFT JOIN nodes t ON e.target = t.id""")
        for batch in found.to_arrow_reader(_BATCH):
            yield tuple(batch.columns)

    def close(self) -> None:
        self._db.close()

    def _one(self, question: str) -> Any:
        (row,) = self._db.execute(question).fetchall()
        return row

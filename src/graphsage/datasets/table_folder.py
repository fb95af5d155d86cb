"""Two tables -> a graph folder, in batches and bounded memory: the same folder as by reading them into memory."""

import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from graphsage.atomic import atomic_folder, writing
from graphsage.datasets.tables import SPLIT_CODES
from graphsage.errors import ConfigError, DataError, DataWarning, one_of, setting
from graphsage.graph.external.csr import EdgeSort
from graphsage.graph.external.row_file import Array, RowFile, RowWriter
from graphsage.graph.external.size import shown_size
from graphsage.graph.split import TRAIN
from graphsage.graph.storage import is_graph_folder, write_about
from graphsage.tables import values
from graphsage.tables.columns import (
    Classes,
    cells,
    has_several,
    is_list,
    read_split,
    refuse_empty_targets,
    target_numbers,
)
from graphsage.tables.ids import EXAMPLES, UnknownNodes, edge_batches, id_arrays, ids, repeated_ids
from graphsage.tables.messages import CellError, Place
from graphsage.tables.source import Table, as_table
from graphsage.tables.spec import BOTH, FEATURES, MERGED, TableSpec, is_vector_file

PROCESS_BYTES = 350_000_000  # Python, its libraries and the batch that is read
LEAST_BYTES = 64_000_000
BATCH_ROWS = 1 << 13  # of a node table with its vectors
FEATURE_TYPES = ("float32", "float16")
Report = Callable[[str, int, int | None], None]
_DB_ROWS = 1 << 18  # of a batch of a result of DuckDB
_NOT_HERE = (
    "text",
    "numeric",
    "log_numeric",
    "categorical",
    "dates",
    "time",
    "edge_time",
    "edge_type",
    "edge_weight",
    "time_order",
)


@dataclass(frozen=True)
class Built:
    nodes: int
    stored_edges: int
    features: int
    classes: int
    dropped: int


def build_large(
    spec: TableSpec, out: str | Path, *, memory: int, feature_type: str = "float32", report: Report | None = None
) -> Built:
    """Write the graph of `spec` as a folder in about `memory` bytes; call `report(what, rows, of)` meanwhile."""
    _check(spec, memory, feature_type)
    out = Path(out)
    with writing(out):
        out.absolute().parent.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(prefix=f".{out.name}.", suffix=".scratch", dir=out.absolute().parent))
    try:
        with atomic_folder(out, is_graph_folder) as folder:
            return _Build(
                spec, folder, scratch, memory - PROCESS_BYTES, feature_type, report or (lambda what, rows, of: None)
            ).run()
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _check(spec: TableSpec, memory: int, feature_type: str) -> None:
    if spec.direction == BOTH:
        raise ConfigError(
            f"{setting('direction', BOTH)} makes two relations, which are not built from tables larger than memory; "
            "give merged, in or out, or build in memory"
        )
    for name in _NOT_HERE:
        if getattr(spec, name):
            instead = "give vectors, or " if name in FEATURES else ""
            raise ConfigError(f"{setting(name)} is not read from tables larger than memory; {instead}build in memory")
    if any(name.endswith(".npz") for name in spec.vectors):
        raise ConfigError("sparse .npz files are not read from disk in pieces; give a .npy file or a column of lists")
    if spec.label_type == "labels":
        raise ConfigError("many labels need memory for all of them; graphs larger than memory have one class a node")
    if spec.unknown_nodes == "add" and spec.nodes is not None:
        raise ConfigError(
            f"{setting('unknown_nodes', 'add')}: the added nodes would have no columns; "
            "drop such edges, or list the nodes"
        )
    one_of("feature_type", feature_type, FEATURE_TYPES)
    if memory < PROCESS_BYTES + LEAST_BYTES:
        raise ConfigError(
            f"{setting('memory')} must be at least {shown_size(PROCESS_BYTES + LEAST_BYTES)}; got {shown_size(memory)}"
        )


class _Build:
    def __init__(self, spec: TableSpec, folder: Path, scratch: Path, memory: int, dtype: str, report: Report) -> None:
        self.spec, self.folder, self.scratch, self.memory = spec, folder, scratch, memory
        self.dtype, self.report = np.dtype(dtype), report
        self.edges = as_table(spec.edges, "edges", spec.delimiter)
        self.ends = spec.ends(self.edges)
        self.rows: _IdRows | None = None
        """None while every id is the number of its row."""
        self.kind: Any = None
        self.n = self.stored = 0
        self.widths: dict[str, int] = {}
        self.remarks: list[str] = []
        self.class_names: tuple[str, ...] | None = None
        self._class_of: Array = np.empty(0, np.int64)
        self.unknown = UnknownNodes(self.edges.place, self.ends)
        self._files = ExitStack()
        self._writers: dict[str, RowWriter] = {}

    def run(self) -> Built:
        with self._files:  # on an error files are closed, otherwise finished
            if self.spec.nodes is None:
                self.remarks += self.spec.unused(None, self.edges)
                self._nodes_of_edges()
            else:
                self._read_nodes(as_table(self.spec.nodes, "nodes", self.spec.delimiter, BATCH_ROWS))
            sort = EdgeSort(self.scratch / "edges", self.n, self.memory, directed=self.spec.direction != MERGED)
            for pairs in self._pairs():
                sort.add(pairs[:, ::-1] if self.spec.direction == "out" else pairs)
            if self.spec.unknown_nodes == "error":
                self.unknown.refuse()
            self.stored = sort.write(self.folder, lambda done, of: self.report("sorting edges", done, of))
        if self.class_names is not None and self.spec.label_type != "number":
            self._number_classes()
        about = {
            "nodes": self.n,
            "stored_edges": self.stored,
            "direction": self.spec.direction,
            "relations": [],
            "class_names": None if self.class_names is None else list(self.class_names),
            "arrays": sorted(path.stem for path in self.folder.glob("*.npy")),
            "splits": {"given": None} if self.spec.split_column is not None else {},
        }
        write_about(self.folder, about)
        for remark in self.remarks:
            warnings.warn(remark, DataWarning, stacklevel=4)
        return Built(self.n, self.stored, sum(self.widths.values()), len(self.class_names or ()), self.unknown.edges)

    def _write(self, name: str, rows: Array, dtype: Any) -> None:
        """Append rows to an array of the folder."""
        if name not in self._writers:
            writer = RowWriter(self.folder / f"{name}.npy", dtype, rows.shape[1:])
            self._writers[name] = self._files.enter_context(writer)
        self._writers[name].write(rows)

    def _database(self, kind: Any) -> "_IdRows":
        self.rows = _IdRows(self.scratch / "ids", kind, self.memory // 2)
        self._files.callback(self.rows.close)
        return self.rows

    def _read_nodes(self, table: Table) -> None:
        spec = self.spec = self.spec.for_nodes(table)
        assert spec.id is not None
        self.remarks += spec.unused(table, self.edges)
        table = table.with_missing(spec.missing, (spec.id,))
        files = {name: RowFile(Path(name)) for name in spec.vectors if is_vector_file(name)}
        targets = spec.label_columns if spec.label_type == "number" else ()
        known = np.zeros(len(targets), bool)
        classes = None if spec.label is None or targets else Classes(spec.label, spec.label_type is not None)
        trains = False
        for batch in table.batches([name for name in dict.fromkeys(spec.columns) if name not in files]):
            with table.place.naming(self.n):
                found = ids(batch[spec.id], spec.id)
                self._write_ids(found)
                if classes is not None:
                    self._write("labels", self._codes(classes, batch[classes.name]), np.int64)
                if targets:
                    numbers = np.stack([target_numbers(batch[name], name) for name in targets], axis=1)
                    self._write("labels", numbers, np.float64)
                    known |= ~np.isnan(numbers).all(axis=0)
                if spec.split_column is not None:
                    parts = read_split(batch[spec.split_column], spec.split_column, SPLIT_CODES)
                    self._write("split-given", parts, np.uint8)
                    trains |= TRAIN in parts
            if spec.vectors:
                self._write_vectors(batch, files, table.place, len(found))
            self._number(found)
            self.n += len(found)
            self.report("reading nodes", self.n, None)
        if not self.n:
            raise DataError(f"{table} has no row; a graph needs at least one node")
        if self.rows is not None:
            self.rows.refuse_repeated(table.place, spec.id)
        for name, file in files.items():
            if len(file) != self.n:
                raise DataError(f"{name} has {len(file)} rows, but {table} has {self.n}; they must match")
        with table.place.naming():
            if spec.split_column is not None and not trains:
                raise DataError(f"column {spec.split_column!r} puts no row into train")
            if classes is not None:
                self.class_names, self._class_of = classes.numbering()
                self.remarks += [f"{table} {remark}" for remark in classes.remarks]
            if targets:
                refuse_empty_targets(targets, known)
                self.class_names = targets

    def _codes(self, classes: Classes, array: Any) -> Array:
        words = pc.utf8_trim_whitespace(array) if pa.types.is_large_string(array.type) else None
        if is_list(array.type) or (words is not None and self.spec.label_type is None):
            several = pa.array([True]) if words is None else has_several(words, self.spec.label_separator)
            if (row := pc.index(several, True).as_py()) >= 0:
                problem = "has many labels; graphs larger than memory have one class per node"
                raise CellError(classes.name, row, problem)
        return classes.add(array)

    def _number_classes(self) -> None:
        """Replace codes by class numbers, which are known when all rows are read."""
        path = self.folder / "labels.npy"
        codes = RowFile(path.rename(self.scratch / "codes.npy"))
        with RowWriter(path, np.int64) as file:
            for start in range(0, len(codes), 1 << 20):
                file.write(self._class_of[codes.read(start, min(start + (1 << 20), len(codes)))])

    def _write_ids(self, found: Any) -> None:
        arrays = id_arrays(found)
        if "ids" in arrays:
            self._write("ids", arrays["ids"], np.int64)
            return
        begun = "ids_text" in self._writers
        offsets = arrays["ids_offsets"][1:] + self._writers["ids_text"].count if begun else arrays["ids_offsets"]
        self._write("ids_text", arrays["ids_text"], np.uint8)
        self._write("ids_offsets", offsets, np.int64)

    def _write_vectors(self, batch: dict[str, Any], files: dict[str, RowFile], place: Place, count: int) -> None:
        """Columns of vectors and `.npy` files side by side."""
        parts = []
        for name in self.spec.vectors:
            if name in files and self.n + count > len(files[name]):
                raise DataError(f"{name} has {len(files[name])} rows, but {place} has more; they must match")
            found = files[name].read(self.n, self.n + count) if name in files else cells(batch[name])
            with (Place(name) if name in files else place).naming(self.n):
                parts.append(values.vectors(found, name, self.widths.get(name)))
            self.widths[name] = parts[-1].shape[1]
        with np.errstate(over="ignore"):
            stored = np.concatenate(parts, axis=1).astype(self.dtype, copy=False)
        bad = np.flatnonzero(~np.isfinite(stored).all(axis=1))
        if len(bad):
            row = place.first_row + self.n + int(bad[0])
            raise DataError(f"{place} row {row} has a feature beyond {self.dtype}; keep float32, or scale it")
        self._write("features", stored, self.dtype)

    def _number(self, found: Any) -> None:
        """Remember the rows of ids, unless each id so far is the number of its row."""
        self.kind = found.type
        if self.rows is None:
            if pa.types.is_integer(found.type) and np.array_equal(
                found.to_numpy(zero_copy_only=False), np.arange(self.n, self.n + len(found))
            ):
                return
            rows = self._database(found.type)
            for start in range(0, self.n, 1 << 20):
                rows.add(pa.array(np.arange(start, min(start + (1 << 20), self.n))))
        assert self.rows is not None
        self.rows.add(found)

    def _nodes_of_edges(self) -> None:
        """Without a node table the nodes are those that the edges name, in order of appearance."""
        self._load_edges()
        if self.rows is None:
            raise DataError(f"{self.edges} has no row; a graph needs at least one node")
        self.rows.add_unknown()
        self.n = self.rows.count
        for found in self.rows.ids():
            self._write_ids(found)

    def _ends(self) -> Iterator[tuple[int, list[Any]]]:
        """The number of the first edge, and [sources, targets] as ids, batch by batch."""
        for start, ends, _ in edge_batches(self.edges, self.ends, self.kind):
            yield start, ends
            self.report("reading edges", start + len(ends[0]), None)

    def _load_edges(self) -> None:
        for start, ends in self._ends():
            (self.rows or self._database(ends[0].type)).insert("edges", ends, start)

    def _pairs(self) -> Iterator[Array]:
        """Edges as rows of known nodes; edges with unknown ends are counted and left out."""
        if self.rows is None:
            for start, ends in self._ends():
                pairs = np.stack([end.to_numpy(zero_copy_only=False) for end in ends], axis=1)
                good = ((pairs >= 0) & (pairs < self.n)).all(axis=1)
                bad = np.flatnonzero(~good)
                sides = [(edge, int(0 <= pairs[edge, 0] < self.n)) for edge in bad[:EXAMPLES].tolist()]
                self.unknown.add(len(bad), [(start + edge, end, int(pairs[edge, end])) for edge, end in sides])
                yield pairs[good]
            return
        if self.spec.nodes is not None:
            self._load_edges()
        for number, source, target, unknown in self.rows.pairs():
            lost = unknown.is_valid().to_numpy(zero_copy_only=False)
            self.unknown.add(
                int(lost.sum()),
                [(number[i].as_py(), int(source[i].is_valid), unknown[i].as_py()) for i in np.flatnonzero(lost)],
            )
            good = pa.array(~lost)
            yield np.stack([end.filter(good).to_numpy(zero_copy_only=False) for end in (source, target)], axis=1)


class _IdRows:
    """Ids of type `kind` -> rows, for more nodes than memory holds, by DuckDB's joins, which spill to `scratch`."""

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
        self.insert("nodes", [ids], self.count)
        self.count += len(ids)

    def insert(self, table: str, columns: list[Any], start: int) -> None:
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
        for batch in found.to_arrow_reader(_DB_ROWS):
            yield batch.column(0).cast(self.kind)

    def pairs(self) -> Iterator[tuple[Any, Any, Any, Any]]:
        """(edge number, source row, target row, unknown id) arrays, in no order; a row is null where it is unknown."""
        found: Any = self._db.sql("""
            SELECT e.number, s.row AS source, t.row AS target,
                   CASE WHEN s.row IS NULL THEN e.source WHEN t.row IS NULL THEN e.target END AS unknown
            FROM edges e LEFT JOIN nodes s ON e.source = s.id LEFT JOIN nodes t ON e.target = t.id""")
        for batch in found.to_arrow_reader(_DB_ROWS):
            yield tuple(batch.columns)

    def close(self) -> None:
        self._db.close()

    def _one(self, question: str) -> Any:
        (row,) = self._db.execute(question).fetchall()
        return row

"""Two tables larger than memory -> a graph folder, in batches: the folder that reading them whole would give."""

import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from graphsage.atomic import atomic_folder, writing
from graphsage.datasets.large_columns import ClassFile, ColumnFile, IdFile, SplitFile, VectorFile
from graphsage.datasets.large_ids import EXAMPLES, IdRows
from graphsage.datasets.table import Table
from graphsage.datasets.table_cells import guess, ids, like
from graphsage.datasets.table_edges import unknown_sentence
from graphsage.datasets.table_files import open_table
from graphsage.datasets.table_spec import ID, TableSpec, is_vector_file
from graphsage.datasets.tables import edge_columns
from graphsage.errors import ConfigError, DataError, one_of
from graphsage.graph.external.csr import EdgeSort
from graphsage.graph.external.row_file import Array
from graphsage.graph.external.size import shown_size
from graphsage.graph.storage import FORMAT, is_graph_folder

PROCESS_BYTES = 350_000_000  # Python, its libraries and the batch that is read
LEAST_BYTES = 64_000_000
BATCH_ROWS = 1 << 13  # of a node table with its vectors
FEATURE_TYPES = ("float32", "float16")
Report = Callable[[str, int, int | None], None]
_NOT_HERE = ("text", "numeric", "log_numeric", "categorical", "dates", "time", "edge_time", "time_order")


@dataclass(frozen=True)
class Built:
    nodes: int
    stored_edges: int
    features: int
    classes: int
    dropped: int


def build_large(spec: TableSpec, out: str | Path, *, memory: int, feature_type: str = "float32",
                report: Report | None = None) -> Built:  # fmt: skip
    """Write the graph of `spec` as a folder with at most about `memory` bytes. `report(what, rows, of)` is told how far
    it is. Features are columns of vectors (or `.npy` files), as they are: what is fitted needs the table in memory."""
    _check(spec, memory, feature_type)
    out = Path(out)
    with writing(out):
        out.absolute().parent.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(prefix=f".{out.name}.", suffix=".scratch", dir=out.absolute().parent))
    try:
        with (
            atomic_folder(out, is_graph_folder) as folder,
            closing(_Build(spec, folder, scratch, memory - PROCESS_BYTES, feature_type, report or _silent)) as build,
        ):
            return build.run()
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _check(spec: TableSpec, memory: int, feature_type: str) -> None:
    for name in _NOT_HERE:
        if getattr(spec, name):
            raise ConfigError(f"{name} is not read from tables larger than memory; give vectors, or build in memory")
    if any(name.endswith(".npz") for name in spec.vectors):
        raise ConfigError("sparse .npz files are not read from disk in pieces; give a .npy file or a column of lists")
    if spec.multilabel:
        raise ConfigError("many labels need memory for all of them; graphs larger than memory have one class a node")
    if spec.unknown_nodes == "add" and spec.nodes is not None:
        raise ConfigError(
            "unknown_nodes add: the added nodes would have no columns; drop such edges, or list the nodes"
        )
    one_of("feature type", feature_type, FEATURE_TYPES)
    if memory < PROCESS_BYTES + LEAST_BYTES:
        raise ConfigError(
            f"memory must be at least {shown_size(PROCESS_BYTES + LEAST_BYTES)}; got {shown_size(memory)}"
        )


def _silent(what: str, rows: int, of: int | None) -> None:
    pass


class _Build:
    def __init__(self, spec: TableSpec, folder: Path, scratch: Path, memory: int, kind: str, report: Report) -> None:
        self.spec, self.folder, self.scratch, self.memory = spec, folder, scratch, memory
        self.feature_type, self.report = kind, report
        self.edges = open_table(spec.edges, spec.delimiter)
        self.ends = edge_columns(self.edges, spec)
        self.rows: IdRows | None = None
        """None while every id is the row's number."""
        self.kind: Any = None
        self.n = self.dropped = 0
        self.columns: list[ColumnFile] = []
        self.features: VectorFile | None = None
        self.classes: ClassFile | None = None

    def run(self) -> Built:
        if self.spec.nodes is None:
            self._nodes_of_edges()
        else:
            self._read_nodes(open_table(self.spec.nodes, self.spec.delimiter, BATCH_ROWS))
        sort = EdgeSort(self.scratch / "edges", self.n, self.memory, directed=self.spec.directed)
        for pairs in self._pairs():
            sort.add(pairs)
        stored = sort.write(self.folder, lambda done, of: self.report("sorting edges", done, of))
        for column in self.columns:
            column.finish()
        self._write_about(stored, sorted(path.stem for path in self.folder.glob("*.npy")))
        features = 0 if self.features is None else sum(self.features.widths.values())
        return Built(self.n, stored, features, len(self._class_names() or ()), self.dropped)

    def close(self) -> None:
        for column in self.columns:
            column.close()
        if self.rows is not None:
            self.rows.close()

    def _read_nodes(self, table: Table) -> None:
        spec = self.spec
        name = guess(table, spec.id, ID, "id")
        if name in spec.features:
            raise ConfigError(f"column {name!r} of {table.place} is the id; it cannot be a feature too")
        vectors = [column for column in spec.vectors if not is_vector_file(column)]
        named: dict[str, ColumnFile] = {}
        if spec.vectors:
            self.features = VectorFile(self.folder, spec.vectors, self.feature_type, table.place)
            self.columns.append(self.features)
        if spec.label is not None:
            named[spec.label] = self.classes = ClassFile(self.folder, spec.label, table.place, spec.label_separator)
        if spec.split_column is not None:
            named[spec.split_column] = SplitFile(self.folder, spec.split_column, table.place)
        self.columns += named.values()
        id_file: IdFile | None = None
        for batch in table.batches(list(dict.fromkeys([name, *named, *vectors]))):
            found = ids(batch[name], name, table.place, self.n)
            if id_file is None:
                self.kind = found.type
                id_file = IdFile(self.folder, self.kind)
                self.columns.append(id_file)
            id_file.add(found, self.n)
            if self.features is not None:
                self.features.add(batch, self.n)
            for column, file in named.items():
                file.add(batch[column], self.n)
            self._number(found)
            self.n += len(found)
            self.report("reading nodes", self.n, None)
        if not self.n:
            raise DataError(f"{spec.nodes} has no row below its header; a graph needs at least one node")
        if self.rows is not None:
            self.rows.refuse_repeated(table.place, name)

    def _number(self, found: Any) -> None:
        """Remember the rows of ids; as long as an id is its row's number, there is nothing to remember."""
        if self.rows is None:
            plain = pa.types.is_integer(found.type) and np.array_equal(
                found.to_numpy(zero_copy_only=False), np.arange(self.n, self.n + len(found))
            )
            if plain:
                return
            self.rows = IdRows(self.scratch / "ids", found.type, self.memory // 2)
            for start in range(0, self.n, 1 << 20):
                self.rows.add(pa.array(np.arange(start, min(start + (1 << 20), self.n))))
        self.rows.add(found)

    def _nodes_of_edges(self) -> None:
        """Without a node table the nodes are those that the edges name, in order of appearance."""
        for batch in self.edges.batches(list(self.ends)):
            self.kind = ids(batch[self.ends[0]], self.ends[0], self.edges.place).type
            break
        if self.kind is None:
            raise DataError(f"{self.spec.edges} has no row; a graph needs at least one node")
        self.rows = IdRows(self.scratch / "ids", self.kind, self.memory // 2)
        self.rows.load_edges(self._ends())
        self.rows.add_unknown()
        self.n = self.rows.count
        file = IdFile(self.folder, self.kind)
        self.columns.append(file)
        start = 0
        for found in self.rows.ids():
            file.add(found, start)
            start += len(found)

    def _ends(self) -> Iterator[tuple[Any, Any]]:
        """(source, target) ids in the nodes' type, batch by batch."""
        start = 0
        for batch in self.edges.batches(list(self.ends)):
            source, target = (like(batch[name], self.kind, name, self.edges.place, start) for name in self.ends)
            start += len(source)
            yield source, target
            self.report("reading edges", start, None)

    def _pairs(self) -> Iterator[Array]:
        """Edges as rows of known nodes; unknown ends are dropped or, at the end, an error."""
        lost: list[tuple[int, int, Any]] = []
        if self.rows is None:
            start = 0
            for ends in self._ends():
                pairs = np.stack([end.to_numpy(zero_copy_only=False) for end in ends], axis=1)
                bad = ((pairs < 0) | (pairs >= self.n)).any(axis=1)
                for edge in np.flatnonzero(bad)[: EXAMPLES - len(lost)].tolist():
                    end = int(0 <= pairs[edge, 0] < self.n)
                    lost.append((start + edge, end, int(pairs[edge, end])))
                self.dropped += int(bad.sum())
                start += len(pairs)
                yield pairs[~bad]
        else:
            if self.spec.nodes is not None:
                self.rows.load_edges(self._ends())
            for number, source, target, unknown in self.rows.pairs():
                bad = unknown.is_valid().to_numpy(zero_copy_only=False)
                if bad.any():
                    some = [
                        (number[i].as_py(), int(source[i].is_valid), unknown[i].as_py()) for i in np.flatnonzero(bad)
                    ]
                    lost = sorted([*lost, *some])[:EXAMPLES]
                    self.dropped += len(some)
                good = pa.array(~bad)
                yield np.stack([end.filter(good).to_numpy(zero_copy_only=False) for end in (source, target)], axis=1)
        if lost and self.spec.unknown_nodes == "error":
            examples = [f"{value!r:.60} (column {self.ends[end]!r} row {edge + 1})" for edge, end, value in lost]
            raise DataError(unknown_sentence(self.edges.place, self.dropped, examples))

    def _class_names(self) -> list[str] | None:
        return None if self.classes is None else self.classes.class_names

    def _write_about(self, stored: int, arrays: list[str]) -> None:
        about = {"format": FORMAT, "nodes": self.n, "stored_edges": stored, "directed": self.spec.directed,
                 "class_names": self._class_names(), "arrays": arrays,
                 "splits": {"given": None} if self.spec.split_column is not None else {}}  # fmt: skip
        text = json.dumps(about, indent=1, ensure_ascii=False) + "\n"
        (self.folder / "graph.json").write_text(text, encoding="utf-8")

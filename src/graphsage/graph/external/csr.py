"""Edges in any order -> CSR files, by an external sort; and CSR files read a bounded number of rows at a time.

The files are those that `from_edges` and `save_graph` write. Every edge goes to one of the buckets of rows on disk,
and each bucket is sorted in memory.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from graphsage.errors import ConfigError, GraphError
from graphsage.graph.external.row_file import Array, RowFile, RowWriter
from graphsage.graph.external.size import shown_size
from graphsage.graph.storage import checked_files

BUCKETS = 128
CODE_BYTES = 32  # of memory for an edge while its bucket is sorted
_READ = 1 << 20  # codes of a bucket read at once where it must be split


def index_dtype(num_nodes: int) -> np.dtype[Any]:
    """The dtype of a stored edge."""
    return np.dtype(np.int32 if num_nodes < 2**31 else np.int64)


class EdgeSort:
    """`add` edges, then `write` the CSR. At most `memory` bytes are used for edges."""

    def __init__(self, scratch: Path, num_nodes: int, memory: int, *, directed: bool = False) -> None:
        self.n, self.directed, self.most = num_nodes, directed, max(1, memory // CODE_BYTES)
        self.memory, self.added = memory, 0
        self._top = _Buckets(scratch, 0, num_nodes, num_nodes)

    def add(self, pairs: Array) -> None:
        """Edges (E, 2) of rows, (from, to)."""
        bad = np.flatnonzero((pairs < 0).any(axis=1) | (pairs >= self.n).any(axis=1))
        if len(bad):
            edge = self.added + int(bad[0])
            raise GraphError(
                f"edge {edge} joins {pairs[bad[0]].tolist()}, but the graph has {self.n} nodes (0 to {self.n - 1})"
            )
        self.added += len(pairs)
        pairs = pairs.astype(np.int64, copy=False)
        column, row = pairs[:, 0], pairs[:, 1]  # row v lists the u of its edges (u, v)
        self._top.add(row * self.n + column)
        if not self.directed:
            other = row != column
            self._top.add(column[other] * self.n + row[other])

    def write(self, folder: Path, on_rows: Callable[[int, int], None] | None = None) -> int:
        """`indptr.npy` and `indices.npy` in `folder`; returns the number of stored edges."""
        with (
            RowWriter(folder / "indptr.npy", np.int64) as indptr,
            RowWriter(folder / "indices.npy", index_dtype(self.n)) as indices,
        ):
            indptr.write(np.zeros(1, np.int64))
            self._sorted(self._top, indptr, indices, on_rows)
        return indices.count

    def _sorted(
        self, buckets: "_Buckets", indptr: RowWriter, indices: RowWriter, on_rows: Callable[[int, int], None] | None
    ) -> None:
        for bucket, (start, stop) in enumerate(buckets.ranges()):
            size = buckets.sizes[bucket]
            if size > self.most and stop - start > 1:
                self._sorted(buckets.split(bucket), indptr, indices, on_rows)
                continue
            if size > self.most:
                least = shown_size(size * CODE_BYTES)
                raise ConfigError(
                    f"node {start} alone has {size} edges, which need {least} of memory for edges; "
                    f"got {shown_size(self.memory)}"
                )
            codes = buckets.take(bucket)
            codes.sort()
            if len(codes):
                codes = codes[np.concatenate([[True], codes[1:] != codes[:-1]])]
            rows = codes // self.n
            codes -= rows * self.n
            before = indices.count
            indices.write(codes)
            rows -= start
            indptr.write(before + np.cumsum(np.bincount(rows, minlength=stop - start)))
            if on_rows is not None:
                on_rows(stop, self.n)


class _Buckets:
    """Codes row * n + column in files, one for each of some equal ranges of rows."""

    def __init__(self, scratch: Path, start: int, stop: int, n: int) -> None:
        self.scratch, self.start, self.stop, self.n = scratch, start, stop, n
        self.each = max(1, -(-(stop - start) // BUCKETS))
        self.sizes = [0] * len(self.ranges())
        scratch.mkdir(parents=True, exist_ok=True)

    def ranges(self) -> list[tuple[int, int]]:
        return [(at, min(at + self.each, self.stop)) for at in range(self.start, self.stop, self.each)]

    def _path(self, bucket: int) -> Path:
        return self.scratch / f"{self.start}-{self.stop}-{bucket}.codes"

    def add(self, codes: Array) -> None:
        which = ((codes // self.n - self.start) // self.each).astype(np.uint16)
        order = np.argsort(which, kind="stable")
        ends = np.cumsum(np.bincount(which, minlength=len(self.sizes)))
        codes = codes[order]
        for bucket, (low, high) in enumerate(zip(np.append(0, ends[:-1]).tolist(), ends.tolist(), strict=True)):
            if low < high:
                with self._path(bucket).open("ab") as file:
                    codes[low:high].tofile(file)
                self.sizes[bucket] += high - low

    def take(self, bucket: int) -> Array:
        """The codes of a bucket, whose file is removed."""
        path = self._path(bucket)
        if not path.exists():
            return np.empty(0, np.int64)
        codes = np.fromfile(path, np.int64)
        path.unlink()
        return codes

    def split(self, bucket: int) -> "_Buckets":
        """A bucket too large for memory, as buckets of fewer rows."""
        start, stop = self.ranges()[bucket]
        finer, path = _Buckets(self.scratch, start, stop, self.n), self._path(bucket)
        with path.open("rb") as file:
            while len(codes := np.fromfile(file, np.int64, _READ)):
                finer.add(codes)
        path.unlink()
        return finer


POINTERS = 1 << 20  # of indptr read at once


@dataclass(frozen=True)
class CsrFiles:
    """`indptr.npy` and `indices.npy` of a graph folder (or of its capped form)."""

    indptr: RowFile
    indices: RowFile

    @classmethod
    def open(cls, folder: Path) -> "CsrFiles":
        """With the checksums of a graph folder; its capped form has none."""
        files = checked_files(folder) if (folder / "graph.json").exists() else {}
        return cls(*(RowFile(folder / f"{name}.npy", files.get(name)) for name in ("indptr", "indices")))

    @property
    def num_nodes(self) -> int:
        return len(self.indptr) - 1

    def pointers(self, start: int, stop: int) -> Array:
        """indptr[start:stop + 1], checked: a damaged file would otherwise be read outside its bounds."""
        pointers = self.indptr.read(start, stop + 1)
        back = np.flatnonzero(pointers[1:] < pointers[:-1])
        if len(back) or pointers[0] < 0 or pointers[-1] > len(self.indices):
            node = start + (int(back[0]) if len(back) else 0)
            raise GraphError(f"{self.indptr.path} is damaged at node {node}; build the graph again")
        return pointers

    def neighbors(self, first: int, last: int) -> Array:
        """indices[first:last], checked to be nodes."""
        found = self.indices.read(first, last)
        if len(found) and (found.min() < 0 or found.max() >= self.num_nodes):
            raise GraphError(
                f"{self.indices.path} is damaged: it names a node beyond {self.num_nodes - 1}; build the graph again"
            )
        return found

    def chunks(self) -> Iterator[tuple[int, Array]]:
        """(first row, pointers of the rows from there on) over all rows."""
        for start in range(0, self.num_nodes, POINTERS):
            yield start, self.pointers(start, min(start + POINTERS, self.num_nodes))

    def runs(self, max_edges: int) -> Iterator[tuple[int, Array]]:
        """The same in runs of at most `max_edges` neighbors, at least one row each."""
        for start, pointers in self.chunks():
            for a, b in cut(pointers[1:] - pointers[:-1] + 1, max_edges):
                yield start + a, pointers[a : b + 1]


def cut(weights: Array, limit: int) -> list[tuple[int, int]]:
    """Cut rows into runs whose weights add up to at most `limit`, at least one row each."""
    total = np.cumsum(weights, dtype=np.int64)
    runs, start, spent = [], 0, 0
    while start < len(total):
        stop = max(int(np.searchsorted(total, spent + limit, side="right")), start + 1)
        runs.append((start, stop))
        start, spent = stop, int(total[stop - 1])
    return runs

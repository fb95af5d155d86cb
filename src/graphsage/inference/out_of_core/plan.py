"""What is computed in which blocks, so that memory suffices: decided once, before the first block, and written down.

Bytes read from disk by a stage: its edges once, and the rows it reduces once for each of its blocks of nodes. Larger
blocks of nodes read less, so they get most of the memory.
"""

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphsage.errors import ConfigError, one_of, setting
from graphsage.execution.rows_first import RowsFirst, rows_first
from graphsage.graph.external.csr import CsrFiles
from graphsage.graph.external.size import shown_size
from graphsage.inference.out_of_core.edges import EDGE_BYTES, RUN_EDGES, RUN_ROWS
from graphsage.inference.out_of_core.row_sources import CHUNK_ROWS
from graphsage.model.encoder import Encoder
from graphsage.model.layer import SageLayer

PROCESS_BYTES = 450_000_000  # Python and torch with their libraries, and what allocators keep
ROW_BYTES = 24  # pointers and counts of a row of a block
SOURCE_SHARE = 0.4  # of a block's memory for the source rows that are read at a time
FILE_BYTES = 1 << 28  # of a block of rows that are only transformed
LAYER_DTYPES = ("float32", "float16")


@dataclass(frozen=True)
class Stage:
    """One file a block, block b with the rows cuts[b]..cuts[b + 1].

    rows    each row transformed by itself, for neighbors to read: pool's MLP, or W where that makes rows narrower
    nodes   h^layer, reduced from the rows stage before it (`reads_rows`) or from the layer below
    """

    layer: int
    kind: str
    width: int
    type: str
    cuts: tuple[int, ...]
    source_rows: int = 0
    """Rows in memory at a time; 0 for a stage without neighbors, or with whole neighbor lists."""
    reads_rows: bool = False
    cells: int = 0
    """Neighbors that an LSTM reads at once."""

    @property
    def name(self) -> str:
        return f"{self.kind}-{self.layer}"

    @property
    def blocks(self) -> int:
        return len(self.cuts) - 1

    @staticmethod
    def from_dict(values: dict[str, Any]) -> "Stage":
        return Stage(**{**values, "cuts": tuple(values["cuts"])})

    def as_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


@dataclass(frozen=True)
class Budget:
    """Memory for blocks of each worker: of nodes with their edges, and of source rows."""

    bytes: int
    workers: int = 1

    @staticmethod
    def of(memory: int, workers: int, encoder: Encoder, adjacency: CsrFiles) -> "Budget":
        """The memory left for blocks; an error that names the minimum if `memory` is too small."""
        if workers < 1:
            raise ConfigError(f"{setting('workers')} must be at least 1; got {workers}")
        layers = [encoder.layer(k) for k in range(1, len(encoder.layers) + 1)]
        overhead = PROCESS_BYTES + max(_beside(layer, encoder.config.dim) for layer in layers)
        degree = max((int(np.diff(pointers).max(initial=0)) for _, pointers in adjacency.chunks()), default=0)
        least = max(_least(layer, degree) for layer in layers)
        driver = PROCESS_BYTES if workers > 1 else 0  # the process that waits for the workers
        each = (memory - driver) // workers - overhead
        if each < least:
            of = f" ({workers} workers need that much together)" if workers > 1 else ""
            raise ConfigError(
                f"{setting('memory')} must be at least {shown_size((overhead + least) * workers + driver)} for this "
                f"model and graph{of}; got {shown_size(memory)}"
            )
        return Budget(each, workers)


def plan_stages(encoder: Encoder, adjacency: CsrFiles, row_bytes: int, budget: Budget, layer_dtype: str) -> list[Stage]:
    """`row_bytes` is the size on disk of a node's features."""
    one_of("layer_dtype", layer_dtype, LAYER_DTYPES)
    stages: list[Stage] = []
    below = row_bytes
    for k in range(1, len(encoder.layers) + 1):
        layer, last = encoder.layer(k), k == len(encoder.layers)
        kind = "float32" if last else layer_dtype  # the result is not rounded
        first = rows_first(layer)
        if first is None:
            stages.append(_whole_lists(layer, k, encoder.config.dim, kind, adjacency, budget))
        else:
            transforms = first.required or _projecting_pays(first, adjacency, below, budget, layer_dtype)
            width = first.width if transforms else layer.in_dim
            if transforms:
                n, file_row = adjacency.num_nodes, width * np.dtype(layer_dtype).itemsize
                each = max(1, min(FILE_BYTES // file_row, -(-n // budget.workers)))
                stages.append(Stage(k, "rows", width, layer_dtype, (*range(0, n, each), n)))
            source_rows, node_bytes = _split(width, adjacency.num_nodes, budget)
            cuts = _cuts(adjacency, 4 * width + ROW_BYTES, EDGE_BYTES, node_bytes, budget.workers)
            stages.append(Stage(k, "nodes", encoder.config.dim, kind, cuts, source_rows, transforms))
        below = encoder.config.dim * np.dtype(kind).itemsize
    return stages


def _projecting_pays(first: RowsFirst, adjacency: CsrFiles, below: int, budget: Budget, layer_dtype: str) -> bool:
    """Whether fewer bytes are read if a stage of its own applies W to single rows before they are averaged."""
    if not first.pays:
        return False
    once = first.width * np.dtype(layer_dtype).itemsize

    def passes(width: int) -> int:
        _, node_bytes = _split(width, adjacency.num_nodes, budget)
        total = adjacency.num_nodes * (4 * width + ROW_BYTES) + len(adjacency.indices) * EDGE_BYTES
        return max(budget.workers, -(-total // node_bytes))

    return below + once + once * passes(first.width) < below * passes(first.layer.in_dim)


def _split(width: int, n: int, budget: Budget) -> tuple[int, int]:
    """Source rows in memory at a time, and bytes for a block of nodes."""
    source_rows = max(1, min(n, int(budget.bytes * SOURCE_SHARE) // (4 * width)))
    return source_rows, max(1, budget.bytes - source_rows * 4 * width)


def _whole_lists(layer: SageLayer, k: int, dim: int, kind: str, adjacency: CsrFiles, budget: Budget) -> Stage:
    """Half of the memory for rows, half for the aggregator that reads them."""
    half = budget.bytes // 2
    gathered = 8 * layer.in_dim + 64
    cells = max(1, half // _cell_bytes(layer))
    cuts = _cuts(adjacency, gathered, gathered, half, budget.workers)
    return Stage(k, "nodes", dim, kind, cuts, cells=cells)


def _cuts(adjacency: CsrFiles, row_bytes: int, edge_bytes: int, limit: int, workers: int) -> tuple[int, ...]:
    """Where blocks of nodes begin, and the end: each within `limit`, and at least one for each worker."""
    total = adjacency.num_nodes * row_bytes + len(adjacency.indices) * edge_bytes
    limit = min(limit, -(-total // workers))
    cuts, left = [0], limit
    for start, pointers in adjacency.chunks():
        weights = np.diff(pointers) * edge_bytes + row_bytes
        done = 0
        while done < len(weights):
            total_here = np.cumsum(weights[done:])
            fits = int(np.searchsorted(total_here, left, side="right"))
            if fits == len(total_here):
                left -= int(total_here[-1])
                break
            if cuts[-1] == start + done and fits == 0:
                fits = 1  # a row that is larger than the limit is a block
            done += fits
            cuts.append(start + done)
            left = limit
    if cuts[-1] != adjacency.num_nodes:
        cuts.append(adjacency.num_nodes)
    return tuple(cuts)


def _beside(layer: SageLayer, dim: int) -> int:
    """Memory of chunks of rows and runs of edges, whatever the block."""
    width, more = _widest(layer), (layer.norm is not None) + (layer.skip is not None)
    return CHUNK_ROWS * 4 * (5 * layer.in_dim + 3 * width + (4 + more) * dim) + RUN_EDGES * 64 + RUN_ROWS * 12 * width


def _least(layer: SageLayer, degree: int) -> int:
    """Memory for a block of the node with the most neighbors and for one source row."""
    if rows_first(layer) is None:
        return 2 * max((degree + 1) * (8 * layer.in_dim + 64), max(degree, 1) * _cell_bytes(layer))
    width = _widest(layer)
    return 4 * width + ROW_BYTES + degree * (EDGE_BYTES + 64) + int(4 * width / SOURCE_SHARE) + 1


def _widest(layer: SageLayer) -> int:
    """Of the rows that neighbors read: as they are, or transformed first."""
    first = rows_first(layer)
    return max(layer.in_dim, layer.aggregator.out_dim if first is None else first.width)


def _cell_bytes(layer: SageLayer) -> int:
    """A neighbor's share while an LSTM runs: its vector, the gates, the states."""
    return 4 * (4 * layer.in_dim + 12 * layer.aggregator.out_dim) + 64

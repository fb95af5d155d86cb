"""infer_block(work, stage, block) -> file: the one thing that executors run, in any order and any process."""

import math
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from graphsage.checksummed_blocks import CheckedFile
from graphsage.errors import DataError
from graphsage.execution.fast_encoder import FastEncoder
from graphsage.execution.rows_first import RowsFirst, rows_first
from graphsage.graph.external.csr import CsrFiles
from graphsage.graph.external.row_file import RowFile
from graphsage.graph.storage import checked_files
from graphsage.inference.bundle import load_bundle
from graphsage.inference.embed import exact_keys
from graphsage.inference.out_of_core.edges import block_runs
from graphsage.inference.out_of_core.plan import Stage
from graphsage.inference.out_of_core.row_sources import CHUNK_ROWS, BlockRows, InputRows, RowSource, gather, load
from graphsage.inference.out_of_core.work import STRUCTURE, WorkFolder, open_keys
from graphsage.kernels.buffers import huge_page_table
from graphsage.kernels.neighborhood import Ragged, compact
from graphsage.kernels.sequences import CELLS
from graphsage.model.encoder import Encoder


def infer_block(folder: Path, stage: int, block: int) -> Path:
    """Compute one block of a stage and write it atomically, repeatably. All blocks of the stages before must exist."""
    opened = _opened(folder, (folder / "work.json").stat().st_mtime_ns)
    opened.infer(stage, block)
    return opened.work.block(stage, block)


@lru_cache(maxsize=1)
def _opened(folder: Path, moment: int) -> "Opened":
    """`moment`, when the plan was written, keeps a plan that was replaced from being used."""
    work = WorkFolder.open(folder)
    encoder = load_bundle(folder / "model").encoder.eval()
    return Opened(work, encoder, CsrFiles.open(work.adjacency), checked_files(work.graph))


@dataclass(frozen=True)
class Opened:
    work: WorkFolder
    encoder: Encoder
    adjacency: CsrFiles
    files: dict[str, CheckedFile]
    """Arrays of the graph folder."""

    @torch.no_grad()
    def infer(self, stage: int, block: int) -> None:
        about = self.work.stages[stage]
        start, stop = about.cuts[block], about.cuts[block + 1]
        below, first = self.below(stage), rows_first(self.encoder.layer(about.layer))
        with self.work.writing_block(stage, block) as writer:
            if first is None:
                writer.write(_stored(self._whole_lists(below, about, start, stop), about))
            elif about.kind == "rows":
                for at in range(start, stop, CHUNK_ROWS):
                    h = below.rows(at, min(at + CHUNK_ROWS, stop))
                    once = torch.empty(len(h), about.width)
                    first.for_neighbors(h, once)
                    writer.write(_stored(once, about))
            else:
                source = self.rows_of(stage - 1) if about.reads_rows else below
                combined, counts = self._combined(first, source, about, start, stop)
                for at in range(start, stop, CHUNK_ROWS):
                    end = min(at + CHUNK_ROWS, stop)
                    here = slice(at - start, end - start)
                    own = source.rows(at, end) if first.aggregator.includes_self else None
                    aggregated = first.from_partial(combined[here], counts[here], own)
                    h = torch.empty(end - at, about.width)
                    if about.reads_rows:
                        own_rows = below.rows(at, end)
                        first.for_itself(own_rows, h)
                        first.finish(aggregated, h, own_rows)
                    else:
                        first.combine(below.rows(at, end), aggregated, h)
                    writer.write(_stored(h, about))

    def below(self, stage: int) -> RowSource:
        """h^(k - 1) of the stage's layer k."""
        layer = self.work.stages[stage].layer
        if layer == 1:
            graph = self.work.graph
            features = RowFile(graph / "features.npy", self.files["features"]) if "features" in self.files else None
            path = self.work.folder / STRUCTURE
            return InputRows(self.encoder, features, RowFile(path) if path.exists() else None)
        return self.rows_of(
            next(s for s, about in enumerate(self.work.stages) if about.layer == layer - 1 and about.kind == "nodes")
        )

    def rows_of(self, stage: int) -> BlockRows:
        about = self.work.stages[stage]
        return BlockRows(self.work.blocks(stage), about.cuts, about.width)

    def _combined(
        self, first_pass: RowsFirst, source: RowSource, about: Stage, start: int, stop: int
    ) -> tuple[Tensor, Tensor]:
        """The sum (or maximum) of each node's neighbors, taken over one block of source rows after the other."""
        kind = first_pass.partial
        pointers = self.adjacency.pointers(start, stop)
        counts = torch.from_numpy(np.diff(pointers))
        combined = huge_page_table(stop - start, source.width)
        combined.fill_(-torch.inf if kind == "max" else 0)
        runs = block_runs(self.adjacency, pointers, about.source_rows)
        n, buffer = self.adjacency.num_nodes, None
        for number, first in enumerate(range(0, n, about.source_rows)):
            if not any(run.bounds[number] < run.bounds[number + 1] for run in runs):
                continue
            if buffer is None:
                buffer = huge_page_table(min(about.source_rows, n), source.width)
            rows = load(source, first, min(first + about.source_rows, n), buffer)
            for run in runs:
                run.reduce(number, rows, first, kind, combined)
        if kind == "max":
            combined[counts == 0] = 0
        return combined, counts

    def _whole_lists(self, below: RowSource, about: Stage, start: int, stop: int) -> Tensor:
        """h^k of nodes whose aggregator needs all neighbors at once: the distinct ones are gathered."""
        pointers = self.adjacency.pointers(start, stop)
        found = torch.from_numpy(self.adjacency.neighbors(int(pointers[0]), int(pointers[-1]))).long()
        block, offsets = torch.arange(start, stop), torch.from_numpy(pointers - pointers[0])
        own_keys = block
        if (keys := open_keys(self.work.graph, self.work.folder)) is not None:  # lists by key, as in memory
            own_keys = torch.from_numpy(keys[start:stop].copy())
            owners = np.repeat(np.arange(stop - start), np.diff(pointers))
            found = found[np.lexsort((keys[found.numpy()], owners))]
        hood = Ragged(found, offsets, exact_keys(own_keys, about.layer, self.work.seed), block)
        nodes, hoods = compact((hood,), self.adjacency.num_nodes)
        fast = FastEncoder(self.encoder, cells=min(about.cells, CELLS))
        return fast.layer(about.layer, gather(below, nodes.numpy()), (), hoods)


def _stored(rows: Tensor, about: Stage) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    if about.type == "float16" and not bool(torch.isfinite(rows.half()).all()):
        raise DataError(f"layer {about.layer} has numbers that float16 cannot hold; choose the layer dtype float32")
    if not math.isfinite(rows.sum().item()) and not bool(torch.isfinite(rows).all()):
        raise DataError(f"numbers of layer {about.layer} overflowed; look for huge features")
    return rows.numpy()

"""The rows that a layer reads, from disk: the graph's inputs (k = 1), or the blocks that the stage before wrote."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from graphsage.graph.external.row_file import Array, RowFile
from graphsage.kernels.buffers import huge_page_table
from graphsage.kernels.rows import scaled_rows
from graphsage.model.encoder import Encoder

CHUNK_ROWS = 1 << 13  # rows read and transformed at once
GAP_BYTES = 1 << 16  # rows further apart than this are read by two reads


class RowSource(Protocol):
    """N rows of float32 on disk."""

    width: int

    def rows(self, start: int, stop: int) -> Tensor:
        """RowSource start..stop, (stop - start, width) float32."""


class InputRows:
    """x_v: features, features by edges and the identity vector, scaled as the encoder wants them."""

    def __init__(self, encoder: Encoder, features: RowFile | None, structure: RowFile | None) -> None:
        """`structure` holds the features by edges, given where the model reads some."""
        self.encoder, self.features, self.structure = encoder, features, structure
        self.width = encoder.layer(1).in_dim

    def rows(self, start: int, stop: int) -> Tensor:
        tables = [] if self.features is None else [_tensor(self.features.read(start, stop))]
        if self.structure is not None:
            tables.append(_tensor(self.structure.read(start, stop)))
        encoder = self.encoder
        x = scaled_rows(tables, torch.arange(stop - start), encoder.shift, encoder.scale)
        return x if encoder.identity is None else torch.cat([x, encoder.identity.weight[start:stop]], dim=1)


class BlockRows:
    """What a stage wrote: block b holds the rows cuts[b]..cuts[b + 1]."""

    def __init__(self, paths: Sequence[Path], cuts: Sequence[int], width: int) -> None:
        self.files = [RowFile(path) for path in paths]
        self.cuts, self.width = np.asarray(cuts), width

    def rows(self, start: int, stop: int) -> Tensor:
        parts = []
        block = int(np.searchsorted(self.cuts, start, side="right")) - 1
        while start < stop:
            first, end = int(self.cuts[block]), min(int(self.cuts[block + 1]), stop)
            parts.append(_tensor(self.files[block].read(start - first, end - first)).float())
            start, block = end, block + 1
        if len(parts) == 1:
            return parts[0]
        return torch.cat(parts) if parts else torch.zeros(0, self.width)


def load(source: RowSource, start: int, stop: int, out: Tensor) -> Tensor:
    """RowSource start..stop at the head of `out`, read in chunks."""
    for at in range(start, stop, CHUNK_ROWS):
        end = min(at + CHUNK_ROWS, stop)
        out[at - start : end - start] = source.rows(at, end)
    return out[: stop - start]


def gather(source: RowSource, nodes: Array) -> Tensor:
    """The rows of `nodes`, ascending; near ones are read together."""
    out = huge_page_table(len(nodes), source.width)
    gap = max(1, GAP_BYTES // (4 * source.width))
    begin = 0
    while begin < len(nodes):
        first = int(nodes[begin])
        reach = nodes[begin : int(np.searchsorted(nodes, first + CHUNK_ROWS))]
        far = np.flatnonzero(np.diff(reach) > gap)
        reach = reach[: int(far[0]) + 1] if len(far) else reach
        read = source.rows(first, int(reach[-1]) + 1)
        torch.index_select(read, 0, torch.from_numpy(reach - first), out=out[begin : begin + len(reach)])
        begin += len(reach)
    return out


def _tensor(array: Array) -> Tensor:
    tensor = torch.from_numpy(array)
    return tensor.view(torch.bfloat16) if array.dtype == np.int16 else tensor  # as graph.storage keeps it

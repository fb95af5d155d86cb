"""x_v of chosen nodes: rows of the input tables side by side, shifted and scaled (Algorithm 1, line 1)."""

from collections.abc import Sequence

import torch
from torch import Tensor

from graphsage.kernels.backend import on_compiled, on_triton
from graphsage.kernels.buffers import Buffers
from graphsage.kernels.compiled import bindings

BLOCK_BYTES = 1 << 19


def scaled_rows(
    tables: Sequence[Tensor],
    nodes: Tensor,
    shift: Tensor,
    scale: Tensor,
    out: Tensor | None = None,
) -> Tensor:
    """tables (N, D_i) of any float type, nodes (R,) -> (R, D) on the device of `nodes`; `out` may be wider.

    A table may be in host memory while `nodes` are on a GPU.
    """
    if out is None:
        out = torch.empty(len(nodes), len(shift), dtype=torch.float32, device=nodes.device)
    at = 0
    for table in tables:
        columns = slice(at, at + table.shape[1])
        into = out[:, columns]
        if on_triton(nodes):
            from graphsage.kernels.triton import gather as fast

            fast.scaled_rows(table, nodes, shift[columns], scale[columns], into)
        else:
            _scaled(table, nodes, shift[columns], scale[columns], into)
        at += table.shape[1]
    return out


def _scaled(table: Tensor, nodes: Tensor, shift: Tensor, scale: Tensor, out: Tensor) -> None:
    """In blocks of rows that stay in cache."""
    if on_compiled(nodes, shift, scale) and bindings.readable(table) and bindings.writable(out):
        bindings.scaled_rows(table, nodes, shift, scale, out)
        return
    step = max(32, BLOCK_BYTES // max(4 * table.shape[1], 1)) if nodes.device.type == "cpu" else max(len(nodes), 1)
    direct = nodes.device.type == "cpu" and table.dtype == out.dtype and out.is_contiguous()
    for start in range(0, len(nodes), step):
        some, into = nodes[start : start + step].to(table.device), out[start : start + step]
        if direct:
            torch.index_select(table, 0, some, out=into).sub_(shift).mul_(scale)
        else:
            rows = table.index_select(0, some).to(nodes.device).float()
            torch.mul(rows.sub_(shift), scale, out=into)


def frozen_rows(h: Tensor, rows: Tensor, buffers: Buffers) -> Tensor:
    """h[rows] without a gradient, in a buffer if it is on the CPU."""
    return torch.index_select(h, 0, rows, out=buffers.take_like(h, rows=len(rows)))

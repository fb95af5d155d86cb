"""Rows of a table, shifted and scaled, wherever the GPU can read it: its own memory, or the host's where pinned."""

import triton
import triton.language as tl
from torch import Tensor

LANES, ROWS = 128, 16  # of one program: its rows are read at the same time, where single ones would wait for each other


@triton.jit
def _rows(
    table,
    nodes,
    shift,
    scale,
    out,
    stride,
    out_stride,
    count,
    DIM: tl.constexpr,
    LANES: tl.constexpr,
    ROWS: tl.constexpr,
):
    r = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    column = tl.program_id(1) * LANES + tl.arange(0, LANES)
    inside = column < DIM
    both = (r < count)[:, None] & inside[None, :]
    node = tl.load(nodes + r, mask=r < count, other=0)
    x = tl.load(table + node[:, None] * stride + column[None, :], mask=both, other=0.0).to(tl.float32)
    shift = tl.load(shift + column, mask=inside, other=0.0)
    scale = tl.load(scale + column, mask=inside, other=0.0)
    tl.store(out + r[:, None] * out_stride + column[None, :], (x - shift[None, :]) * scale[None, :], mask=both)


def scaled_rows(table: Tensor, nodes: Tensor, shift: Tensor, scale: Tensor, out: Tensor) -> None:
    dim = table.shape[1]
    if len(nodes) and dim:
        lanes = min(LANES, triton.next_power_of_2(dim))
        _rows[(triton.cdiv(len(nodes), ROWS), triton.cdiv(dim, lanes))](
            table,
            nodes,
            shift,
            scale,
            out,
            table.stride(0),
            out.stride(0),
            len(nodes),
            DIM=dim,
            LANES=lanes,
            ROWS=ROWS,
            num_warps=4,
        )

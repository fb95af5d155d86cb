"""Rows of a table, shifted and scaled, wherever the GPU can read it: its own memory, or the host's where pinned."""

import triton
import triton.language as tl
from torch import Tensor

LANES = 128


@triton.jit
def _rows(table, nodes, shift, scale, out, stride, out_stride, DIM: tl.constexpr, LANES: tl.constexpr):
    r = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * LANES + tl.arange(0, LANES)
    inside = column < DIM
    x = tl.load(table + tl.load(nodes + r) * stride + column, mask=inside, other=0.0).to(tl.float32)
    x = (x - tl.load(shift + column, mask=inside, other=0.0)) * tl.load(scale + column, mask=inside, other=0.0)
    tl.store(out + r * out_stride + column, x, mask=inside)


def scaled_rows(table: Tensor, nodes: Tensor, shift: Tensor, scale: Tensor, out: Tensor) -> None:
    dim = table.shape[1]
    if len(nodes) and dim:
        lanes = min(LANES, triton.next_power_of_2(dim))
        _rows[(len(nodes), triton.cdiv(dim, lanes))](
            table, nodes, shift, scale, out, table.stride(0), out.stride(0), DIM=dim, LANES=lanes, num_warps=1
        )

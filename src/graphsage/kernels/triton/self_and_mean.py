"""The input of a layer above the first, where a row's neighbors lie one after the other: forward and backward."""

import triton
import triton.language as tl
from torch import Tensor

from graphsage.kernels.triton.launch import whole_rows


@triton.jit
def _forward(
    h, present, out, start, INCLUDES_SELF: tl.constexpr, DIM: tl.constexpr, SIZE: tl.constexpr, LANES: tl.constexpr
):
    r = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, LANES)
    inside = column < DIM
    own = tl.load(h + r * DIM + column, mask=inside, other=0.0)
    has = tl.load(present + r) != 0
    total = tl.zeros([LANES], tl.float32)
    for s in tl.static_range(SIZE):
        total += tl.load(h + (start + r * SIZE + s) * DIM + column, mask=inside & has, other=0.0)
    if INCLUDES_SELF:
        tl.store(out + r * DIM + column, (total + own) / (SIZE * has + 1), mask=inside)
    else:
        tl.store(out + r * 2 * DIM + column, own, mask=inside)
        tl.store(out + r * 2 * DIM + DIM + column, total / SIZE, mask=inside)


@triton.jit
def _backward(
    grad,
    present,
    out,
    start,
    num_rows,
    INCLUDES_SELF: tl.constexpr,
    DIM: tl.constexpr,
    SIZE: tl.constexpr,
    LANES: tl.constexpr,
):
    """One program a row of h: a target, a child of one, or neither."""
    m = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, LANES)
    inside = column < DIM
    child = (m - start) // SIZE
    is_child = (m >= start) & (child < num_rows)
    is_row = m < num_rows
    r = tl.where(is_child, child, tl.where(is_row, m, 0))
    has = tl.load(present + r) != 0
    if INCLUDES_SELF:
        g = tl.load(grad + r * DIM + column, mask=inside, other=0.0) / (SIZE * has + 1)
    else:
        at = tl.where(is_child, DIM, 0)
        g = tl.load(grad + r * 2 * DIM + at + column, mask=inside, other=0.0) / tl.where(is_child, SIZE, 1)
    g = tl.where(is_row | (is_child & has), g, 0.0)
    tl.store(out + m * DIM + column, g, mask=inside)


def forward(h: Tensor, present: Tensor, start: int, size: int, includes_self: bool) -> Tensor:
    count, dim = len(present), h.shape[1]
    out = h.new_empty(count, dim if includes_self else 2 * dim)
    if count:
        _forward[(count,)](h, present, out, start, INCLUDES_SELF=includes_self, SIZE=size, **whole_rows(dim))
    return out


def backward(grad: Tensor, present: Tensor, start: int, size: int, includes_self: bool, height: int) -> Tensor:
    dim = grad.shape[1] if includes_self else grad.shape[1] // 2
    out = grad.new_empty(height, dim)
    if height:
        _backward[(height,)](
            grad, present, out, start, len(present), INCLUDES_SELF=includes_self, SIZE=size, **whole_rows(dim)
        )
    return out

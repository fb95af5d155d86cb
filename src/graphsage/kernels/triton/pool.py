"""ReLU and maximum over consecutive rows (Equation 3), and its gradient, which goes to the first row that won."""

import torch
import triton
import triton.language as tl
from torch import Tensor


@triton.jit
def _forward(h, bias, present, out, winner, start, DIM: tl.constexpr, SIZE: tl.constexpr, LANES: tl.constexpr):
    r = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * LANES + tl.arange(0, LANES)
    inside = column < DIM
    best = tl.load(h + (start + r * SIZE) * DIM + column, mask=inside, other=0.0).to(tl.float32)
    which = tl.zeros([LANES], tl.int32)
    for s in tl.static_range(1, SIZE):
        x = tl.load(h + (start + r * SIZE + s) * DIM + column, mask=inside, other=0.0).to(tl.float32)
        which = tl.where(x > best, s, which)
        best = tl.maximum(best, x)
    has = tl.load(present + r) != 0
    best += tl.load(bias + column, mask=inside, other=0.0)
    live = has & (best > 0)
    tl.store(out + r * DIM + column, tl.where(live, best, 0.0), mask=inside)
    tl.store(winner + r * DIM + column, tl.where(live, which, -1).to(tl.int16), mask=inside)


@triton.jit
def _backward(grad, winner, out, start, DIM: tl.constexpr, SIZE: tl.constexpr, LANES: tl.constexpr):
    """One program a row: it writes all of its children."""
    r = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * LANES + tl.arange(0, LANES)
    inside = column < DIM
    which = tl.load(winner + r * DIM + column, mask=inside, other=-1).to(tl.int32)
    g = tl.load(grad + r * DIM + column, mask=inside, other=0.0)
    for s in tl.static_range(SIZE):
        tl.store(out + (start + r * SIZE + s) * DIM + column, tl.where(which == s, g, 0.0), mask=inside)


def forward(h: Tensor, bias: Tensor, present: Tensor, start: int, size: int) -> tuple[Tensor, Tensor]:
    """h (M, D) before bias and ReLU -> the maximum (R, D), and which child won it, -1 where it is not above zero."""
    count, dim = len(present), h.shape[1]
    out = torch.empty(count, dim, dtype=torch.float32, device=h.device)
    winner = torch.empty(count, dim, dtype=torch.int16, device=h.device)
    if count:
        _forward[_grid(count, dim)](h, bias, present, out, winner, start, SIZE=size, **_shape(dim))
    return out, winner


def backward(grad: Tensor, winner: Tensor, start: int, size: int, height: int, dtype: torch.dtype) -> Tensor:
    count, dim = grad.shape
    out = grad.new_empty(height, dim, dtype=dtype)
    out[:start].zero_()
    out[start + count * size :].zero_()
    if count:
        _backward[_grid(count, dim)](grad, winner, out, start, SIZE=size, **_shape(dim))
    return out


def _grid(count: int, dim: int) -> tuple[int, int]:
    return count, triton.cdiv(dim, _shape(dim)["LANES"])


def _shape(dim: int) -> dict[str, int]:
    lanes = min(512, triton.next_power_of_2(dim))
    return {"DIM": dim, "LANES": lanes, "num_warps": max(1, lanes // 128)}

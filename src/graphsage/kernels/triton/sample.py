"""One hop of Algorithm 2, lines 2-7: draw every row's neighbors, and derive their keys."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from graphsage.kernels.triton.random import derive, mix


@triton.jit
def _sample_hop(
    indptr,
    indices,
    rows,
    keys,
    out_rows,
    out_keys,
    out_present,
    out_draw,
    step,
    num_rows,
    SIZE: tl.constexpr,
    LANES: tl.constexpr,
    EXTEND: tl.constexpr,
    EMPTY: tl.constexpr,
):
    """One program per row. Floyd's method over the lanes of one warp (see kernels.sample.sample_offsets)."""
    r = tl.program_id(0).to(tl.int64)
    lane = tl.arange(0, LANES).to(tl.int64)
    inside = lane < SIZE
    v = tl.load(rows + r)
    key = tl.load(keys + r)
    draw = mix(key + step)
    start = tl.load(indptr + v)
    degree = tl.load(indptr + v + 1) - start
    enough = degree >= SIZE
    last = tl.where(enough, degree - SIZE + lane, tl.maximum(degree - 1, 0))
    drawn = (((derive(draw, lane) >> 32) & 0xFFFFFFFF) * (last + 1)) >> 32
    chosen = tl.where(inside & (not enough), drawn, -1)
    if enough:
        for j in range(SIZE):
            here = lane == j
            candidate = tl.sum(tl.where(here, drawn, 0), axis=0)
            taken = tl.sum((chosen == candidate).to(tl.int32), axis=0) > 0
            chosen = tl.where(here, tl.where(taken, degree - SIZE + j, candidate), chosen)
    if EMPTY:
        index = tl.zeros([LANES], tl.int64) + v
    else:
        index = tl.load(indices + start + chosen, mask=inside & (degree > 0), other=0).to(tl.int64)
        index = tl.where(degree > 0, index, v)
    if EXTEND:
        tl.store(out_rows + r, v)
        tl.store(out_keys + r, key)
        children = num_rows + r * SIZE + lane
        tl.store(out_rows + children, index, mask=inside)
        tl.store(out_keys + children, derive(draw, lane + SIZE), mask=inside)
    else:
        tl.store(out_rows + r * SIZE + lane, index, mask=inside)
    tl.store(out_present + r, degree > 0)
    tl.store(out_draw + r, draw)


def sample_hop(
    indptr: Tensor, indices: Tensor, rows: Tensor, keys: Tensor, step: int, size: int, extend: bool
) -> tuple[Tensor, Tensor | None, Tensor, Tensor]:
    """`step` is added to a row's key before mixing. With `extend`: rows and keys, followed by those drawn."""
    count = len(rows)
    rows, keys = rows.contiguous(), keys.contiguous()
    draw = torch.empty_like(keys)
    present = torch.empty(count, dtype=torch.bool, device=keys.device)
    out_rows = keys.new_empty(count * (1 + size) if extend else (count, size))
    out_keys = torch.empty_like(out_rows) if extend else None
    if count:
        _sample_hop[(count,)](
            indptr,
            indices,
            rows,
            keys,
            out_rows,
            draw if out_keys is None else out_keys,
            present,
            draw,
            step,
            count,
            SIZE=size,
            LANES=triton.next_power_of_2(size),
            EXTEND=extend,
            EMPTY=indices.numel() == 0,
            num_warps=1,
        )
    return out_rows, out_keys, present, draw

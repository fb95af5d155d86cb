"""Dropout with counter-based draws, one pass: the same entries as kernels.dropout."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from graphsage.kernels.triton.random import derive, mix


@triton.jit
def _dropout(h, keys, out, step, threshold, factor, DIM: tl.constexpr, LANES: tl.constexpr):
    r = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, LANES)
    inside = column < DIM
    bits = derive(mix(tl.load(keys + r) + step), column.to(tl.int64))
    keep = ((bits >> 32) & 0xFFFFFFFF) >= threshold
    x = tl.load(h + r * DIM + column, mask=inside, other=0.0)
    tl.store(out + r * DIM + column, tl.where(keep, x * factor, 0.0), mask=inside)


def dropout(h: Tensor, threshold: int, factor: float, keys: Tensor, step: int) -> Tensor:
    h = h.contiguous()
    out = torch.empty_like(h)
    if h.numel():
        lanes = triton.next_power_of_2(h.shape[1])
        _dropout[(len(h),)](
            h, keys, out, step, threshold, factor, DIM=h.shape[1], LANES=lanes, num_warps=max(1, min(8, lanes // 128))
        )
    return out

"""A random permutation, one position at a time, without holding it: see kernels.random.permute."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from graphsage.kernels.triton.random import mix


@triton.jit
def _permute(positions, out, count, n, mask, half, k0, k1, k2, k3, k4, k5, LANES: tl.constexpr):
    i = tl.program_id(0) * LANES + tl.arange(0, LANES)
    inside = i < count
    image = tl.load(positions + i, mask=inside, other=0)
    todo = inside
    while tl.max(todo.to(tl.int32), axis=0) > 0:
        left = image >> half
        right = image & mask
        left, right = right, left ^ (mix(right + k0) & mask)
        left, right = right, left ^ (mix(right + k1) & mask)
        left, right = right, left ^ (mix(right + k2) & mask)
        left, right = right, left ^ (mix(right + k3) & mask)
        left, right = right, left ^ (mix(right + k4) & mask)
        left, right = right, left ^ (mix(right + k5) & mask)
        image = tl.where(todo, (left << half) | right, image)
        todo = todo & (image >= n)
    tl.store(out + i, image, mask=inside)


def permute(positions: Tensor, n: int, half: int, steps: list[int]) -> Tensor:
    """`steps` are what each of the six rounds adds to a number before it mixes."""
    positions = positions.contiguous()
    out = torch.empty_like(positions)
    lanes = 256
    if positions.numel():
        _permute[(triton.cdiv(positions.numel(), lanes),)](
            positions, out, positions.numel(), n, (1 << half) - 1, half, *steps, LANES=lanes, num_warps=4
        )
    return out

"""splitmix64 and permutations: the same bits as kernels.random."""

import torch
import triton
import triton.language as tl
from torch import Tensor

GOLDEN = tl.constexpr(-7046029254386353131)
C1 = tl.constexpr(-4658895280553007687)
C2 = tl.constexpr(-7723592293110705685)


@triton.jit
def mix(x):
    x = x ^ ((x >> 30) & ((1 << 34) - 1))
    x = x * C1
    x = x ^ ((x >> 27) & ((1 << 37) - 1))
    x = x * C2
    return x ^ ((x >> 31) & ((1 << 33) - 1))


@triton.jit
def derive(keys, counter):
    """`counter` is an int64 tensor: a Python int times GOLDEN would not fit."""
    return mix(keys + (counter + 1) * GOLDEN)


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

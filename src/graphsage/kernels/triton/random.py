"""splitmix64 inside a kernel: the same bits as kernels.random."""

import triton
import triton.language as tl

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

"""Counter-based random numbers: a draw depends only on the seed and its purpose, never on earlier draws.

A 64-bit key identifies a draw (seed, purpose, epoch, node, layer, slot), and `derive` returns keys below a key. Draws
are equal for any batch size, order, device or number of workers, and resuming needs no state.
The mixing function is the finalizer of splitmix64 in wrapping int64 arithmetic, which torch and Triton share.
"""

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from graphsage.kernels.backend import on_triton

SORTED = 16  # the largest n that `permute` sorts
_MASK = (1 << 64) - 1


def _signed(x: int) -> int:
    x &= _MASK
    return x - (1 << 64) if x >> 63 else x


GOLDEN = _signed(0x9E3779B97F4A7C15)
_C1 = _signed(0xBF58476D1CE4E5B9)
_C2 = _signed(0x94D049BB133111EB)


def mix(x: Tensor) -> Tensor:
    """Scramble each int64 of `x` into 64 random-looking bits."""
    return mix_(x.clone(), torch.empty_like(x))


def mix_(x: Tensor, spare: Tensor) -> Tensor:
    """`mix` in place; `spare` is memory of the same shape. Shifts are arithmetic in torch, hence the masks."""
    for shift, factor in ((30, _C1), (27, _C2), (31, 1)):
        torch.bitwise_right_shift(x, shift, out=spare)
        spare &= (1 << (64 - shift)) - 1
        x ^= spare
        if factor != 1:
            x *= factor
    return x


def mix_int(x: int) -> int:
    """`mix` for one Python int."""
    x &= _MASK
    x = ((x ^ (x >> 30)) * (_C1 & _MASK)) & _MASK
    x = ((x ^ (x >> 27)) * (_C2 & _MASK)) & _MASK
    return _signed(x ^ (x >> 31))


def derive(keys: Tensor, counter: int | Tensor) -> Tensor:
    """The keys number `counter` below `keys`; the two broadcast."""
    x = keys + (key_step(counter) if isinstance(counter, int) else (counter + 1) * GOLDEN)
    return mix_(x, torch.empty_like(x))


def key_step(counter: int) -> int:
    """The number that `derive` adds to a key before mixing."""
    return _signed((counter + 1) * GOLDEN)


def below(bits: Tensor, n: Tensor | int) -> Tensor:
    """Uniform integers in [0, n) from 64-bit draws, for 1 <= n < 2^31 (bias at most n / 2^32)."""
    return (((bits >> 32) & 0xFFFFFFFF) * n) >> 32


def below_(bits: Tensor, n: Tensor) -> Tensor:
    """`below` in place."""
    bits >>= 32
    bits &= 0xFFFFFFFF
    bits *= n
    bits >>= 32
    return bits


def uniform(bits: Tensor) -> Tensor:
    """Uniform float64 in [0, 1) with 53 random bits."""
    return ((bits >> 11) & ((1 << 53) - 1)).double() * 2.0**-53


@dataclass(frozen=True)
class Stream:
    """The root of all draws made for one purpose in one epoch."""

    seed: int
    purpose: str
    epoch: int = 0

    @cached_property
    def key(self) -> int:
        key = mix_int(self.seed)
        for byte in self.purpose.encode():
            key = mix_int(key + (byte + 1) * GOLDEN)
        return mix_int(key + (self.epoch + 1) * GOLDEN)

    def keys(self, counters: Tensor) -> Tensor:
        """One key for each counter (a node id, or a position in the epoch)."""
        return mix((counters.long() + 1) * GOLDEN + self.key)


def permute(positions: Tensor, n: int, key: int) -> Tensor:
    """The images of `positions` under a random permutation of 0..n-1, which is not held in memory if n is large.

    Up to 16 numbers are sorted by one draw each. More pass a six-round Feistel network over the smallest even number of
    bits that holds n; images at or beyond n pass it again (cycle walking), which makes it a bijection of [0, n). Over
    16 numbers or fewer that network is uneven, because its rounds have only a few functions to choose from.
    """
    if n <= SORTED:
        numbers = torch.arange(n, device=positions.device)
        return mix((numbers + 1) * GOLDEN + key).argsort(stable=True)[positions.long()]
    half = max(1, (max(n - 1, 1).bit_length() + 1) // 2)
    if on_triton(positions):
        from graphsage.kernels.triton import random as fast

        return fast.permute(positions.long(), n, half, [key_step(_signed(key + turn)) for turn in range(6)])
    mask = (1 << half) - 1
    image = positions.long().clone()
    todo = torch.ones_like(image, dtype=torch.bool)
    while bool(todo.any()):
        left, right = image[todo] >> half, image[todo] & mask
        for turn in range(6):
            left, right = right, left ^ (derive(right, _signed(key + turn)) & mask)
        image[todo] = (left << half) | right
        todo = image >= n
    return image

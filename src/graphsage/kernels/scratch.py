"""Large buffers that one training step leaves to the next: fresh memory costs a page fault for every 4 KB of it.

A buffer is in use as long as a tensor on it is alive, wherever that tensor went: returned, saved for a backward pass,
kept as a gradient. When the last one dies its memory can be taken again, so nobody ever has to give it back. Buffers
are kept within `reuse()` alone: the training loop and exact inference are; elsewhere memory is fresh and freed as ever.
"""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from graphsage.kernels.memory import lines

SMALLEST = 1 << 16  # bytes: less comes from the allocator's own free lists
SLACK = 1.5  # how much larger than asked for a buffer may be
PATIENCE = 200  # buffers taken meanwhile, up to twice as many, after which one that nobody uses is freed
_ALONE = 2  # references to an array that no tensor lies on: by `memory`, a part of it, and by the one that counts
_local = threading.local()


@dataclass(eq=False)
class _Buffer:
    memory: NDArray[np.uint8]
    taken: int

    @property
    def idle(self) -> bool:
        return sys.getrefcount(self.memory.base) <= _ALONE


@dataclass(eq=False)
class _Pool:
    buffers: list[_Buffer]
    clock: int = 0
    users: int = 0


@contextmanager
def reuse() -> Iterator[None]:
    """Keep buffers within the block, for this thread; at its end what nobody uses is freed."""
    pool = _pool()
    pool.users += 1
    try:
        yield
    finally:
        pool.users -= 1
        if not pool.users:
            pool.buffers = []


def take(rows: int, width: int, kind: torch.dtype = torch.float32) -> Tensor:
    """An uninitialized (rows, width) on the CPU."""
    size = rows * width * kind.itemsize
    if size < SMALLEST or not _pool().users:
        return torch.empty(rows, width, dtype=kind)
    return torch.from_numpy(_fitting(size)[:size]).view(kind).view(rows, width)


def take_like(tensor: Tensor) -> Tensor:
    """Uninitialized, of the shape and type of a matrix; in scratch memory where it is on the CPU."""
    if tensor.device.type != "cpu":
        return torch.empty_like(tensor, memory_format=torch.contiguous_format)
    return take(tensor.shape[0], tensor.shape[1], tensor.dtype)


def _fitting(size: int) -> NDArray[np.uint8]:
    pool = _pool()
    pool.clock += 1
    if pool.clock % PATIENCE == 0:
        old = pool.clock - PATIENCE
        pool.buffers = [buffer for buffer in pool.buffers if buffer.taken > old or not buffer.idle]
    best: _Buffer | None = None
    for buffer in pool.buffers:
        fits = size <= len(buffer.memory) <= SLACK * size
        if fits and (best is None or len(buffer.memory) < len(best.memory)) and buffer.idle:
            best = buffer
    if best is None:
        best = _Buffer(lines(int(size * 1.04)), 0)  # the next batch may need a little more
        pool.buffers.append(best)
    best.taken = pool.clock
    return best.memory


def _pool() -> _Pool:
    pool: _Pool = vars(_local).setdefault("pool", _Pool([]))
    return pool

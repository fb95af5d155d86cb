"""Large buffers that one training step hands to the next: fresh memory costs a page fault for every 4 KB of it.

Whoever takes a buffer gives it back when its last reader is done, or keeps it: then it is freed like any tensor.
"""

import threading

import torch
from torch import Tensor

_KEPT = 4  # free buffers of one shape
_SHAPES = 8
_local = threading.local()


def take(rows: int, width: int) -> Tensor:
    """An uninitialized (rows, width) float32 on the CPU."""
    buffers = _free().get((rows, width))
    return buffers.pop() if buffers else torch.empty(rows, width)


def give(buffer: Tensor) -> None:
    """Nobody will read `buffer`, which was taken here, any more."""
    free, shape = _free(), (buffer.shape[0], buffer.shape[1])
    if shape not in free and len(free) >= _SHAPES:
        free.clear()  # another run with other shapes
    buffers = free.setdefault(shape, [])
    if len(buffers) < _KEPT:
        buffers.append(buffer.detach())


def _free() -> dict[tuple[int, int], list[Tensor]]:
    pool: dict[tuple[int, int], list[Tensor]] = vars(_local).setdefault("free", {})
    return pool

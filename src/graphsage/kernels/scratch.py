"""Large buffers that one training step hands to the next: fresh memory costs a page fault for every 4 KB of it.

A buffer is taken for one operation and given back when its last reader is done, which is never later than the end of
the backward pass. A step that does not reach its backward pass just keeps what it took.
"""

import threading

import torch
from torch import Tensor

_KEPT = 4  # free buffers of one shape
_free = threading.local()


def take(rows: int, width: int) -> Tensor:
    """An uninitialized (rows, width) float32 on the CPU."""
    pool = vars(_free).setdefault("pool", {})
    buffers: list[Tensor] = pool.get((rows, width), [])
    buffer = buffers.pop() if buffers else torch.empty(rows, width)
    vars(_free).setdefault("taken", set()).add(buffer.data_ptr())
    return buffer


def give(buffer: Tensor) -> None:
    """Nobody will read `buffer` any more. What was not taken here is left alone."""
    taken: set[int] = vars(_free).setdefault("taken", set())
    if buffer.data_ptr() not in taken or not buffer.is_contiguous():
        return
    taken.discard(buffer.data_ptr())
    pool: dict[tuple[int, int], list[Tensor]] = vars(_free).setdefault("pool", {})
    shape = (buffer.shape[0], buffer.shape[1])
    if shape not in pool and len(pool) > 8:
        pool.clear()  # another run with other shapes
    buffers = pool.setdefault(shape, [])
    if len(buffers) < _KEPT:
        buffers.append(buffer.detach())

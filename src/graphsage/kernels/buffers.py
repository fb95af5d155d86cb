"""Memory for large matrices on a CPU: in huge pages, and reused from one training step to the next.

Huge pages halve the time of reading rows at random. Fresh memory costs a page fault for every 4 KB.
"""

import mmap
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

CACHE_LINE = 64  # bytes; a matrix begins at a multiple. NumPy's own memory begins 16 bytes after one
HUGE_PAGE = 1 << 21  # bytes
SMALLEST = 1 << 16  # bytes: the allocator's own free lists serve smaller requests
SLACK = 1.5  # a buffer may be this many times larger than the request it serves
STEP_SLACK = 6.0  # the same in training, whose steps repeat one sequence of requests: pool's peak is 16 MB lower
HEADROOM = 1.04  # a new buffer is this many times larger than its request: the next batch may need a little more
PATIENCE = 200  # an unused buffer is freed after this many requests, or up to twice as many


@dataclass(eq=False)
class _Buffer:
    memory: NDArray[np.uint8]
    size: int = 0
    """Bytes requested."""
    last_taken: int = 0
    free: bool = False


class Buffers:
    """Uninitialized matrices. A matrix is the caller's until `give_back`, or until `next_step` frees all of them.

    Results that outlive a step must not be taken from here. GPU memory comes from torch's own allocator.
    """

    def __init__(self, slack: float = SLACK) -> None:
        self._buffers: list[_Buffer] = []
        self._clock, self._slack = 0, slack

    def take(self, rows: int, width: int, dtype: torch.dtype = torch.float32) -> Tensor:
        """An uninitialized (rows, width) on the CPU."""
        size = rows * width * dtype.itemsize
        if size < SMALLEST:
            return torch.empty(rows, width, dtype=dtype)
        return torch.from_numpy(self._fitting(size).memory[:size]).view(dtype).view(rows, width)

    def take_like(self, tensor: Tensor, rows: int | None = None, width: int | None = None) -> Tensor:
        """An uninitialized matrix of the device and dtype of `tensor`, and by default of its shape."""
        rows, width = len(tensor) if rows is None else rows, tensor.shape[1] if width is None else width
        if tensor.device.type != "cpu":
            return tensor.new_empty(rows, width)
        return self.take(rows, width, tensor.dtype)

    def give_back(self, *tensors: Tensor) -> None:
        """Free these matrices before the step ends. A part of one, or one from elsewhere, is ignored."""
        given = {(tensor.data_ptr(), tensor.numel() * tensor.element_size()) for tensor in tensors}
        for buffer in self._buffers:
            if (buffer.memory.ctypes.data, buffer.size) in given:
                buffer.free = True

    def next_step(self) -> None:
        """Free everything that was taken."""
        for buffer in self._buffers:
            buffer.free = True

    def _fitting(self, size: int) -> _Buffer:
        self._clock += 1
        if self._clock % PATIENCE == 0:
            old = self._clock - PATIENCE
            self._buffers = [buffer for buffer in self._buffers if buffer.last_taken > old or not buffer.free]
        fitting = [b for b in self._buffers if b.free and size <= len(b.memory) <= self._slack * size]
        if fitting:
            best = min(fitting, key=lambda buffer: len(buffer.memory))
        else:
            best = _Buffer(aligned_memory(int(size * HEADROOM)))
            self._buffers.append(best)
        best.size, best.last_taken, best.free = size, self._clock, False
        return best


class _Fresh(Buffers):
    """Keeps nothing: every matrix is fresh memory that Python frees."""

    def take(self, rows: int, width: int, dtype: torch.dtype = torch.float32) -> Tensor:
        return torch.empty(rows, width, dtype=dtype)


FRESH = _Fresh()


def aligned_memory(size: int) -> NDArray[np.uint8]:
    """`size` bytes that begin at a cache line or, if there are several huge pages of them, at a huge page.

    Huge pages are requested from the system, because memory that an allocator reuses keeps its small pages.
    """
    huge = size > 2 * HUGE_PAGE and hasattr(mmap, "MADV_HUGEPAGE")
    multiple = HUGE_PAGE if huge else CACHE_LINE
    memory = _pages(size + multiple) if huge else np.empty(size + multiple, np.uint8)
    start = -memory.ctypes.data % multiple
    return memory[start : start + size]


def _pages(size: int) -> NDArray[np.uint8]:
    try:
        pages = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except OSError as error:
        raise MemoryError(f"the system cannot provide {size} bytes") from error
    with suppress(OSError):  # the system was built without huge pages
        pages.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(pages, dtype=np.uint8)


def huge_page_table(rows: int, width: int) -> Tensor:
    """An uninitialized (rows, width) float32 matrix in huge pages."""
    return torch.from_numpy(aligned_memory(4 * rows * width).view(np.float32)).view(rows, width)

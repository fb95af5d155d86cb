"""Large CPU buffers that one training step leaves to the next: fresh memory costs a page fault for every 4 KB."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from graphsage.kernels.memory import lines

SMALLEST = 1 << 16  # bytes: the allocator's own free lists serve smaller requests
SLACK = 1.5  # a buffer may be this many times larger than the request it serves
HEADROOM = 1.04  # a new buffer is this many times larger than its request: the next batch may need a little more
PATIENCE = 200  # an unused buffer is freed after this many requests, or up to twice as many


@dataclass(eq=False)
class _Buffer:
    memory: NDArray[np.uint8]
    size: int = 0
    """Bytes that were asked for."""
    last_taken: int = 0
    free: bool = False


class Buffers:
    """Uninitialized matrices. A matrix is the caller's until `give_back`, or until `next_step` frees all of them.

    Results that outlive a step must not be taken from here. GPU memory comes from torch's own allocator.
    """

    def __init__(self) -> None:
        self._buffers: list[_Buffer] = []
        self._clock = 0

    def take(self, rows: int, width: int, dtype: torch.dtype = torch.float32) -> Tensor:
        """An uninitialized (rows, width) on the CPU."""
        size = rows * width * dtype.itemsize
        if size < SMALLEST:
            return torch.empty(rows, width, dtype=dtype)
        return torch.from_numpy(self._fitting(size).memory[:size]).view(dtype).view(rows, width)

    def take_like(self, tensor: Tensor, rows: int | None = None, width: int | None = None) -> Tensor:
        """An uninitialized matrix of the device and dtype of `tensor`, by default also of its shape."""
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
        fitting = [b for b in self._buffers if b.free and size <= len(b.memory) <= SLACK * size]
        if fitting:
            best = min(fitting, key=lambda buffer: len(buffer.memory))
        else:
            best = _Buffer(lines(int(size * HEADROOM)))
            self._buffers.append(best)
        best.size, best.last_taken, best.free = size, self._clock, False
        return best


class _Fresh(Buffers):
    """Keeps nothing: every matrix is fresh memory that Python frees."""

    def take(self, rows: int, width: int, dtype: torch.dtype = torch.float32) -> Tensor:
        return torch.empty(rows, width, dtype=dtype)


FRESH = _Fresh()

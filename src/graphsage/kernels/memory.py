"""Large tables that are read at random: on a CPU in huge pages, which halve the time that gathering rows takes."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

LINE = 64  # bytes of a cache line, where a table begins: NumPy alone would begin 16 bytes after one


def table(rows: int, width: int, device: torch.device) -> Tensor:
    """An uninitialized (rows, width) float32."""
    if device.type != "cpu":
        return torch.empty(rows, width, device=device)
    return torch.from_numpy(lines(rows * width * 4)[: rows * width * 4].view(np.float32)).view(rows, width)


def lines(size: int) -> NDArray[np.uint8]:
    """At least `size` bytes. NumPy asks the system for huge pages, torch's allocator does not."""
    memory = np.empty(size + LINE, dtype=np.uint8)
    start = -memory.ctypes.data % LINE
    return memory[start : start + size]

"""Large tables that are read at random: on a CPU in huge pages, which halve the time that gathering rows takes."""

import numpy as np
import torch
from torch import Tensor


def table(rows: int, width: int, device: torch.device) -> Tensor:
    """An uninitialized (rows, width) float32. NumPy asks the system for huge pages, torch's allocator does not."""
    if device.type != "cpu":
        return torch.empty(rows, width, device=device)
    return torch.from_numpy(np.empty((rows, width), dtype=np.float32))

"""Where the feature table lies while it is read: in the GPU's memory if it fits, else pinned in the host's."""

import torch
from torch import Tensor

from graphsage.kernels.backend import on_triton

SHARE = 0.7  # of the GPU's free memory that features may take; the rest is for graph, activations and workspace
ALIGNMENT = 32  # bytes: a row that starts at a multiple is read in whole sectors


def place_features(features: Tensor | None, device: torch.device, name: str | None = None) -> Tensor | None:
    """`features` ready to be read from `device`, as the type called `name` (None: the one they have).

    A table that does not fit on a GPU stays in the host's memory, pinned, and kernels read it over the bus.
    """
    if features is None:
        return None
    kind: torch.dtype = features.dtype if name is None else getattr(torch, name)
    if device.type == "cpu":
        return features.to(kind)
    size = features.numel() * kind.itemsize
    free, _ = torch.cuda.mem_get_info(device)
    if size > SHARE * free and on_triton(torch.empty(0, device=device)):
        return features.to(kind).contiguous().pin_memory()
    step = max(1, ALIGNMENT // kind.itemsize)
    padded = torch.empty(len(features), -(-features.shape[1] // step) * step, dtype=kind, device=device)
    placed = padded[:, : features.shape[1]]
    placed.copy_(features)
    return placed

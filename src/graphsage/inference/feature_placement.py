"""Where the feature table lies while it is read: in the GPU's memory if it fits, else pinned in the host's."""

import torch
from torch import Tensor

from graphsage.graph.graph import Graph
from graphsage.kernels.backend import on_triton

SHARE = 0.7  # of the GPU's free memory that features may take; the rest is for graph, activations and workspace
ALIGNMENT = 32  # bytes: a row that starts at a multiple is read in whole sectors


def place(graph: Graph, device: torch.device, feature_type: str | None = None) -> Graph:
    """`graph` on `device`, with its features ready to be read from there, as `feature_type` (None: the one they have).

    A table that does not fit on a GPU stays in the host's memory, pinned, and kernels read it over the bus.
    """
    if graph.features is None:
        return graph.to(device)
    kind: torch.dtype = graph.features.dtype if feature_type is None else getattr(torch, feature_type)
    return graph.replace(features=None).to(device).replace(features=_placed(graph.features, device, kind))


def _placed(features: Tensor, device: torch.device, kind: torch.dtype) -> Tensor:
    if device.type == "cpu":
        return features.to(device, kind)
    size = features.numel() * kind.itemsize
    free, _ = torch.cuda.mem_get_info(device)
    if size > SHARE * free and on_triton(torch.empty(0, device=device)):
        return features.to("cpu", kind).contiguous().pin_memory()
    step = max(1, ALIGNMENT // kind.itemsize)
    padded = torch.empty(len(features), -(-features.shape[1] // step) * step, dtype=kind, device=device)
    placed = padded[:, : features.shape[1]]
    placed.copy_(features)
    return placed

"""Where the feature table lies while it is read: in the GPU's memory if it fits, else pinned in the host's."""

import torch
from torch import Tensor

from graphsage.errors import DataError, setting
from graphsage.graph.graph import Graph
from graphsage.kernels.backend import on_triton

SHARE = 0.7  # of the GPU's free memory that features may take; the rest is for graph, activations and workspace
CHECK_ROWS = 1 << 14  # rows checked at once
ALIGNMENT = 32  # bytes: a row that starts at a multiple is read in whole sectors


def place(graph: Graph, device: torch.device, feature_type: str | None = None) -> Graph:
    """`graph` on `device` with features of `feature_type`; too large tables stay in pinned host memory."""
    if graph.features is None:
        return graph.to(device)
    dtype: torch.dtype = graph.features.dtype if feature_type is None else getattr(torch, feature_type)
    return graph.replace(features=None).to(device).replace(features=_placed(graph.features, device, dtype))


def _check_range(features: Tensor) -> None:
    """Refuse numbers that float16 cannot hold."""
    largest = torch.finfo(torch.float16).max
    for start in range(0, len(features), CHECK_ROWS):
        rows = features[start : start + CHECK_ROWS]
        beyond = torch.nonzero((rows > largest) | (rows < -largest))
        if len(beyond):
            row, column = beyond[0].tolist()
            raise DataError(
                f"feature column {column} of node {start + row} is {float(rows[row, column]):g}, and float16 holds at "
                f"most {largest:g}; use {setting('feature_type', 'bfloat16')} or scale the column"
            )


def _placed(features: Tensor, device: torch.device, dtype: torch.dtype) -> Tensor:
    if dtype == torch.float16 != features.dtype:
        _check_range(features)
    if device.type == "cpu":
        return features.to(device, dtype)
    size = features.numel() * dtype.itemsize
    free, _ = torch.cuda.mem_get_info(device)
    if size > SHARE * free and on_triton(torch.empty(0, device=device)):
        return features.to("cpu", dtype).contiguous().pin_memory()
    step = max(1, ALIGNMENT // dtype.itemsize)
    padded = torch.empty(len(features), -(-features.shape[1] // step) * step, dtype=dtype, device=device)
    placed = padded[:, : features.shape[1]]
    placed.copy_(features)
    return placed

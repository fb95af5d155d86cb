"""CUDA graphs: steps that are captured once and replayed."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def captured(graph: torch.cuda.CUDAGraph, stream: torch.cuda.Stream | None = None) -> Iterator[None]:
    """Capture the block into `graph`. Products take a workspace for every stream, which torch keeps: it has to be taken
    from the graph's own memory and left to it, or it would hold gigabytes of that long after the graph is gone. All
    streams' are dropped, so that a graph must not use one that was taken outside of it."""
    torch._C._cuda_clearCublasWorkspaces()
    try:
        with torch.cuda.graph(graph, stream=stream):
            yield
    finally:
        torch._C._cuda_clearCublasWorkspaces()

"""Chooses the form of a kernel: Triton on a GPU if installed, C on a CPU if there is a compiler, otherwise torch.

GRAPHSAGE_TRITON=0 and GRAPHSAGE_COMPILE=0 disable the first two. TRITON_INTERPRET=1 runs the Triton form on a CPU,
slowly, for tests.
"""

import os
from functools import cache
from importlib.util import find_spec

import torch
from torch import Tensor

from graphsage.kernels.compiled.library import library


@cache
def has_triton() -> bool:
    return find_spec("triton") is not None and os.environ.get("GRAPHSAGE_TRITON", "1") != "0"


@cache
def interpreted() -> bool:
    return os.environ.get("TRITON_INTERPRET", "0") == "1"


enabled = True  # tests turn it off to compare the forms


def on_triton(tensor: Tensor) -> bool:
    """Whether kernels on `tensor` run in their Triton form."""
    return enabled and (tensor.is_cuda or interpreted()) and has_triton()


def on_compiled(*tensors: Tensor) -> bool:
    """Whether kernels on `tensors` run in their C form: all on a CPU, and float tensors contiguous float32."""
    fit = all(
        tensor.device.type == "cpu"
        and (not tensor.is_floating_point() or (tensor.dtype == torch.float32 and tensor.is_contiguous()))
        for tensor in tensors
    )
    return enabled and fit and not interpreted() and library() is not None

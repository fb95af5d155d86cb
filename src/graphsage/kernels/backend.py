"""Which form of a kernel runs: Triton on a GPU where it is installed, plain torch everywhere else.

GRAPHSAGE_TRITON=0 keeps to torch. With TRITON_INTERPRET=1 the Triton form also runs on a CPU, slowly: for tests.
"""

import os
from functools import cache
from importlib.util import find_spec

from torch import Tensor


@cache
def has_triton() -> bool:
    return find_spec("triton") is not None and os.environ.get("GRAPHSAGE_TRITON", "1") != "0"


@cache
def interpreted() -> bool:
    return os.environ.get("TRITON_INTERPRET", "0") == "1"


enabled = True  # tests turn it off to hold one form against the other


def on_triton(tensor: Tensor) -> bool:
    """Whether kernels on `tensor` run in their Triton form."""
    return enabled and (tensor.is_cuda or interpreted()) and has_triton()

"""Holding a kernel's fast form against its torch form."""

from collections.abc import Callable

import torch
from hypothesis import Phase, settings
from hypothesis import strategies as st
from torch import Tensor

from graphs import normal
from graphsage.kernels import backend

SIZES = st.integers(1, 6)
few = settings(max_examples=10, phases=[Phase.explicit, Phase.generate])  # the interpreter is slow, shrinking slower


def both(compute: Callable[[], object]) -> tuple[object, object]:
    """What the fast form returns, and what the torch form does."""
    fast = compute()
    backend.enabled = False
    try:
        return fast, compute()
    finally:
        backend.enabled = True


def same(fast: object, plain: object) -> None:
    if isinstance(fast, tuple):
        for a, b in zip(fast, plain, strict=True):  # type: ignore[call-overload]
            same(a, b)
        return
    torch.testing.assert_close(fast, plain, rtol=1e-4, atol=1e-5)


def gradients(compute: Callable[[Tensor], Tensor], h: Tensor, seed: int) -> tuple[Tensor, Tensor]:
    h = h.clone().requires_grad_()
    out = compute(h * 1.0)  # relu_l2norm may overwrite its input, which must not be a leaf
    torch.autograd.backward((out * normal(seed, *out.shape).to(out.device)).sum())
    assert h.grad is not None
    return out.detach(), h.grad

"""Frozen rows times learned weights: the large matrix products of a step. Rows may be padded for a GPU."""

import torch
from torch import Tensor

PADDING = 16  # bytes; products are fast if rows begin at a multiple


def padded(width: int, dtype: torch.dtype) -> int:
    """`width` rounded up to a multiple of 16 bytes."""
    step = PADDING // dtype.itemsize
    return -(-width // step) * step


def linear_without_input_grad(x: Tensor, weight: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
    """x (R, D) times weight (C, D) transposed, without a gradient for x: (R, C) of `dtype`.

    `x` may have more columns than `weight`, all zero, that pad its rows. It may be in half precision; then `weight` is
    rounded to it, and sums are float32.
    """
    out: Tensor = _LinearWithoutInputGrad.apply(x, weight, dtype)  # type: ignore[no-untyped-call]
    return out


class _LinearWithoutInputGrad(torch.autograd.Function):
    @staticmethod
    def forward(ctx: torch.autograd.function.FunctionCtx, x: Tensor, weight: Tensor, dtype: torch.dtype) -> Tensor:
        ctx.save_for_backward(x)
        ctx.width = weight.shape[1]  # type: ignore[attr-defined]
        wide = x.new_zeros(len(weight), x.shape[1])
        wide[:, : weight.shape[1]] = weight
        return _product(x, wide.t(), dtype)

    @staticmethod
    def backward(ctx: torch.autograd.function.FunctionCtx, *grads: Tensor) -> tuple[None, Tensor, None]:
        (x,) = ctx.saved_tensors  # type: ignore[attr-defined]
        grad = _product(grads[0].to(x.dtype).t(), x, torch.float32)
        return None, grad[:, : ctx.width], None  # type: ignore[attr-defined]


def _product(a: Tensor, b: Tensor, dtype: torch.dtype) -> Tensor:
    if a.dtype == dtype:
        return a @ b
    if a.is_cuda:
        return torch.mm(a, b, out_dtype=dtype)
    return (a.float() @ b.float()).to(dtype)

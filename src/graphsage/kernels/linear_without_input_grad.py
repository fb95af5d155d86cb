"""Frozen rows times learned weights: the large matrix products of a step, whose rows are padded for a GPU."""

import torch
from torch import Tensor

PADDING = 16  # bytes: products are fast where rows begin at a multiple


def padded(width: int, dtype: torch.dtype) -> int:
    """`width` rounded up to a multiple of 16 bytes."""
    step = PADDING // dtype.itemsize
    return -(-width // step) * step


def linear_without_input_grad(x: Tensor, weight: Tensor, kind: torch.dtype = torch.float32) -> Tensor:
    """x (R, D) times weight (C, D) transposed, without a gradient for x: (R, C) of type `kind`.

    `x` may be wider than `weight`, by columns of zeros that pad its rows, and of half precision: then both factors are,
    and sums are float32 all the same.
    """
    out: Tensor = _LinearWithoutInputGrad.apply(x, weight, kind)  # type: ignore[no-untyped-call]
    return out


class _LinearWithoutInputGrad(torch.autograd.Function):
    @staticmethod
    def forward(ctx: torch.autograd.function.FunctionCtx, x: Tensor, weight: Tensor, kind: torch.dtype) -> Tensor:
        ctx.save_for_backward(x)
        ctx.width = weight.shape[1]  # type: ignore[attr-defined]
        wide = x.new_zeros(len(weight), x.shape[1])
        wide[:, : weight.shape[1]] = weight
        return _product(x, wide.t(), kind)

    @staticmethod
    def backward(ctx: torch.autograd.function.FunctionCtx, *grads: Tensor) -> tuple[None, Tensor, None]:
        (x,) = ctx.saved_tensors  # type: ignore[attr-defined]
        grad = _product(grads[0].to(x.dtype).t(), x, torch.float32)
        return None, grad[:, : ctx.width], None  # type: ignore[attr-defined]


def _product(a: Tensor, b: Tensor, kind: torch.dtype) -> Tensor:
    if a.dtype == kind:
        return a @ b
    if a.is_cuda:
        return torch.mm(a, b, out_dtype=kind)
    return (a.float() @ b.float()).to(kind)

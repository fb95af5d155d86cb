"""Fast form of model/layer.py, the σ of line 5 and line 7: ReLU and scaling to length 1 in one operation.

`l2norm` is line 7 itself.
"""

import math

import torch
from torch import Tensor

from graphsage.kernels.backend import on_compiled, on_triton
from graphsage.kernels.buffers import FRESH, Buffers
from graphsage.kernels.compiled import bindings

EPSILON = 1e-12  # a zero vector stays zero: an isolated node with h = 0 must not become NaN
BLOCK_ROWS = 512  # rows that stay in cache from one pass to the next


def l2norm(x: Tensor) -> Tensor:
    """x (R, D) with every row scaled to length 1. A zero row stays zero; a row whose length overflows becomes NaN."""
    length: Tensor = torch.linalg.vector_norm(x, dim=1, keepdim=True)
    scaled: Tensor = x / length.clamp_min(EPSILON).masked_fill(length == math.inf, math.nan)
    return scaled


def relu_l2norm(x: Tensor, relu: bool, normalize: bool, buffers: Buffers = FRESH) -> Tensor:
    """x (R, D), rectified if `relu`, with every row scaled to length 1 if `normalize` (see `l2norm`).

    `x` may be overwritten, so it must be a fresh result that nothing else reads.
    """
    if not (relu or normalize):
        return x
    if not torch.is_grad_enabled() and not on_triton(x):
        _apply(x, relu, normalize)
        return x
    result: Tensor = _ReluL2Norm.apply(x, relu, normalize, buffers)  # type: ignore[no-untyped-call]
    return result


def linear_relu_l2norm(
    own: Tensor, aggregated: Tensor | None, weight: Tensor, relu: bool, normalize: bool, buffers: Buffers = FRESH
) -> Tensor:
    """relu_l2norm(concat(own, aggregated) W^T) on a CPU. `own` (R, D) has no gradient, and nothing is concatenated.

    The gradient of W is in memory of `buffers`: apply it before `next_step`.
    """
    result: Tensor = _LinearReluL2Norm.apply(own, aggregated, weight, relu, normalize, buffers)  # type: ignore[no-untyped-call]
    return result


def _apply(x: Tensor, relu: bool, normalize: bool) -> Tensor:
    """In place; returns the inverse of each row's length."""
    if on_compiled(x):
        return bindings.relu_l2norm(x, relu, normalize, EPSILON)
    inverse = x.new_empty(len(x))
    for start in range(0, len(x), BLOCK_ROWS):
        block, by = x[start : start + BLOCK_ROWS], inverse[start : start + BLOCK_ROWS]
        if relu:
            block.clamp_min_(0)
        if normalize:
            torch.linalg.vector_norm(block, dim=1, out=by).clamp_min_(EPSILON).reciprocal_()
            by.masked_fill_(by == 0, math.nan)
            block.mul_(by[:, None])
    return inverse


def _gradient(grad: Tensor, y: Tensor, inverse: Tensor, relu: bool, normalize: bool, out: Tensor) -> None:
    """Write the gradient of the input of `_apply` into `out`."""
    if on_compiled(grad, y, out):
        bindings.relu_l2norm_gradient(grad, y, inverse, relu, normalize, EPSILON, out)
        return
    for start in range(0, len(y), BLOCK_ROWS):
        rows = slice(start, start + BLOCK_ROWS)
        g, h, by, into = grad[rows], y[rows], inverse[rows], out[rows]
        if normalize:
            along = torch.mul(g, h, out=into).sum(dim=1)
            along *= -by * (by * EPSILON < 1)  # below epsilon the length is a constant
            torch.mul(g, by[:, None], out=into).addcmul_(h, along[:, None])
        else:
            into.copy_(g)
        if relu:
            torch.ops.aten.threshold_backward.grad_input(into, h, 0, grad_input=into)  # into *= h > 0, in one pass


class _ReluL2Norm(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: torch.autograd.function.FunctionCtx, x: Tensor, relu: bool, normalize: bool, buffers: Buffers
    ) -> Tensor:
        if on_triton(x):
            from graphsage.kernels.triton import relu_l2norm as fast

            y, inverse = fast.forward(x.contiguous(), relu, normalize, EPSILON)
        else:
            ctx.mark_dirty(x)
            y, inverse = x, _apply(x, relu, normalize)
        ctx.save_for_backward(y, inverse)
        ctx.settings = (relu, normalize, buffers)  # type: ignore[attr-defined]
        return y

    @staticmethod
    def backward(ctx: torch.autograd.function.FunctionCtx, *grads: Tensor) -> tuple[Tensor | None, ...]:
        y, inverse = ctx.saved_tensors  # type: ignore[attr-defined]
        relu, normalize, buffers = ctx.settings  # type: ignore[attr-defined]
        grad = grads[0].contiguous()
        if on_triton(y):
            from graphsage.kernels.triton import relu_l2norm as fast

            return fast.backward(grad, y, inverse, relu, normalize, EPSILON), None, None, None
        out = buffers.take_like(grad)
        _gradient(grad, y, inverse, relu, normalize, out)
        return out, None, None, None


class _LinearReluL2Norm(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: torch.autograd.function.FunctionCtx,
        own: Tensor,
        aggregated: Tensor | None,
        weight: Tensor,
        relu: bool,
        normalize: bool,
        buffers: Buffers,
    ) -> Tensor:
        dim = own.shape[1]
        y = torch.mm(own, weight[:, :dim].t(), out=buffers.take(len(own), len(weight), own.dtype))
        if aggregated is not None:
            y.addmm_(aggregated, weight[:, dim:].t())
        inverse = _apply(y, relu, normalize)
        ctx.save_for_backward(own, aggregated, weight, y, inverse)  # type: ignore[arg-type]
        ctx.settings = (relu, normalize, buffers)  # type: ignore[attr-defined]
        return y

    @staticmethod
    def backward(ctx: torch.autograd.function.FunctionCtx, *grads: Tensor) -> tuple[Tensor | None, ...]:
        own, aggregated, weight, y, inverse = ctx.saved_tensors  # type: ignore[attr-defined]
        relu, normalize, buffers = ctx.settings  # type: ignore[attr-defined]
        below, dim = buffers.take_like(y), own.shape[1]
        _gradient(grads[0].contiguous(), y, inverse, relu, normalize, below)
        weight_grad = buffers.take_like(weight)
        torch.mm(below.t(), own, out=weight_grad[:, :dim])
        aggregated_grad = None
        if aggregated is not None:
            torch.mm(below.t(), aggregated, out=weight_grad[:, dim:])
            aggregated_grad = torch.mm(below, weight[:, dim:], out=buffers.take_like(aggregated))
        buffers.give_back(below)  # `own` and `y` belong to the caller
        return None, aggregated_grad, weight_grad, None, None, None

"""ReLU and scaling to length 1 in one operation (Algorithm 1, the end of line 5, and line 7), with its gradient."""

import torch
from torch import Tensor

from graphsage.kernels import scratch
from graphsage.kernels.backend import on_compiled, on_triton
from graphsage.kernels.compiled import forms

EPSILON = 1e-12  # a zero vector stays zero: an isolated node with h = 0 must not become NaN
BLOCK_ROWS = 512  # so few rows stay in cache from one pass to the next


def relu_unit(x: Tensor, relu: bool, unit: bool) -> Tensor:
    """x (R, D), maybe rectified, maybe with every row scaled to length 1. `x` itself is overwritten where that saves
    a buffer, so it must be a fresh result that nothing else reads."""
    if not (relu or unit):
        return x
    if not torch.is_grad_enabled() and not on_triton(x):
        _apply(x, relu, unit)
        return x
    result: Tensor = _ReluUnit.apply(x, relu, unit)  # type: ignore[no-untyped-call]
    return result


def frozen_relu_unit(own: Tensor, aggregated: Tensor | None, weight: Tensor, relu: bool, unit: bool) -> Tensor:
    """relu_unit(concat(own, aggregated) W^T) on a CPU, where `own` (R, D) does not learn. Nothing is concatenated, and
    results and gradients lie in memory that steps use again."""
    result: Tensor = _FrozenReluUnit.apply(own, aggregated, weight, relu, unit)  # type: ignore[no-untyped-call]
    return result


def _apply(x: Tensor, relu: bool, unit: bool) -> Tensor:
    """In place; returns one over each row's length."""
    if on_compiled(x):
        return forms.relu_unit(x, relu, unit, EPSILON)
    inverse = x.new_empty(len(x))
    for start in range(0, len(x), BLOCK_ROWS):
        block, by = x[start : start + BLOCK_ROWS], inverse[start : start + BLOCK_ROWS]
        if relu:
            block.clamp_min_(0)
        if unit:
            torch.linalg.vector_norm(block, dim=1, out=by).clamp_min_(EPSILON).reciprocal_()
            block.mul_(by[:, None])
    return inverse


def _gradient(grad: Tensor, y: Tensor, inverse: Tensor, relu: bool, unit: bool, out: Tensor) -> None:
    """Write the gradient of what `_apply` was given into `out`."""
    if on_compiled(grad, y, out):
        forms.relu_unit_gradient(grad, y, inverse, relu, unit, EPSILON, out)
        return
    for start in range(0, len(y), BLOCK_ROWS):
        rows = slice(start, start + BLOCK_ROWS)
        g, h, by, into = grad[rows], y[rows], inverse[rows], out[rows]
        if unit:
            along = torch.mul(g, h, out=into).sum(dim=1)
            along *= -by * (by * EPSILON < 1)  # below epsilon the length is a constant
            torch.mul(g, by[:, None], out=into).addcmul_(h, along[:, None])
        else:
            into.copy_(g)
        if relu:
            torch.ops.aten.threshold_backward.grad_input(into, h, 0, grad_input=into)  # into *= h > 0, in one pass


class _ReluUnit(torch.autograd.Function):
    @staticmethod
    def forward(ctx: torch.autograd.function.FunctionCtx, x: Tensor, relu: bool, unit: bool) -> Tensor:
        if on_triton(x):
            from graphsage.kernels.triton import unit as fast

            y, inverse = fast.forward(x.contiguous(), relu, unit, EPSILON)
        else:
            ctx.mark_dirty(x)
            y, inverse = x, _apply(x, relu, unit)
        ctx.save_for_backward(y, inverse)
        ctx.flags = (relu, unit)  # type: ignore[attr-defined]
        return y

    @staticmethod
    def backward(ctx: torch.autograd.function.FunctionCtx, *grads: Tensor) -> tuple[Tensor, None, None]:
        y, inverse = ctx.saved_tensors  # type: ignore[attr-defined]
        relu, unit = ctx.flags  # type: ignore[attr-defined]
        grad = grads[0].contiguous()
        if on_triton(y):
            from graphsage.kernels.triton import unit as fast

            return fast.backward(grad, y, inverse, relu, unit, EPSILON), None, None
        out = scratch.take_like(grad)
        _gradient(grad, y, inverse, relu, unit, out)
        return out, None, None


class _FrozenReluUnit(torch.autograd.Function):
    @staticmethod
    def forward(ctx: torch.autograd.function.FunctionCtx, own: Tensor, aggregated: Tensor | None, weight: Tensor,
                relu: bool, unit: bool) -> Tensor:  # fmt: skip
        dim = own.shape[1]
        y = torch.mm(own, weight[:, :dim].t(), out=scratch.take(len(own), len(weight), own.dtype))
        if aggregated is not None:
            y.addmm_(aggregated, weight[:, dim:].t())
        inverse = _apply(y, relu, unit)
        ctx.save_for_backward(own, aggregated, weight, y, inverse)  # type: ignore[arg-type]
        ctx.flags = (relu, unit)  # type: ignore[attr-defined]
        return y

    @staticmethod
    def backward(ctx: torch.autograd.function.FunctionCtx, *grads: Tensor) -> tuple[Tensor | None, ...]:
        own, aggregated, weight, y, inverse = ctx.saved_tensors  # type: ignore[attr-defined]
        relu, unit = ctx.flags  # type: ignore[attr-defined]
        below, dim = scratch.take_like(y), own.shape[1]
        _gradient(grads[0].contiguous(), y, inverse, relu, unit, below)
        weight_grad = scratch.take_like(weight)
        torch.mm(below.t(), own, out=weight_grad[:, :dim])
        if aggregated is None:
            return None, None, weight_grad, None, None
        torch.mm(below.t(), aggregated, out=weight_grad[:, dim:])
        aggregated_grad = torch.mm(below, weight[:, dim:], out=scratch.take_like(aggregated))
        return None, aggregated_grad, weight_grad, None, None

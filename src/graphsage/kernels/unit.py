"""ReLU and scaling to length 1 in one operation (Algorithm 1, the end of line 5, and line 7), with its gradient."""

import torch
from torch import Tensor

from graphsage.kernels.backend import on_triton

EPSILON = 1e-12  # a zero vector stays zero: an isolated node with h = 0 must not become NaN
BLOCK_ROWS = 512  # so few rows stay in cache from one pass to the next


def relu_unit(x: Tensor, relu: bool, unit: bool) -> Tensor:
    """x (R, D), maybe rectified, maybe with every row scaled to length 1. `x` itself is overwritten where that saves
    a buffer, so it must be a fresh result that nothing else reads."""
    if not (relu or unit):
        return x
    result: Tensor = _ReluUnit.apply(x, relu, unit)  # type: ignore[no-untyped-call]
    return result


class _ReluUnit(torch.autograd.Function):
    @staticmethod
    def forward(ctx: torch.autograd.function.FunctionCtx, x: Tensor, relu: bool, unit: bool) -> Tensor:
        if on_triton(x):
            from graphsage.kernels.triton import unit as fast

            y, inverse = fast.forward(x.contiguous(), relu, unit, EPSILON)
        else:
            ctx.mark_dirty(x)
            y, inverse = x, x.new_empty(len(x))
            for start in range(0, len(x), BLOCK_ROWS):
                block, by = x[start : start + BLOCK_ROWS], inverse[start : start + BLOCK_ROWS]
                if relu:
                    block.clamp_min_(0)
                if unit:
                    torch.linalg.vector_norm(block, dim=1, out=by).clamp_min_(EPSILON).reciprocal_()
                    block.mul_(by[:, None])
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
        out = torch.empty_like(grad)
        for start in range(0, len(y), BLOCK_ROWS):
            rows = slice(start, start + BLOCK_ROWS)
            g, h, by, into = grad[rows], y[rows], inverse[rows], out[rows]
            if unit:
                along = torch.linalg.vecdot(g, h)
                along *= by * EPSILON < 1  # below epsilon the length is a constant
                torch.addcmul(g, h, along[:, None], value=-1, out=into)
                into *= by[:, None]
            else:
                into.copy_(g)
            if relu:
                torch.ops.aten.threshold_backward.grad_input(into, h, 0, grad_input=into)  # into *= h > 0, in one pass
        return out, None, None

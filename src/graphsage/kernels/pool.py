"""Fast form of model/aggregators/pool.py, Equation 3, on a CPU for frozen rows: max of ReLU(W x_u + b), with gradients.

Each distinct row is multiplied once. The gradient of W needs no second product of that size: one neighbor, the winner,
determines each column of a row, so the gradient is a weighted sum of the winners' rows.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from graphsage.kernels.backend import on_compiled
from graphsage.kernels.buffers import FRESH, Buffers
from graphsage.kernels.compiled import bindings
from graphsage.kernels.gather import gathered_maximum

BLOCK_ROWS = 32  # rows whose neighbors stay in cache while every column selects its winners
PIECE = 320  # columns summed at once: as many as fit the registers


def frozen_relu_max(
    x: Tensor, weight: Tensor, bias: Tensor, index: Tensor, present: Tensor, buffers: Buffers = FRESH
) -> Tensor:
    """x (M, D), weight (C, D), bias (C,), index (R, S), present (R,) -> (R, C), zero if a row is not present."""
    best: Tensor = _FrozenReluMax.apply(x, weight, bias, index, present, buffers)  # type: ignore[no-untyped-call]
    return best


class _FrozenReluMax(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: torch.autograd.function.FunctionCtx,
        x: Tensor,
        weight: Tensor,
        bias: Tensor,
        index: Tensor,
        present: Tensor,
        buffers: Buffers,
    ) -> Tensor:
        table = torch.mm(x, weight.t(), out=buffers.take(len(x), len(weight), x.dtype))
        best, winner = gathered_maximum(table, index, buffers)
        buffers.give_back(table)
        best.add_(bias).clamp_min_(0).mul_(present[:, None])  # bias and ReLU commute with the maximum
        ctx.save_for_backward(x, index, best, winner)
        ctx.buffers = buffers  # type: ignore[attr-defined]
        return best

    @staticmethod
    def backward(ctx: torch.autograd.function.FunctionCtx, *grads: Tensor) -> tuple[Tensor | None, ...]:
        x, index, best, winner = ctx.saved_tensors  # type: ignore[attr-defined]
        buffers: Buffers = ctx.buffers  # type: ignore[attr-defined]
        grad = torch.ops.aten.threshold_backward.grad_input(  # grad * (best > 0), in one pass
            grads[0], best, 0, grad_input=buffers.take_like(grads[0])
        )
        weight_grad, bias_grad = winners_sum(grad, x, index, winner, buffers), grad.sum(dim=0)
        buffers.give_back(grad)
        return None, weight_grad, bias_grad, None, None, None


def winners_sum(grad: Tensor, x: Tensor, index: Tensor, winner: Tensor, buffers: Buffers = FRESH) -> Tensor:
    """Sum over rows r of grad[r, c] times row index[r, winner[r, c]] of x, for each column c: (C, D)."""
    if on_compiled(grad, x):
        return bindings.winners_sum(grad, x, index, winner, buffers)
    columns, dim = grad.shape[1], x.shape[1]
    pieces = next((count for count in range(1, 9) if dim % count == 0 and dim // count <= PIECE), 1)
    parts = x.view(-1, dim // pieces)  # row m of x is the rows m * pieces, m * pieces + 1, ... of this
    total = x.new_zeros(pieces, columns, dim // pieces)
    for start in range(0, len(grad), BLOCK_ROWS):
        rows = slice(start, start + BLOCK_ROWS)
        place = index[rows].gather(1, winner[rows].long()).t().contiguous().mul_(pieces)
        weights = grad[rows].t().contiguous()
        for piece in range(pieces):
            total[piece] += F.embedding_bag(place, parts, per_sample_weights=weights, mode="sum")
            place += 1
    return total.transpose(0, 1).reshape(columns, dim)

"""Gather + reduce over a table that may learn: mean, sum and max over neighbors' rows, never an (R, S, D) tensor."""

import torch
import torch.nn.functional as F
from torch import Tensor

from graphsage.kernels.backend import on_compiled, on_triton
from graphsage.kernels.compiled import forms
from graphsage.kernels.maximum import consecutive_maximum, gathered_maximum
from graphsage.kernels.neighborhood import Neighborhood

BLOCK_ROWS = 512  # whose gradients are scattered at once


def gather_mean(table: Tensor, neighborhood: Neighborhood) -> Tensor:
    """(M, D), R rows -> (R, D): the mean of each row's neighbors, zero where there are none."""
    if neighborhood.start is not None:
        return _block(table, neighborhood).mean(dim=1) * neighborhood.present[:, None]
    return _bag(table, neighborhood, "mean")


def gather_sum(table: Tensor, neighborhood: Neighborhood) -> Tensor:
    """(M, D), R rows -> (R, D): the sum of each row's neighbors, zero where there are none."""
    if neighborhood.start is not None:
        return _block(table, neighborhood).sum(dim=1) * neighborhood.present[:, None]
    return _bag(table, neighborhood, "sum")


def gather_max(table: Tensor, neighborhood: Neighborhood) -> Tensor:
    """(M, D), R rows -> (R, D): the elementwise maximum over each row's neighbors, zero where there are none."""
    if neighborhood.start is not None:
        largest: Tensor = _BlockMax.apply(_block(table, neighborhood))  # type: ignore[no-untyped-call]
        return largest * neighborhood.present[:, None]
    if neighborhood.offsets is not None:
        if _frozen(table) and on_triton(table):
            return _reduced(table, neighborhood, "max")
        if _frozen(table) and on_compiled(table):
            return forms.reduce_rows(table, neighborhood, "max")
        return F.embedding_bag(neighborhood.index, table, neighborhood.offsets, mode="max", include_last_offset=True)
    best: Tensor = _GatherMax.apply(table, neighborhood.index)  # type: ignore[no-untyped-call]
    return best * neighborhood.present[:, None]


def gather_relu_max(table: Tensor, neighborhood: Neighborhood, bias: Tensor) -> Tensor:
    """max over neighbors of ReLU(row + bias), zero where there are none. Both commute with the maximum, so they are
    applied to its result: Equation 3 on W_pool h."""
    if neighborhood.start is not None and on_triton(table):
        n = neighborhood
        best: Tensor = _ReluMax.apply(table, bias, n.present, n.start, n.size)  # type: ignore[no-untyped-call]
        return best
    return torch.relu(gather_max(table, neighborhood) + bias) * neighborhood.present[:, None]


def _block(table: Tensor, neighborhood: Neighborhood) -> Tensor:
    assert neighborhood.start is not None
    count = neighborhood.num_rows * neighborhood.size
    block = table[neighborhood.start : neighborhood.start + count]
    return block.view(neighborhood.num_rows, neighborhood.size, table.shape[1])


def _bag(table: Tensor, neighborhood: Neighborhood, mode: str) -> Tensor:
    if neighborhood.offsets is not None:
        if _frozen(table) and on_compiled(table):
            return forms.reduce_rows(table, neighborhood, mode)
        if _frozen(table) and on_triton(table):
            mean = _reduced(table, neighborhood, "mean")
            return mean if mode == "mean" else mean * neighborhood.counts[:, None]
        return F.embedding_bag(neighborhood.index, table, neighborhood.offsets, mode=mode, include_last_offset=True)
    # Masking afterwards costs half of what embedding_bag's own padding_idx does.
    return F.embedding_bag(neighborhood.index, table, mode=mode) * neighborhood.present[:, None]


def _frozen(table: Tensor) -> bool:
    return not (table.requires_grad and torch.is_grad_enabled())


def _reduced(table: Tensor, neighborhood: Neighborhood, mode: str) -> Tensor:
    from graphsage.kernels.triton import gather as fast

    assert neighborhood.offsets is not None
    return fast.reduce(table, neighborhood.index, neighborhood.offsets, mode)


class _GatherMax(torch.autograd.Function):
    """The gradient goes to the first neighbor that reached the maximum."""

    @staticmethod
    def forward(ctx: torch.autograd.function.FunctionCtx, table: Tensor, index: Tensor) -> Tensor:
        best, winner = gathered_maximum(table, index)
        ctx.save_for_backward(winner, index)
        ctx.table_shape = table.shape  # type: ignore[attr-defined]
        return best

    @staticmethod
    def backward(ctx: torch.autograd.function.FunctionCtx, *grads: Tensor) -> tuple[Tensor, None]:
        winner, index = ctx.saved_tensors  # type: ignore[attr-defined]
        grad = grads[0].contiguous()
        table_grad = grad.new_zeros(ctx.table_shape)  # type: ignore[attr-defined]
        for start in range(0, len(index), BLOCK_ROWS):
            rows = slice(start, start + BLOCK_ROWS)
            table_grad.scatter_add_(0, index[rows].gather(1, winner[rows].long()), grad[rows])
        return table_grad, None


class _BlockMax(torch.autograd.Function):
    """The same over neighbors that lie one after the other, block (R, S, D)."""

    @staticmethod
    def forward(ctx: torch.autograd.function.FunctionCtx, block: Tensor) -> Tensor:
        best, winner = consecutive_maximum(block)
        ctx.save_for_backward(winner)
        ctx.size = block.shape[1]  # type: ignore[attr-defined]
        return best

    @staticmethod
    def backward(ctx: torch.autograd.function.FunctionCtx, *grads: Tensor) -> Tensor:
        (winner,) = ctx.saved_tensors  # type: ignore[attr-defined]
        rows, dim = winner.shape
        out = grads[0].new_zeros(rows, ctx.size, dim)  # type: ignore[attr-defined]
        return out.scatter_(1, winner.long()[:, None], grads[0][:, None])


class _ReluMax(torch.autograd.Function):
    """Over consecutive rows, in one Triton kernel forward and one backward."""

    @staticmethod
    def forward(ctx: torch.autograd.function.FunctionCtx, h: Tensor, bias: Tensor, present: Tensor, start: int,
                size: int) -> Tensor:  # fmt: skip
        from graphsage.kernels.triton import pool as fast

        best, winner = fast.forward(h.contiguous(), bias, present, start, size)
        ctx.save_for_backward(winner)
        ctx.about = (start, size, len(h), h.dtype)  # type: ignore[attr-defined]
        return best

    @staticmethod
    def backward(ctx: torch.autograd.function.FunctionCtx, *grads: Tensor) -> tuple[Tensor | None, ...]:
        from graphsage.kernels.triton import pool as fast

        (winner,) = ctx.saved_tensors  # type: ignore[attr-defined]
        start, size, height, kind = ctx.about  # type: ignore[attr-defined]
        grad = grads[0].contiguous()
        return (
            fast.backward(grad, winner, start, size, height, kind),
            (grad * (winner >= 0)).sum(dim=0),
            None,
            None,
            None,
        )

"""Gather + reduce: mean, sum and max over neighbors' rows, never holding the (R, S, D) tensor of a table gather."""

import torch
import torch.nn.functional as F
from torch import Tensor

from graphsage.kernels.neighborhood import Neighborhood


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
        return _block(table, neighborhood).amax(dim=1) * neighborhood.present[:, None]
    if neighborhood.offsets is not None:
        return F.embedding_bag(neighborhood.index, table, neighborhood.offsets, mode="max", include_last_offset=True)
    best: Tensor = _GatherMax.apply(table, neighborhood.index)  # type: ignore[no-untyped-call]
    return best * neighborhood.present[:, None]


def _block(table: Tensor, neighborhood: Neighborhood) -> Tensor:
    assert neighborhood.start is not None
    count = neighborhood.num_rows * neighborhood.size
    block = table[neighborhood.start : neighborhood.start + count]
    return block.view(neighborhood.num_rows, neighborhood.size, table.shape[1])


def _bag(table: Tensor, neighborhood: Neighborhood, mode: str) -> Tensor:
    if neighborhood.offsets is not None:
        return F.embedding_bag(neighborhood.index, table, neighborhood.offsets, mode=mode, include_last_offset=True)
    # Masking afterwards costs half of what embedding_bag's own padding_idx does.
    return F.embedding_bag(neighborhood.index, table, mode=mode) * neighborhood.present[:, None]


class _GatherMax(torch.autograd.Function):
    """Running maximum over S gathers; the gradient goes to the first neighbor that reached it."""

    @staticmethod
    def forward(ctx: torch.autograd.function.FunctionCtx, table: Tensor, index: Tensor) -> Tensor:
        best = table.index_select(0, index[:, 0])
        winner = index[:, 0, None].expand_as(best).contiguous()
        for slot in range(1, index.shape[1]):
            rows = index[:, slot]
            candidate = table.index_select(0, rows)
            wins = candidate > best
            best = torch.where(wins, candidate, best)
            winner = torch.where(wins, rows[:, None], winner)
        ctx.save_for_backward(winner)
        ctx.table_shape = table.shape  # type: ignore[attr-defined]
        return best

    @staticmethod
    def backward(ctx: torch.autograd.function.FunctionCtx, *grads: Tensor) -> tuple[Tensor, None]:
        (winner,) = ctx.saved_tensors  # type: ignore[attr-defined]
        table_grad = grads[0].new_zeros(ctx.table_shape)  # type: ignore[attr-defined]
        return table_grad.scatter_add_(0, winner, grads[0].contiguous()), None

"""The reductions of AGGREGATE, line 4: mean, sum and max over neighbors' rows, never an (R, S, D) tensor.

`gather_relu_max` is the fast form of model/aggregators/pool.py, Equation 3.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from graphsage.kernels.backend import on_compiled, on_triton
from graphsage.kernels.buffers import FRESH, Buffers
from graphsage.kernels.compiled import bindings
from graphsage.kernels.neighborhood import Consecutive, Neighborhood, Ragged

BLOCK_ROWS = 512  # rows whose gradients are scattered at once
MAXIMUM_ROWS = 128  # rows whose candidates, winners and maximum stay in cache


def gather_mean(table: Tensor, hood: Neighborhood, buffers: Buffers = FRESH) -> Tensor:
    """(M, D), R rows -> (R, D): the mean of each row's neighbors, zero if it has none."""
    return _averaged(table, hood, "mean", buffers)


def gather_sum(table: Tensor, hood: Neighborhood, buffers: Buffers = FRESH) -> Tensor:
    """(M, D), R rows -> (R, D): the sum of each row's neighbors, zero if it has none."""
    return _averaged(table, hood, "sum", buffers)


def gather_max(table: Tensor, hood: Neighborhood, buffers: Buffers = FRESH) -> Tensor:
    """(M, D), R rows -> (R, D): the elementwise maximum over each row's neighbors, zero if it has none."""
    if isinstance(hood, Ragged):
        return _reduced(table, hood, "max", buffers)
    best: Tensor = _GatherMax.apply(table, hood.index, buffers)  # type: ignore[no-untyped-call]
    return best * hood.present[:, None]


def gather_relu_max(table: Tensor, hood: Neighborhood, bias: Tensor, buffers: Buffers = FRESH) -> Tensor:
    """max over neighbors of ReLU(row + bias), zero if there are none. Both commute with the maximum, so they are
    applied to its result: Equation 3 on W_pool h."""
    if isinstance(hood, Consecutive) and on_triton(table):
        best: Tensor = _ReluMax.apply(table, bias, hood.present, hood.start, hood.size)  # type: ignore[no-untyped-call]
        return best
    return torch.relu(gather_max(table, hood, buffers) + bias) * hood.present[:, None]


def _averaged(table: Tensor, hood: Neighborhood, mode: str, buffers: Buffers) -> Tensor:
    if hood.weight is not None:
        assert mode == "mean"
        return weighted_sum(table, hood)
    if isinstance(hood, Ragged):
        return _reduced(table, hood, mode, buffers)
    if isinstance(hood, Consecutive):
        block = table[hood.start : hood.start + hood.num_rows * hood.size].view(hood.num_rows, hood.size, -1)
        total = block.mean(dim=1) if mode == "mean" else block.sum(dim=1)
    else:
        total = F.embedding_bag(hood.index, table, mode=mode)
    # Masking afterwards costs half as much as embedding_bag's own padding_idx.
    return total * hood.present[:, None]


def weighted_sum(table: Tensor, hood: Neighborhood) -> Tensor:
    """The sum of each row's neighbors times their weights, which are shares: the weighted mean."""
    weight = hood.weight
    assert weight is not None
    if isinstance(hood, Consecutive):
        block = table[hood.start : hood.start + hood.num_rows * hood.size].view(hood.num_rows, hood.size, -1)
        return torch.bmm(weight.to(block.dtype)[:, None], block).squeeze(1)
    if table.element_size() < 4:  # embedding_bag sums in the type of the table
        return weighted_rows(table.index_select(0, hood.index.flatten()).float(), hood, weight)
    weight, index = weight.to(table.dtype), hood.index
    if isinstance(hood, Ragged):
        offsets = hood.offsets.to(index.dtype)
        return F.embedding_bag(index, table, offsets, mode="sum", per_sample_weights=weight, include_last_offset=True)
    return F.embedding_bag(index, table, mode="sum", per_sample_weights=weight)


def weighted_rows(rows: Tensor, hood: Neighborhood, weight: Tensor) -> Tensor:
    """`weighted_sum` of rows (E, D) that were gathered."""
    if isinstance(hood, Ragged):
        owners = torch.repeat_interleave(torch.arange(hood.num_rows, device=rows.device), hood.counts)
        return rows.new_zeros(hood.num_rows, rows.shape[1]).index_add(0, owners, rows * weight[:, None])
    return torch.bmm(weight[:, None], rows.view(*weight.shape, -1)).squeeze(1)


def gathered_maximum(table: Tensor, index: Tensor, buffers: Buffers) -> tuple[Tensor, Tensor]:
    """table (M, D), index (R, S) -> the maxima (R, D), and the slots of the first neighbors that have them (R, D)."""
    if on_compiled(table, index):
        return bindings.gathered_maximum(table, index, buffers)
    (count, size), width, on_cpu = index.shape, table.shape[1], table.device.type == "cpu"
    best = buffers.take_like(table, rows=count)
    winner = buffers.take(count, width, torch.int16) if on_cpu else best.new_empty(count, width, dtype=torch.int16)
    slots, step = index.t().contiguous(), min(MAXIMUM_ROWS, count) if on_cpu else count
    spares = [table.new_empty(step, width) for _ in range(3)]
    for start in range(0, count, max(step, 1)):
        rows = slice(start, min(start + step, count))
        here = best[rows]
        candidate, which, won = (spare[: len(here)] for spare in spares)
        which.zero_()
        torch.index_select(table, 0, slots[0, rows], out=here)
        for slot in range(1, size):
            torch.index_select(table, 0, slots[slot, rows], out=candidate)
            torch.gt(candidate, here, out=won)  # as floats: six times as fast as booleans
            torch.maximum(which, won.mul_(slot), out=which)
            torch.maximum(here, candidate, out=here)
        winner[rows] = which
    return best, winner


def _reduced(table: Tensor, hood: Ragged, mode: str, buffers: Buffers) -> Tensor:
    frozen = not (table.requires_grad and torch.is_grad_enabled())
    if frozen and on_compiled(table):
        return bindings.reduce_rows(table, hood.index, hood.offsets, mode, buffers)
    if frozen and on_triton(table):
        from graphsage.kernels.triton import gather as fast

        found = fast.reduce(table, hood.index, hood.offsets, "max" if mode == "max" else "mean")
        return found * hood.counts[:, None] if mode == "sum" else found
    return F.embedding_bag(hood.index, table, hood.offsets, mode=mode, include_last_offset=True)


class _GatherMax(torch.autograd.Function):
    """The gradient goes to the first neighbor that reached the maximum."""

    @staticmethod
    def forward(ctx: torch.autograd.function.FunctionCtx, table: Tensor, index: Tensor, buffers: Buffers) -> Tensor:
        best, winner = gathered_maximum(table, index, buffers)
        ctx.save_for_backward(winner, index)
        ctx.table_shape = table.shape  # type: ignore[attr-defined]
        return best

    @staticmethod
    def backward(ctx: torch.autograd.function.FunctionCtx, *grads: Tensor) -> tuple[Tensor, None, None]:
        winner, index = ctx.saved_tensors  # type: ignore[attr-defined]
        grad = grads[0].contiguous()
        table_grad = grad.new_zeros(ctx.table_shape)  # type: ignore[attr-defined]
        for start in range(0, len(index), BLOCK_ROWS):
            rows = slice(start, start + BLOCK_ROWS)
            table_grad.scatter_add_(0, index[rows].gather(1, winner[rows].long()), grad[rows])
        return table_grad, None, None


class _ReluMax(torch.autograd.Function):
    """Over consecutive rows, in one Triton kernel forward and one backward."""

    @staticmethod
    def forward(
        ctx: torch.autograd.function.FunctionCtx, h: Tensor, bias: Tensor, present: Tensor, start: int, size: int
    ) -> Tensor:
        from graphsage.kernels.triton import pool as fast

        best, winner = fast.forward(h.contiguous(), bias, present, start, size)
        ctx.save_for_backward(winner)
        ctx.settings = (start, size, len(h), h.dtype)  # type: ignore[attr-defined]
        return best

    @staticmethod
    def backward(ctx: torch.autograd.function.FunctionCtx, *grads: Tensor) -> tuple[Tensor | None, ...]:
        from graphsage.kernels.triton import pool as fast

        (winner,) = ctx.saved_tensors  # type: ignore[attr-defined]
        start, size, height, dtype = ctx.settings  # type: ignore[attr-defined]
        grad = grads[0].contiguous()
        return (
            fast.backward(grad, winner, start, size, height, dtype),
            (grad * (winner >= 0)).sum(dim=0),
            None,
            None,
            None,
        )

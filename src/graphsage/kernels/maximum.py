"""The maximum over each row's neighbors, and which neighbor reached it first: the plain form of every max kernel."""

from collections.abc import Callable

import torch
from torch import Tensor

from graphsage.kernels.backend import on_compiled
from graphsage.kernels.buffers import Buffers
from graphsage.kernels.compiled import bindings

BLOCK_ROWS = 128  # candidates, winners and result of so few rows stay in cache


def gathered_maximum(table: Tensor, index: Tensor, buffers: Buffers) -> tuple[Tensor, Tensor]:
    """table (M, D), index (R, S) -> best (R, D), and the slot of the first neighbor that has it, (R, D)."""
    if on_compiled(table, index):
        return bindings.gathered_maximum(table, index, buffers)
    slots = index.t().contiguous()

    def read(slot: int, rows: slice, out: Tensor) -> None:
        torch.index_select(table, 0, slots[slot, rows], out=out)

    return _running(read, len(index), index.shape[1], table, buffers)


def consecutive_maximum(block: Tensor, buffers: Buffers) -> tuple[Tensor, Tensor]:
    """The same for neighbors that lie one after the other: block (R, S, D)."""

    def read(slot: int, rows: slice, out: Tensor) -> None:
        out.copy_(block[rows, slot])

    return _running(read, len(block), block.shape[1], block[:, 0], buffers)


def _running(
    read: Callable[[int, slice, Tensor], None], count: int, size: int, like: Tensor, buffers: Buffers
) -> tuple[Tensor, Tensor]:
    on_cpu, width = like.device.type == "cpu", like.shape[1]
    if on_cpu:
        best, winner = buffers.take(count, width, like.dtype), buffers.take(count, width, torch.int16)
    else:
        best, winner = like.new_empty(count, width), like.new_empty(count, width, dtype=torch.int16)
    step = min(BLOCK_ROWS, count) if on_cpu else count
    spares = [torch.empty(step, width, dtype=like.dtype, device=like.device) for _ in range(3)]
    for start in range(0, count, max(step, 1)):
        rows = slice(start, min(start + step, count))
        here = best[rows]
        candidate, which, won = (spare[: len(here)] for spare in spares)
        which.zero_()
        read(0, rows, here)
        for slot in range(1, size):
            read(slot, rows, candidate)
            torch.gt(candidate, here, out=won)  # as floats: six times as fast as booleans
            torch.maximum(which, won.mul_(slot), out=which)
            torch.maximum(here, candidate, out=here)
        winner[rows] = which
    return best, winner

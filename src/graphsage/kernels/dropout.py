"""Dropout whose draws depend only on each row's key."""

import torch
from torch import Tensor

from graphsage.kernels.backend import on_compiled, on_triton
from graphsage.kernels.buffers import FRESH, Buffers
from graphsage.kernels.compiled import bindings
from graphsage.kernels.random import derive, key_step

BLOCK_ROWS = 256  # rows whose 64-bit draws stay in cache


def dropout(h: Tensor, p: float, keys: Tensor, counter: int, buffers: Buffers = FRESH) -> Tensor:
    """Zero each entry of `h` (R, D) with probability p and scale the rest by 1 / (1 - p).

    Draws are those of key `counter` below each row's key.
    """
    result: Tensor = _Dropout.apply(h, p, keys, counter, buffers)  # type: ignore[no-untyped-call]
    return result


class _Dropout(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: torch.autograd.function.FunctionCtx, h: Tensor, p: float, keys: Tensor, counter: int, buffers: Buffers
    ) -> Tensor:
        ctx.save_for_backward(keys)
        ctx.settings = (p, counter, buffers)  # type: ignore[attr-defined]
        return _drop(h, p, keys, counter, buffers)

    @staticmethod
    def backward(ctx: torch.autograd.function.FunctionCtx, *grads: Tensor) -> tuple[Tensor | None, ...]:
        (keys,) = ctx.saved_tensors  # type: ignore[attr-defined]
        p, counter, buffers = ctx.settings  # type: ignore[attr-defined]
        return _drop(grads[0], p, keys, counter, buffers), None, None, None, None


def _drop(h: Tensor, p: float, keys: Tensor, counter: int, buffers: Buffers) -> Tensor:
    """Linear in h, hence also its own gradient."""
    threshold, factor = int(p * 2**32), 1.0 / (1.0 - p)
    if on_triton(h):
        from graphsage.kernels.triton import dropout as fast

        return fast.dropout(h, threshold, factor, keys, key_step(counter))
    if on_compiled(h, keys):
        return bindings.dropout(h, threshold, factor, keys, key_step(counter), buffers)
    keys = derive(keys, counter)
    columns = torch.arange(h.shape[1], device=h.device)[None]
    out, zero = torch.empty_like(h), h.new_zeros(())
    for rows in range(0, len(h), BLOCK_ROWS):
        block = slice(rows, rows + BLOCK_ROWS)
        keep = ((derive(keys[block, None], columns) >> 32) & 0xFFFFFFFF) >= threshold
        torch.where(keep, h[block], zero, out=out[block]).mul_(factor)  # zero also where h is not finite
    return out

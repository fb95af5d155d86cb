"""The input of one layer for rows whose neighbors were drawn: each row's own vector and its neighbors' mean, joined.

`mixed` is Equation 2: one mean over the row and its neighbors, (R, D). Otherwise the two lie side by side, (R, 2D), as
line 5 of Algorithm 1 wants them: concat(h_v, h_N(v)), zero where there is no neighbor.
"""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from graphsage.kernels import scratch
from graphsage.kernels.backend import on_compiled, on_triton
from graphsage.kernels.compiled import forms
from graphsage.kernels.neighborhood import Neighborhood

BLOCK_BYTES = 1 << 19  # gathered rows of one block stay in cache until they are scaled and written


def gather_joined(tables: Sequence[Tensor], rows: Tensor, neighborhood: Neighborhood, mixed: bool,
                  shift: Tensor, scale: Tensor, out: Tensor | None = None) -> Tensor:  # fmt: skip
    """From frozen tables (N, D_i) read side by side, shifted and scaled: no gradient, and never an (R, S, D) tensor.

    `out` is a buffer to write into, of the result's shape or wider. Tables may be of half precision; sums are float32.
    """
    dim = len(shift)
    if out is None:
        out = torch.empty(len(rows), dim if mixed else 2 * dim, dtype=torch.float32, device=rows.device)
    start = 0
    for part in neighborhood.parts:
        count = part.num_rows
        at = 0
        for table in tables:
            columns = slice(at, at + table.shape[1])
            into = out[start : start + count]
            _gather(table, rows[start : start + count], part, mixed, shift[columns], scale[columns], into[:, at:], dim)
            at += table.shape[1]
        start += count
    return out


def _gather(table: Tensor, rows: Tensor, neighborhood: Neighborhood, mixed: bool, shift: Tensor, scale: Tensor,
            out: Tensor, dim: int) -> None:  # fmt: skip
    """`dim` is the width of all tables, hence the distance between a row's own columns and their mean."""
    if on_triton(rows):
        from graphsage.kernels.triton import gather as fast

        fast.gather(
            table, rows, neighborhood.index, neighborhood.offsets, neighborhood.present, beside=not mixed, mixed=mixed,
            shift=shift, scale=scale, out=out, mean_at=0 if mixed else dim,
        )  # fmt: skip
        return
    if on_compiled(rows, shift, scale) and forms.readable(table) and forms.writable(out):
        forms.gather_joined(table, rows, neighborhood, mixed, shift, scale, out, 0 if mixed else dim)
        return
    own_out, mean_out = out[:, : table.shape[1]], out[:, 0 if mixed else dim :][:, : table.shape[1]]
    width = table.shape[1] * 4 if table.element_size() >= 4 else table.shape[1] * 16
    block = len(rows) if rows.is_cuda else max(32, BLOCK_BYTES // max(width, 1))
    for start in range(0, len(rows), block):
        stop = min(start + block, len(rows))
        into = mean_out[start:stop]
        if mixed and neighborhood.offsets is None and table.element_size() >= 4:  # the row is one more of its neighbors
            index = torch.cat([rows[start:stop, None], neighborhood.index[start:stop]], dim=1)
            total = F.embedding_bag(index, table, mode="sum")
        else:
            own, total = table.index_select(0, rows[start:stop]).float(), bag_sum(table, neighborhood, start, stop)
            if mixed:
                total += own
            else:
                torch.mul(own.sub_(shift), scale, out=own_out[start:stop])
        if neighborhood.offsets is None:  # one pass less than averaging first
            count = neighborhood.size + mixed
            torch.mul(total.sub_(shift * count), scale / count, out=into)
        else:
            counts = (neighborhood.counts[start:stop, None] + int(mixed)).clamp_min(1)
            torch.mul(total.div_(counts).sub_(shift), scale, out=into)
    if neighborhood.offsets is None or not mixed:
        alone = torch.nonzero(~neighborhood.present).flatten()
        mean_out[alone] = (table[rows[alone]].float() - shift) * scale if mixed else 0.0


def bag_sum(table: Tensor, neighborhood: Neighborhood, start: int, stop: int) -> Tensor:
    """The sum of the neighbors of rows start..stop, whatever is not present included: (stop - start, D) float32."""
    offsets = neighborhood.offsets
    if offsets is None:
        index = neighborhood.index[start:stop]
        if table.element_size() >= 4:
            return F.embedding_bag(index, table, mode="sum")
        return table.index_select(0, index.flatten()).view(*index.shape, -1).sum(dim=1, dtype=torch.float32)
    offsets = offsets[start : stop + 1]
    index = neighborhood.index[int(offsets[0]) : int(offsets[-1])]
    if table.element_size() < 4:  # embedding_bag sums in float32 but returns the table's type
        index, table = torch.arange(len(index), device=index.device), table.index_select(0, index).float()
    return F.embedding_bag(index, table, offsets - offsets[0], mode="sum", include_last_offset=True)


def join(h: Tensor, neighborhood: Neighborhood, mixed: bool) -> Tensor:
    """From the rows that the layer below returned: the first ones are the rows themselves, and `neighborhood` is
    consecutive, so that nothing is gathered. With gradient."""
    assert neighborhood.start is not None
    joined: Tensor = _Join.apply(h, neighborhood.present, neighborhood.start, neighborhood.size, mixed)  # type: ignore[no-untyped-call]
    return joined


class _Join(torch.autograd.Function):
    @staticmethod
    def forward(ctx: torch.autograd.function.FunctionCtx, h: Tensor, present: Tensor, start: int, size: int,
                mixed: bool) -> Tensor:  # fmt: skip
        ctx.save_for_backward(present)
        ctx.about = (start, size, mixed, len(h))  # type: ignore[attr-defined]
        if on_triton(h):
            from graphsage.kernels.triton import join as fast

            return fast.forward(h.contiguous(), present, start, size, mixed)
        count, dim = len(present), h.shape[1]
        below = h[start : start + count * size].view(count, size, dim)
        if mixed:
            return (below.sum(dim=1) * present[:, None] + h[:count]) / (present * size + 1)[:, None]
        out = scratch.take(count, 2 * dim, h.dtype) if h.device.type == "cpu" else h.new_empty(count, 2 * dim)
        out[:, :dim] = h[:count]
        torch.mul(below.mean(dim=1), present[:, None], out=out[:, dim:])
        return out

    @staticmethod
    def backward(ctx: torch.autograd.function.FunctionCtx, *grads: Tensor) -> tuple[Tensor, None, None, None, None]:
        (present,) = ctx.saved_tensors  # type: ignore[attr-defined]
        start, size, mixed, height = ctx.about  # type: ignore[attr-defined]
        grad = grads[0].contiguous()
        if on_triton(grad):
            from graphsage.kernels.triton import join as fast

            return fast.backward(grad, present, start, size, mixed, height), None, None, None, None
        count = len(present)
        dim = grad.shape[1] if mixed else grad.shape[1] // 2
        out = scratch.take(height, dim, grad.dtype) if grad.device.type == "cpu" else grad.new_empty(height, dim)
        if start > count or height > start + count * size:
            out.zero_()
        own, below = out[:count], out[start : start + count * size].view(count, size, dim)
        if mixed:
            each = grad / (present * size + 1)[:, None]
            own.copy_(each)
            below.copy_((each * present[:, None])[:, None])
        else:
            own.copy_(grad[:, :dim])
            below.copy_((grad[:, dim:] * (present / size)[:, None])[:, None])
        return out, None, None, None, None

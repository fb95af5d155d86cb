"""Fast form of model/layer.py, line 4 and the CONCAT of line 5: concat(h_v, mean of the neighbors), (R, 2D), or with a
mean of each relation.

Without neighbors the mean is zero. With `includes_self` it is Equation 2 instead: one mean over the row and its
neighbors, (R, D).
"""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from graphsage.kernels.backend import on_compiled, on_triton
from graphsage.kernels.buffers import FRESH, Buffers
from graphsage.kernels.compiled import bindings
from graphsage.kernels.gather import weighted_sum
from graphsage.kernels.neighborhood import Consecutive, Dense, Hoods, Ragged, joined_rows, row_numbers

BLOCK_BYTES = 1 << 19  # gathered rows of one block stay in cache until they are scaled and written


def gather_self_and_mean(
    tables: Sequence[Tensor], hoods: Hoods, includes_self: bool, shift: Tensor, scale: Tensor, out: Tensor | None = None
) -> Tensor:
    """From frozen tables (N, D_i) read side by side, shifted and scaled: no gradient, and never an (R, S, D) tensor.

    `out` is a buffer to write into, of the result's shape or wider. Tables may be of half precision; sums are float32.
    """
    dim, start = len(shift), 0
    if out is None:
        rows, parts = joined_rows(hoods), len(hoods[0].by_relation) + (not includes_self)
        out = torch.empty(len(rows), dim * parts, dtype=torch.float32, device=rows.device)
    for hood in hoods:
        into = out[start : start + hood.num_rows]
        for number, each in enumerate(hood.by_relation):
            assert not isinstance(each, Consecutive)
            at, mean_at = 0, number * dim
            for table in tables:
                columns = slice(at, at + table.shape[1])
                if includes_self:
                    _gather(table, each, True, shift[columns], scale[columns], into[:, mean_at + at :], 0)
                else:
                    _gather(table, each, False, shift[columns], scale[columns], into[:, at:], mean_at + dim)
                at += table.shape[1]
        start += hood.num_rows
    return out


def _gather(
    table: Tensor, hood: Dense | Ragged, includes_self: bool, shift: Tensor, scale: Tensor, out: Tensor, mean_at: int
) -> None:
    """The row's own columns go to the front of `out`, unless its mean includes it, and the mean to `mean_at`."""
    rows, dense = row_numbers(hood), isinstance(hood, Dense)
    if hood.weight is not None:
        width = table.shape[1]
        own = table.index_select(0, rows).float()
        torch.mul(own.sub_(shift), scale, out=out[:, :width])
        mean = weighted_sum(table, hood).sub_(shift).mul_(scale)
        torch.mul(mean, hood.present[:, None], out=out[:, mean_at:][:, :width])
        return
    if on_triton(rows):
        from graphsage.kernels.triton import gather as fast

        fast.gather_self_and_mean(table, rows, hood, shift, scale, out, mean_at)
        return
    if on_compiled(rows, shift, scale) and bindings.readable(table) and bindings.writable(out):
        bindings.gather_self_and_mean(table, rows, hood, shift, scale, out, mean_at)
        return
    own_out, mean_out = out[:, : table.shape[1]], out[:, mean_at:][:, : table.shape[1]]
    width = table.shape[1] * 4 if table.element_size() >= 4 else table.shape[1] * 16
    block = len(rows) if rows.is_cuda else max(32, BLOCK_BYTES // max(width, 1))
    for start in range(0, len(rows), block):
        stop = min(start + block, len(rows))
        into = mean_out[start:stop]
        if includes_self and dense and table.element_size() >= 4:  # the row is one more of its neighbors
            index = torch.cat([rows[start:stop, None], hood.index[start:stop]], dim=1)
            total = F.embedding_bag(index, table, mode="sum")
        else:
            own, total = table.index_select(0, rows[start:stop]).float(), bag_sum(table, hood, start, stop)
            if includes_self:
                total += own
            else:
                torch.mul(own.sub_(shift), scale, out=own_out[start:stop])
        if isinstance(hood, Dense):  # one pass less than averaging first
            count = hood.size + includes_self
            torch.mul(total.sub_(shift * count), scale / count, out=into)
        else:
            counts = (hood.counts[start:stop, None] + int(includes_self)).clamp_min(1)
            torch.mul(total.div_(counts).sub_(shift), scale, out=into)
    if dense or not includes_self:
        alone = torch.nonzero(~hood.present).flatten()
        mean_out[alone] = (table[rows[alone]].float() - shift) * scale if includes_self else 0.0


def bag_sum(table: Tensor, hood: Dense | Ragged, start: int, stop: int) -> Tensor:
    """The sum of the neighbors of rows start..stop, those not present included: (stop - start, D) float32."""
    if isinstance(hood, Dense):
        index = hood.index[start:stop]
        if table.element_size() >= 4:
            return F.embedding_bag(index, table, mode="sum")
        return table.index_select(0, index.flatten()).view(*index.shape, -1).sum(dim=1, dtype=torch.float32)
    offsets = hood.offsets[start : stop + 1]
    index = hood.index[int(offsets[0]) : int(offsets[-1])]
    if table.element_size() < 4:  # embedding_bag sums in float32 but returns the table's type
        index, table = torch.arange(len(index), device=index.device), table.index_select(0, index).float()
    return F.embedding_bag(index, table, offsets - offsets[0], mode="sum", include_last_offset=True)


def self_and_mean(h: Tensor, hood: Consecutive, includes_self: bool, buffers: Buffers = FRESH) -> Tensor:
    """From the rows that the layer below returned, of which the first are the rows themselves. With gradient; nothing
    is gathered."""
    assert hood.first_row == 0
    joined: Tensor = _SelfAndMean.apply(h, hood.present, hood.start, hood.size, includes_self, buffers)  # type: ignore[no-untyped-call]
    return joined


class _SelfAndMean(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: torch.autograd.function.FunctionCtx,
        h: Tensor,
        present: Tensor,
        start: int,
        size: int,
        includes_self: bool,
        buffers: Buffers,
    ) -> Tensor:
        ctx.save_for_backward(present)
        ctx.settings = (start, size, includes_self, len(h), buffers)  # type: ignore[attr-defined]
        if on_triton(h):
            from graphsage.kernels.triton import self_and_mean as fast

            return fast.forward(h.contiguous(), present, start, size, includes_self)
        count, dim = len(present), h.shape[1]
        below = h[start : start + count * size].view(count, size, dim)
        if includes_self:
            return (below.sum(dim=1) * present[:, None] + h[:count]) / (present * size + 1)[:, None]
        out = buffers.take_like(h, count, 2 * dim)
        out[:, :dim] = h[:count]
        torch.mul(below.mean(dim=1), present[:, None], out=out[:, dim:])
        return out

    @staticmethod
    def backward(ctx: torch.autograd.function.FunctionCtx, *grads: Tensor) -> tuple[Tensor | None, ...]:
        (present,) = ctx.saved_tensors  # type: ignore[attr-defined]
        start, size, includes_self, height, buffers = ctx.settings  # type: ignore[attr-defined]
        grad = grads[0].contiguous()
        if on_triton(grad):
            from graphsage.kernels.triton import self_and_mean as fast

            return fast.backward(grad, present, start, size, includes_self, height), None, None, None, None, None
        count = len(present)
        dim = grad.shape[1] if includes_self else grad.shape[1] // 2
        out = buffers.take_like(grad, height, dim)
        if start > count or height > start + count * size:
            out.zero_()
        own, below = out[:count], out[start : start + count * size].view(count, size, dim)
        if includes_self:
            each = grad / (present * size + 1)[:, None]
            own.copy_(each)
            below.copy_((each * present[:, None])[:, None])
        else:
            own.copy_(grad[:, :dim])
            below.copy_((grad[:, dim:] * (present / size)[:, None])[:, None])
        return out, None, None, None, None, None

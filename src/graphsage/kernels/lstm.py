"""The recurrent part of an LSTM over consecutive rows in a given order, for a GPU with Triton.

torch's own nn.LSTM is the plain form: it wants the rows gathered in order, projects each gathered one, and sorts
indices in the backward pass.
"""

import torch
from torch import Tensor


def recur(gates: Tensor, weight: Tensor, bias: Tensor, order: Tensor, start: int) -> Tensor:
    """The last hidden state, (R, H), of an LSTM that reads row start + r * S + order[r, t] of `gates` at time t.

    gates (M, 4H) is what the input contributes, weight (4H, H) the hidden state's, bias (4H,) the sum of both. `gates`
    is overwritten by its activations, so it must be a fresh result that nothing else reads.
    """
    last: Tensor = _Recur.apply(gates, weight, bias, order, start)  # type: ignore[no-untyped-call]
    return last


class _Recur(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: torch.autograd.function.FunctionCtx, gates: Tensor, weight: Tensor, bias: Tensor, order: Tensor, start: int
    ) -> Tensor:
        from graphsage.kernels.triton import lstm as fast

        count, dim = len(order), weight.shape[1]
        hidden, cell = gates.new_empty(count, dim), gates.new_empty(count, dim)
        before, cells = gates.new_empty(len(gates), dim), gates.new_empty(len(gates), dim)
        recurrent = gates.new_empty(count, 4 * dim)
        for step in range(order.shape[1]):
            if step:
                torch.mm(hidden, weight.t(), out=recurrent)
            fast.forward(gates, recurrent, bias, order, hidden, cell, before, cells, start, step)
        ctx.save_for_backward(gates, weight, order, before, cells)
        ctx.start = start  # type: ignore[attr-defined]
        return hidden

    @staticmethod
    def backward(ctx: torch.autograd.function.FunctionCtx, *grads: Tensor) -> tuple[Tensor | None, ...]:
        from graphsage.kernels.triton import lstm as fast

        gates, weight, order, before, cells = ctx.saved_tensors  # type: ignore[attr-defined]
        start: int = ctx.start  # type: ignore[attr-defined]
        d_hidden = grads[0].clone()
        d_cell, d_gates = torch.empty_like(d_hidden), gates.new_empty(len(order), gates.shape[1])
        d_table = torch.empty_like(gates)
        for step in reversed(range(order.shape[1])):
            fast.backward(gates, d_table, cells, order, d_hidden, d_cell, d_gates, start, step)
            if step:
                torch.mm(d_gates, weight, out=d_hidden)
        stop = start + order.numel()
        d_table[:start].zero_()
        d_table[stop:].zero_()
        mine = d_table[start:stop]
        return d_table, mine.t() @ before[start:stop], mine.sum(dim=0), None, None

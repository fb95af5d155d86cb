"""An LSTM over rows of a table on a CPU: each row's part of the gates is computed once, however often it is drawn.

torch's own nn.LSTM is the plain form: it wants the rows gathered in order and projects each gathered one. The gates are
those of nn.LSTM, in its order: input, forget, cell, output.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from graphsage.kernels import scratch

BLOCK_ROWS = 512  # sequences that run together: their gates and states stay in cache from step to step
TABLE_ROWS = 8192  # rows of the table whose gradient is made at once


def lstm_over_rows(h: Tensor, weight: Tensor, recurrent: Tensor, bias: Tensor, places: Tensor) -> Tensor:
    """The last hidden state, (R, H), of an LSTM that reads row places[r, t] of h (M, D) at time t.

    weight (4H, D) and recurrent (4H, H) are those of the input and of the hidden state, bias (4H,) the sum of both.
    """
    last: Tensor = _LSTM.apply(h, weight, recurrent, bias, places)  # type: ignore[no-untyped-call]
    return last


class _LSTM(torch.autograd.Function):
    @staticmethod
    def forward(ctx: torch.autograd.function.FunctionCtx, h: Tensor, weight: Tensor, recurrent: Tensor, bias: Tensor,
                places: Tensor) -> Tensor:  # fmt: skip
        (rows, steps), dim = places.shape, recurrent.shape[1]
        table = torch.mm(h, weight.t(), out=scratch.take(len(h), 4 * dim, h.dtype))
        at = places.t().contiguous()
        gates = scratch.take(steps * rows, 4 * dim, h.dtype).view(steps, rows, -1)
        cells, hidden = (scratch.take(steps * rows, dim, h.dtype).view(steps, rows, -1) for _ in range(2))
        for start in range(0, rows, BLOCK_ROWS):
            block = slice(start, start + BLOCK_ROWS)
            for step in range(steps):
                gate, cell, state = (each[step, block] for each in (gates, cells, hidden))
                torch.index_select(table, 0, at[step, block], out=gate)
                if step:
                    gate.addmm_(hidden[step - 1, block], recurrent.t())
                gate += bias
                gate[:, : 2 * dim].sigmoid_()
                gate[:, 3 * dim :].sigmoid_()
                enters, forgets, fresh, leaves = gate.chunk(4, dim=1)
                torch.mul(enters, fresh.tanh_(), out=cell)
                if step:
                    cell.addcmul_(forgets, cells[step - 1, block])
                torch.tanh(cell, out=state).mul_(leaves)
        ctx.save_for_backward(h, weight, recurrent, at, gates, cells, hidden)
        return hidden[-1].clone()

    @staticmethod
    def backward(ctx: torch.autograd.function.FunctionCtx, *grads: Tensor) -> tuple[Tensor | None, ...]:
        h, weight, recurrent, at, saved, cells, hidden = ctx.saved_tensors  # type: ignore[attr-defined]
        steps, rows, width = saved.shape
        gates, bias_grad = scratch.take(steps * rows, width, saved.dtype).view(saved.shape), saved.new_zeros(width)
        for start in range(0, rows, BLOCK_ROWS):
            block = slice(start, start + BLOCK_ROWS)
            bias_grad += _through_time(grads[0][block], saved[:, block], cells[:, block], gates[:, block], recurrent)
        flat = gates.view(-1, width)
        recurrent_grad = flat[rows:].t() @ hidden[:-1].view(-1, recurrent.shape[1])
        h_grad = scratch.take_like(h) if ctx.needs_input_grad[0] else None  # type: ignore[attr-defined]
        return h_grad, _of_table(flat, at.flatten(), h, weight, h_grad), recurrent_grad, bias_grad, None


def _through_time(grad: Tensor, gates: Tensor, cells: Tensor, out: Tensor, recurrent: Tensor) -> Tensor:
    """Write the gradient of every gate before its activation into `out`, (S, R, 4H); returns its sum, (4H,)."""
    total = grad.new_zeros(out.shape[2])
    d_hidden, d_cell = grad.clone(), torch.zeros_like(grad)
    bent, spare = torch.empty_like(d_hidden), torch.empty_like(d_hidden)
    for step in reversed(range(len(gates))):
        enters, forgets, fresh, leaves = gates[step].chunk(4, dim=1)
        d_enters, d_forgets, d_fresh, d_leaves = out[step].chunk(4, dim=1)
        torch.tanh(cells[step], out=bent)
        _sigmoid_gradient(torch.mul(d_hidden, bent, out=spare), leaves, d_leaves)
        _tanh_gradient(d_hidden.mul_(leaves), bent, spare)
        d_cell += spare
        _sigmoid_gradient(torch.mul(d_cell, fresh, out=spare), enters, d_enters)
        _tanh_gradient(torch.mul(d_cell, enters, out=spare), fresh, d_fresh)
        if step:
            _sigmoid_gradient(torch.mul(d_cell, cells[step - 1], out=spare), forgets, d_forgets)
            d_cell *= forgets
            torch.mm(out[step], recurrent, out=d_hidden)
        else:
            d_forgets.zero_()
        total += out[step].sum(dim=0)
    return total


def _of_table(grad: Tensor, at: Tensor, h: Tensor, weight: Tensor, h_grad: Tensor | None) -> Tensor:
    """From the gradients (S * R, 4H) of what was read at places `at` (S * R,): weight's, and that of h in `h_grad`."""
    order = torch.argsort(at)
    offsets = F.pad(torch.bincount(at, minlength=len(h)).cumsum(0), (1, 0))
    weight_grad = scratch.take_like(weight).zero_()
    for start in range(0, len(h), TABLE_ROWS):
        rows = h[start : start + TABLE_ROWS]
        here = offsets[start : start + TABLE_ROWS + 1]
        readers = order[int(here[0]) : int(here[-1])]
        of_rows = F.embedding_bag(readers, grad, here - here[0], mode="sum", include_last_offset=True)
        weight_grad.addmm_(of_rows.t(), rows)
        if h_grad is not None:
            torch.mm(of_rows, weight, out=h_grad[start : start + TABLE_ROWS])
    return weight_grad


def _sigmoid_gradient(grad: Tensor, value: Tensor, out: Tensor) -> None:
    torch.ops.aten.sigmoid_backward.grad_input(grad, value, grad_input=out)


def _tanh_gradient(grad: Tensor, value: Tensor, out: Tensor) -> None:
    torch.ops.aten.tanh_backward.grad_input(grad, value, grad_input=out)

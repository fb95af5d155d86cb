"""Fast forms of an LSTM over neighbors: of drawn rows on a CPU, and of consecutive rows on a GPU with Triton.

torch's nn.LSTM is the plain form. It needs the rows gathered in order, and projects each gathered row; here each
distinct row's part of the gates is computed once. Gates are in nn.LSTM's order: input, forget, cell, output.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from graphsage.kernels.backend import on_compiled
from graphsage.kernels.buffers import FRESH, Buffers
from graphsage.kernels.compiled import bindings

BLOCK_ROWS = 512  # sequences that run together; their gates and states stay in cache
TABLE_ROWS = 8192  # rows of the table whose gradient is computed at once


def lstm_over_rows(
    h: Tensor, weight: Tensor, recurrent: Tensor, bias: Tensor, places: Tensor, buffers: Buffers = FRESH
) -> Tensor:
    """The last hidden state, (R, H), of an LSTM that reads row places[r, t] of h (M, D) at time t.

    weight (4H, D) and recurrent (4H, H) are those of the input and of the hidden state, bias (4H,) the sum of both.
    """
    last: Tensor = _LSTM.apply(h, weight, recurrent, bias, places, buffers)  # type: ignore[no-untyped-call]
    return last


class _LSTM(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: torch.autograd.function.FunctionCtx,
        h: Tensor,
        weight: Tensor,
        recurrent: Tensor,
        bias: Tensor,
        places: Tensor,
        buffers: Buffers,
    ) -> Tensor:
        (rows, steps), dim = places.shape, recurrent.shape[1]
        table = torch.mm(h, weight.t(), out=buffers.take(len(h), 4 * dim, h.dtype))
        at = places.t().contiguous()
        gates = buffers.take(steps * rows, 4 * dim, h.dtype).view(steps, rows, -1)
        cells, hidden = (buffers.take(steps * rows, dim, h.dtype).view(steps, rows, -1) for _ in range(2))
        for start in range(0, rows, BLOCK_ROWS):
            block = slice(start, start + BLOCK_ROWS)
            for step in range(steps):
                gate, cell, state = (each[step, block] for each in (gates, cells, hidden))
                if step:
                    torch.mm(hidden[step - 1, block], recurrent.t(), out=gate)
                _step(gate, table, at[step, block], bias, cells[step - 1, block] if step else None, cell, state)
        buffers.give_back(table)
        ctx.save_for_backward(h, weight, recurrent, at, gates, cells, hidden)
        ctx.buffers = buffers  # type: ignore[attr-defined]
        return hidden[-1].clone()

    @staticmethod
    def backward(ctx: torch.autograd.function.FunctionCtx, *grads: Tensor) -> tuple[Tensor | None, ...]:
        h, weight, recurrent, at, saved, cells, hidden = ctx.saved_tensors  # type: ignore[attr-defined]
        buffers: Buffers = ctx.buffers  # type: ignore[attr-defined]
        steps, rows, width = saved.shape
        gates, bias_grad = buffers.take(steps * rows, width, saved.dtype).view(saved.shape), saved.new_zeros(width)
        for start in range(0, rows, BLOCK_ROWS):
            block = slice(start, start + BLOCK_ROWS)
            bias_grad += _through_time(grads[0][block], saved[:, block], cells[:, block], gates[:, block], recurrent)
        flat = gates.view(-1, width)
        recurrent_grad = flat[rows:].t() @ hidden[:-1].view(-1, recurrent.shape[1])
        h_grad = buffers.take_like(h) if ctx.needs_input_grad[0] else None  # type: ignore[attr-defined]
        weight_grad = _of_table(flat, at.flatten(), h, weight, h_grad, buffers.take_like(weight))
        buffers.give_back(saved, cells, hidden, gates)
        return h_grad, weight_grad, recurrent_grad, bias_grad, None, None


def _step(
    gate: Tensor, table: Tensor, places: Tensor, bias: Tensor, before: Tensor | None, cell: Tensor, state: Tensor
) -> None:
    """To `gate` (R, 4H), the hidden state's part, add that of the rows at `places` and the bias, and activate it; write
    the cells and the hidden state, (R, H). At first there are no cells `before`, and `gate` holds nothing."""
    if on_compiled(gate, table, bias, cell, state):
        bindings.lstm_step(gate, table, places, bias, before, cell, state)
        return
    rows = table.index_select(0, places).add_(bias)
    gate.copy_(rows) if before is None else gate.add_(rows)
    enters, forgets, fresh, leaves = gate.chunk(4, dim=1)
    for each in (enters, forgets, leaves):
        each.sigmoid_()
    torch.mul(enters, fresh.tanh_(), out=cell)
    if before is not None:
        cell.addcmul_(forgets, before)
    torch.tanh(cell, out=state).mul_(leaves)


def _through_time(grad: Tensor, gates: Tensor, cells: Tensor, out: Tensor, recurrent: Tensor) -> Tensor:
    """Write the gradient of every gate before its activation into `out`, (S, R, 4H); returns its sum, (4H,)."""
    total = grad.new_zeros(out.shape[2])
    d_hidden, d_cell = grad.clone(), torch.zeros_like(grad)
    for step in reversed(range(len(gates))):
        _step_gradient(gates[step], cells[step - 1] if step else None, cells[step], d_hidden, d_cell, out[step])
        if step:
            torch.mm(out[step], recurrent, out=d_hidden)
        total += out[step].sum(dim=0)
    return total


def _step_gradient(
    gates: Tensor, before: Tensor | None, cells: Tensor, d_hidden: Tensor, d_cell: Tensor, out: Tensor
) -> None:
    """Write the gradient of one step's gates into `out`; `d_cell` becomes that of the cells before."""
    if on_compiled(gates, cells, d_hidden, d_cell, out):
        bindings.lstm_step_gradient(gates, before, cells, d_hidden, d_cell, out)
        return
    enters, forgets, fresh, leaves = gates.chunk(4, dim=1)
    d_enters, d_forgets, d_fresh, d_leaves = out.chunk(4, dim=1)
    bent = torch.tanh(cells)
    _sigmoid_gradient(d_hidden * bent, leaves, d_leaves)
    d_cell += d_hidden * leaves * (1 - bent.square())
    _sigmoid_gradient(d_cell * fresh, enters, d_enters)
    _tanh_gradient(d_cell * enters, fresh, d_fresh)
    if before is None:
        d_forgets.zero_()
    else:
        _sigmoid_gradient(d_cell * before, forgets, d_forgets)
    d_cell *= forgets


def _of_table(
    grad: Tensor, at: Tensor, h: Tensor, weight: Tensor, h_grad: Tensor | None, weight_grad: Tensor
) -> Tensor:
    """From the gradients (S * R, 4H) of the rows read at places `at` (S * R,): write those of weight and of h."""
    order = torch.argsort(at)
    offsets = F.pad(torch.bincount(at, minlength=len(h)).cumsum(0), (1, 0))
    weight_grad.zero_()
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


def recur(gates: Tensor, weight: Tensor, bias: Tensor, order: Tensor, start: int) -> Tensor:
    """The last hidden state, (R, H), of an LSTM that reads row start + r * S + order[r, t] of `gates` at time t.

    gates (M, 4H) is the input's part, weight (4H, H) that of the hidden state, bias (4H,) the sum of both. `gates`
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
            fast.forward(gates, recurrent, bias, order, hidden, cell, before, cells, start=start, step=step)
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
        final = order.shape[1] - 1
        for step in range(final, -1, -1):
            tensors = gates, d_table, cells, order, d_hidden, d_cell, d_gates
            fast.backward(*tensors, start=start, step=step, last=step == final)
            if step:
                torch.mm(d_gates, weight, out=d_hidden)
        stop = start + order.numel()
        d_table[:start].zero_()
        d_table[stop:].zero_()
        mine = d_table[start:stop]
        return d_table, mine.t() @ before[start:stop], mine.sum(dim=0), None, None

"""One step of an LSTM for all rows, forward and backward, without the product with the hidden state.

The input's part of the gates was computed once for each row of a table; `order` gives the next row to read. Gates,
states and gradients stay in the table's order, so that no row is moved and the weights' gradient is one product. Gates
are in nn.LSTM's order: input, forget, cell, output.
"""

from typing import Any

import triton
import triton.language as tl
from torch import Tensor

from graphsage.kernels.triton.launch import whole_rows


@triton.jit
def _sigmoid(x):
    return 1.0 / (1.0 + tl.exp(-x))


@triton.jit
def _tanh(x):
    e = tl.exp(-2.0 * tl.abs(x))
    t = (1.0 - e) / (1.0 + e)
    return tl.where(x < 0, -t, t)


@triton.jit
def _load(gates, DIM: tl.constexpr, inside):
    """The four gates of a row, (LANES,) each."""
    i = tl.load(gates, mask=inside, other=0.0)
    f = tl.load(gates + DIM, mask=inside, other=0.0)
    g = tl.load(gates + 2 * DIM, mask=inside, other=0.0)
    o = tl.load(gates + 3 * DIM, mask=inside, other=0.0)
    return i, f, g, o


@triton.jit
def _store(gates, i, f, g, o, DIM: tl.constexpr, inside):
    tl.store(gates, i, mask=inside)
    tl.store(gates + DIM, f, mask=inside)
    tl.store(gates + 2 * DIM, g, mask=inside)
    tl.store(gates + 3 * DIM, o, mask=inside)


@triton.jit
def _forward(
    gates,
    recurrent,
    bias,
    order,
    hidden,
    cell,
    before,
    cells,
    start,
    step,
    FIRST: tl.constexpr,
    SIZE: tl.constexpr,
    DIM: tl.constexpr,
    LANES: tl.constexpr,
):
    r = tl.program_id(0).to(tl.int64)
    c = tl.arange(0, LANES)
    inside = c < DIM
    at = start + r * SIZE + tl.load(order + r * SIZE + step)
    here = gates + at * 4 * DIM + c
    i, f, g, o = _load(here, DIM, inside)
    bi, bf, bg, bo = _load(bias + c, DIM, inside)
    i += bi
    f += bf
    g += bg
    o += bo
    old_h = tl.zeros([LANES], tl.float32)
    old_c = tl.zeros([LANES], tl.float32)
    if not FIRST:
        ri, rf, rg, ro = _load(recurrent + r * 4 * DIM + c, DIM, inside)
        i += ri
        f += rf
        g += rg
        o += ro
        old_h = tl.load(hidden + r * DIM + c, mask=inside, other=0.0)
        old_c = tl.load(cell + r * DIM + c, mask=inside, other=0.0)
    i = _sigmoid(i)
    f = _sigmoid(f)
    g = _tanh(g)
    o = _sigmoid(o)
    new_c = f * old_c + i * g
    _store(here, i, f, g, o, DIM, inside)
    tl.store(before + at * DIM + c, old_h, mask=inside)
    tl.store(cells + at * DIM + c, old_c, mask=inside)
    tl.store(cell + r * DIM + c, new_c, mask=inside)
    tl.store(hidden + r * DIM + c, o * _tanh(new_c), mask=inside)


@triton.jit
def _backward(
    gates,
    d_table,
    cells,
    order,
    d_hidden,
    d_cell,
    d_gates,
    start,
    step,
    LAST: tl.constexpr,
    SIZE: tl.constexpr,
    DIM: tl.constexpr,
    LANES: tl.constexpr,
):
    """Gradients of the gates, in the table's order and, for the product that comes next, in the rows' order."""
    r = tl.program_id(0).to(tl.int64)
    c = tl.arange(0, LANES)
    inside = c < DIM
    at = start + r * SIZE + tl.load(order + r * SIZE + step)
    i, f, g, o = _load(gates + at * 4 * DIM + c, DIM, inside)
    old_c = tl.load(cells + at * DIM + c, mask=inside, other=0.0)
    t = _tanh(f * old_c + i * g)
    dh = tl.load(d_hidden + r * DIM + c, mask=inside, other=0.0)
    dc = dh * o * (1.0 - t * t)
    if not LAST:
        dc += tl.load(d_cell + r * DIM + c, mask=inside, other=0.0)
    d_i = dc * g * i * (1.0 - i)
    d_f = dc * old_c * f * (1.0 - f)
    d_g = dc * i * (1.0 - g * g)
    d_o = dh * t * o * (1.0 - o)
    tl.store(d_cell + r * DIM + c, dc * f, mask=inside)
    _store(d_table + at * 4 * DIM + c, d_i, d_f, d_g, d_o, DIM, inside)
    _store(d_gates + r * 4 * DIM + c, d_i, d_f, d_g, d_o, DIM, inside)


def forward(*tensors: Tensor, start: int, step: int) -> None:
    """`tensors` are the kernel's, from `gates` to `cells`."""
    _launch(_forward, tensors, start, step, FIRST=step == 0)


def backward(*tensors: Tensor, start: int, step: int, last: bool) -> None:
    """`tensors` are the kernel's, from `gates` to `d_gates`."""
    _launch(_backward, tensors, start, step, LAST=last)


def _launch(kernel: Any, tensors: tuple[Tensor, ...], start: int, step: int, **end: bool) -> None:
    order, state = tensors[3], tensors[4]
    count, size = order.shape
    kernel[(count,)](*tensors, start, step, SIZE=size, **end, **whole_rows(state.shape[1], 64, 4))

"""ReLU and scaling to length 1 (Algorithm 1, lines 5 and 7), forward and backward, one pass each."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from graphsage.kernels.triton.launch import whole_rows


@triton.jit
def _forward(
    x, y, inverse, epsilon, RELU: tl.constexpr, NORMALIZE: tl.constexpr, DIM: tl.constexpr, LANES: tl.constexpr
):
    r = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, LANES)
    inside = column < DIM
    h = tl.load(x + r * DIM + column, mask=inside, other=0.0)
    if RELU:
        h = tl.maximum(h, 0.0)
    if NORMALIZE:
        length = tl.sqrt(tl.sum(h * h, axis=0))
        by = tl.where(length < float("inf"), 1.0 / tl.maximum(length, epsilon), float("nan"))
        tl.store(inverse + r, by)
        h = h * by
    tl.store(y + r * DIM + column, h, mask=inside)


@triton.jit
def _backward(
    grad, y, inverse, out, epsilon, RELU: tl.constexpr, NORMALIZE: tl.constexpr, DIM: tl.constexpr, LANES: tl.constexpr
):
    r = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, LANES)
    inside = column < DIM
    g = tl.load(grad + r * DIM + column, mask=inside, other=0.0)
    h = tl.load(y + r * DIM + column, mask=inside, other=0.0)
    if NORMALIZE:
        by = tl.load(inverse + r)
        along = tl.sum(g * h, axis=0)
        along = tl.where(by * epsilon < 1.0, along, 0.0)  # below epsilon the length is a constant
        g = (g - h * along) * by
    if RELU:
        g = tl.where(h > 0, g, 0.0)
    tl.store(out + r * DIM + column, g, mask=inside)


def forward(x: Tensor, relu: bool, normalize: bool, epsilon: float) -> tuple[Tensor, Tensor]:
    y, inverse = torch.empty_like(x), x.new_empty(len(x))
    if x.numel():
        _forward[(len(x),)](x, y, inverse, epsilon, RELU=relu, NORMALIZE=normalize, **whole_rows(x.shape[1]))
    return y, inverse


def backward(grad: Tensor, y: Tensor, inverse: Tensor, relu: bool, normalize: bool, epsilon: float) -> Tensor:
    out = torch.empty_like(y)
    if y.numel():
        _backward[(len(y),)](grad, y, inverse, out, epsilon, RELU=relu, NORMALIZE=normalize, **whole_rows(y.shape[1]))
    return out

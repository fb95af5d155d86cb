"""Gather + reduce over a frozen table: each row's own vector beside its neighbors' mean, scaled, in one pass."""

import torch
import triton
import triton.language as tl
from torch import Tensor

LANES = 128  # columns of one program, one warp: 81 us for the paper's step on an H200, 112 with a whole row of 602


@triton.jit
def _dense(
    table,
    rows,
    index,
    present,
    shift,
    scale,
    out,
    stride,
    out_stride,
    mean_at,
    SELF: tl.constexpr,
    MIXED: tl.constexpr,
    SCALED: tl.constexpr,
    DIM: tl.constexpr,
    SIZE: tl.constexpr,
    LANES: tl.constexpr,
):
    """One program a row and block of columns. MIXED averages the row itself in (Equation 2); SELF writes it beside."""
    r = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * LANES + tl.arange(0, LANES)
    inside = column < DIM
    total = tl.zeros([LANES], tl.float32)
    has = tl.load(present + r) != 0
    for s in tl.static_range(SIZE):
        j = tl.load(index + r * SIZE + s)
        total += tl.load(table + j * stride + column, mask=inside & has, other=0.0).to(tl.float32)
    _write(
        table,
        rows,
        shift,
        scale,
        out,
        r,
        total,
        SIZE * has,
        stride,
        out_stride,
        mean_at,
        column,
        inside,
        SELF,
        MIXED,
        SCALED,
    )


@triton.jit
def _ragged(
    table,
    rows,
    index,
    offsets,
    shift,
    scale,
    out,
    stride,
    out_stride,
    mean_at,
    SELF: tl.constexpr,
    MIXED: tl.constexpr,
    SCALED: tl.constexpr,
    DIM: tl.constexpr,
    LANES: tl.constexpr,
):
    r = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * LANES + tl.arange(0, LANES)
    inside = column < DIM
    start = tl.load(offsets + r)
    stop = tl.load(offsets + r + 1)
    total = tl.zeros([LANES], tl.float32)
    more = tl.zeros([LANES], tl.float32)
    whole = start + (stop - start) // 4 * 4
    e = start
    while e < whole:  # four loads in flight
        j0 = tl.load(index + e).to(tl.int64)
        j1 = tl.load(index + e + 1).to(tl.int64)
        j2 = tl.load(index + e + 2).to(tl.int64)
        j3 = tl.load(index + e + 3).to(tl.int64)
        x0 = tl.load(table + j0 * stride + column, mask=inside, other=0.0).to(tl.float32)
        x1 = tl.load(table + j1 * stride + column, mask=inside, other=0.0).to(tl.float32)
        x2 = tl.load(table + j2 * stride + column, mask=inside, other=0.0).to(tl.float32)
        x3 = tl.load(table + j3 * stride + column, mask=inside, other=0.0).to(tl.float32)
        total += x0 + x1
        more += x2 + x3
        e += 4
    while e < stop:
        j = tl.load(index + e).to(tl.int64)
        total += tl.load(table + j * stride + column, mask=inside, other=0.0).to(tl.float32)
        e += 1
    _write(
        table,
        rows,
        shift,
        scale,
        out,
        r,
        total + more,
        stop - start,
        stride,
        out_stride,
        mean_at,
        column,
        inside,
        SELF,
        MIXED,
        SCALED,
    )


@triton.jit
def _write(
    table,
    rows,
    shift,
    scale,
    out,
    r,
    total,
    count,
    stride,
    out_stride,
    mean_at,
    column,
    inside,
    SELF: tl.constexpr,
    MIXED: tl.constexpr,
    SCALED: tl.constexpr,
):
    if SELF or MIXED:
        own = tl.load(table + tl.load(rows + r) * stride + column, mask=inside, other=0.0).to(tl.float32)
    if MIXED:
        mean = (total + own) / (count + 1)
    else:
        mean = total / tl.maximum(count, 1)
    if SCALED:
        by = tl.load(scale + column, mask=inside, other=0.0)
        off = tl.load(shift + column, mask=inside, other=0.0)
        mean = (mean - off) * by
        if SELF:
            own = (own - off) * by
    if not MIXED:
        mean = tl.where(count > 0, mean, 0.0)
    tl.store(out + r * out_stride + mean_at + column, mean, mask=inside)
    if SELF:
        tl.store(out + r * out_stride + column, own, mask=inside)


@triton.jit
def _ragged_max(table, index, offsets, out, stride, DIM: tl.constexpr, LANES: tl.constexpr):
    r = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * LANES + tl.arange(0, LANES)
    inside = column < DIM
    e = tl.load(offsets + r)
    stop = tl.load(offsets + r + 1)
    best = tl.where(e < stop, float("-inf"), tl.zeros([LANES], tl.float32))
    while e < stop:
        j = tl.load(index + e).to(tl.int64)
        best = tl.maximum(best, tl.load(table + j * stride + column, mask=inside, other=0.0).to(tl.float32))
        e += 1
    tl.store(out + r * DIM + column, best, mask=inside)


def reduce(table: Tensor, index: Tensor, offsets: Tensor, mode: str) -> Tensor:
    """The mean or max of each row's neighbors, ragged, zero where there are none: (R, D) float32, no gradient."""
    out = torch.empty(len(offsets) - 1, table.shape[1], dtype=torch.float32, device=offsets.device)
    if mode == "mean":
        present = offsets[1:]
        gather(
            table,
            present,
            index,
            offsets,
            present,
            beside=False,
            mixed=False,
            shift=None,
            scale=None,
            out=out,
            mean_at=0,
        )
    elif out.numel():
        lanes = min(LANES, triton.next_power_of_2(table.shape[1]))
        _ragged_max[(len(out), triton.cdiv(table.shape[1], lanes))](
            table, index, offsets, out, table.stride(0), DIM=table.shape[1], LANES=lanes, num_warps=1
        )
    return out


def gather(
    table: Tensor,
    rows: Tensor,
    index: Tensor,
    offsets: Tensor | None,
    present: Tensor,
    *,
    beside: bool,
    mixed: bool,
    shift: Tensor | None,
    scale: Tensor | None,
    out: Tensor,
    mean_at: int,
) -> None:
    """Write into `out` (R, ...) from its first column on: the mean of each row's neighbors at column `mean_at`.

    `beside` also writes the row's own vector at column 0; `mixed` averages it in. Accumulates in float32.
    """
    count, dim = len(present), table.shape[1]
    if not count or not dim:
        return
    lanes = min(LANES, triton.next_power_of_2(dim))
    grid = (count, triton.cdiv(dim, lanes))
    scaled = scale is not None
    about = (shift if scaled else table, scale if scaled else table, out, table.stride(0), out.stride(0), mean_at)
    flags = {"SELF": beside, "MIXED": mixed, "SCALED": scaled, "DIM": dim, "LANES": lanes, "num_warps": 1}
    if offsets is None:
        _dense[grid](table, rows, index, present, *about, SIZE=index.shape[1], **flags)
    else:
        _ragged[grid](table, rows, index, offsets, *about, **flags)

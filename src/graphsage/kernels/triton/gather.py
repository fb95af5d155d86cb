"""Rows of a frozen table, scaled, in one pass: of chosen nodes, or joined with the means of their neighbors.

The GPU may read the table from its own memory or from pinned memory of the host.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from graphsage.kernels.neighborhood import Dense, Ragged

LANES = 128  # columns of one program, one warp: 81 us for the paper's step on an H200, 112 with a whole row of 602
ROWS = 16  # of one program of `scaled_rows`, read in parallel


@triton.jit
def _gather(
    table,
    rows,
    index,
    offsets,
    present,
    shift,
    scale,
    out,
    stride,
    out_stride,
    mean_at,
    SELF: tl.constexpr,
    INCLUDES_SELF: tl.constexpr,
    SCALED: tl.constexpr,
    DIM: tl.constexpr,
    SIZE: tl.constexpr,
    LANES: tl.constexpr,
):
    """One program per row and block of columns. With INCLUDES_SELF the row is part of the mean (Equation 2); with SELF
    it is also written, at column 0. SIZE is 0 for ragged neighborhoods."""
    r = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * LANES + tl.arange(0, LANES)
    inside = column < DIM
    total = tl.zeros([LANES], tl.float32)
    if SIZE:
        has = tl.load(present + r) != 0
        count = SIZE * has
        for s in tl.static_range(SIZE):
            j = tl.load(index + r * SIZE + s)
            total += tl.load(table + j * stride + column, mask=inside & has, other=0.0).to(tl.float32)
    else:
        e = tl.load(offsets + r)
        stop = tl.load(offsets + r + 1)
        count = stop - e
        more = tl.zeros([LANES], tl.float32)
        whole = e + count // 4 * 4
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
        total += more
    if SELF or INCLUDES_SELF:
        own = tl.load(table + tl.load(rows + r) * stride + column, mask=inside, other=0.0).to(tl.float32)
    if INCLUDES_SELF:
        mean = (total + own) / (count + 1)
    else:
        mean = total / tl.maximum(count, 1)
    if SCALED:
        by = tl.load(scale + column, mask=inside, other=0.0)
        off = tl.load(shift + column, mask=inside, other=0.0)
        mean = (mean - off) * by
        if SELF:
            own = (own - off) * by
    if not INCLUDES_SELF:
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
    """The mean or max of each row's neighbors, ragged, zero if there are none: (R, D) float32, no gradient."""
    out = torch.empty(len(offsets) - 1, table.shape[1], dtype=torch.float32, device=offsets.device)
    if mode == "mean":
        _launch(table, offsets, index, offsets, offsets, None, None, out, 0, write_self=False, includes_self=False)
    elif out.numel():
        lanes = min(LANES, triton.next_power_of_2(table.shape[1]))
        _ragged_max[(len(out), triton.cdiv(table.shape[1], lanes))](
            table, index, offsets, out, table.stride(0), DIM=table.shape[1], LANES=lanes, num_warps=1
        )
    return out


def gather_self_and_mean(
    table: Tensor, rows: Tensor, hood: Dense | Ragged, shift: Tensor, scale: Tensor, out: Tensor, mean_at: int
) -> None:
    """Write each row's own vector at column 0 of `out` and the mean at `mean_at`; a mean at 0 includes the row itself,
    which is then not written."""
    offsets, present = (hood.offsets, hood.offsets) if isinstance(hood, Ragged) else (None, hood.present)
    _launch(
        table,
        rows,
        hood.index,
        offsets,
        present,
        shift,
        scale,
        out,
        mean_at,
        write_self=mean_at > 0,
        includes_self=mean_at == 0,
    )


def _launch(
    table: Tensor,
    rows: Tensor,
    index: Tensor,
    offsets: Tensor | None,
    present: Tensor,
    shift: Tensor | None,
    scale: Tensor | None,
    out: Tensor,
    mean_at: int,
    *,
    write_self: bool,
    includes_self: bool,
) -> None:
    """Sums are float32. A pointer that the kernel does not read may be any tensor."""
    dim = table.shape[1]
    if not len(out) or not dim:
        return
    lanes = min(LANES, triton.next_power_of_2(dim))
    _gather[(len(out), triton.cdiv(dim, lanes))](
        table,
        rows,
        index,
        index if offsets is None else offsets,
        present,
        table if shift is None else shift,
        table if scale is None else scale,
        out,
        table.stride(0),
        out.stride(0),
        mean_at,
        SELF=write_self,
        INCLUDES_SELF=includes_self,
        SCALED=scale is not None,
        DIM=dim,
        SIZE=index.shape[1] if offsets is None else 0,
        LANES=lanes,
        num_warps=1,
    )


@triton.jit
def _rows(
    table,
    nodes,
    shift,
    scale,
    out,
    stride,
    out_stride,
    count,
    DIM: tl.constexpr,
    LANES: tl.constexpr,
    ROWS: tl.constexpr,
):
    r = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    column = tl.program_id(1) * LANES + tl.arange(0, LANES)
    inside = column < DIM
    both = (r < count)[:, None] & inside[None, :]
    node = tl.load(nodes + r, mask=r < count, other=0)
    x = tl.load(table + node[:, None] * stride + column[None, :], mask=both, other=0.0).to(tl.float32)
    shift = tl.load(shift + column, mask=inside, other=0.0)
    scale = tl.load(scale + column, mask=inside, other=0.0)
    tl.store(out + r[:, None] * out_stride + column[None, :], (x - shift[None, :]) * scale[None, :], mask=both)


def scaled_rows(table: Tensor, nodes: Tensor, shift: Tensor, scale: Tensor, out: Tensor) -> None:
    dim = table.shape[1]
    if len(nodes) and dim:
        lanes = min(LANES, triton.next_power_of_2(dim))
        _rows[(triton.cdiv(len(nodes), ROWS), triton.cdiv(dim, lanes))](
            table,
            nodes,
            shift,
            scale,
            out,
            table.stride(0),
            out.stride(0),
            len(nodes),
            DIM=dim,
            LANES=lanes,
            ROWS=ROWS,
            num_warps=4,
        )

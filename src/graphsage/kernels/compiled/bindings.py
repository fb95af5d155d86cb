"""Calls the kernels in C with contiguous int64 arrays (int32 or int64 for a graph's indices) and large enough buffers.

The torch form of the same name defines the result.
"""

import torch
from torch import Tensor

from graphsage.kernels.buffers import Buffers
from graphsage.kernels.compiled.library import call
from graphsage.kernels.neighborhood import Dense, Ragged

DTYPES = {torch.float32: 0, torch.float16: 1, torch.bfloat16: 2}
MODES = {"sum": 0, "mean": 1, "max": 2}
LINE = 16  # floats of a cache line: the columns of a panel
PART_ROWS = 1 << 17  # rows of a panel: 8 MB, which stay in cache
MOST_PARTS = 8  # panels of a table; with more, rows are visited too often
PART_USES = 6  # neighbors per panel and neighborhood from which on panels pay
TABLE_USES = 4  # neighbors per row of a table from which on its copy pays
LARGEST_SAMPLE = 4096  # a row's draws are on the stack


def sample_hop(
    indptr: Tensor, indices: Tensor, rows: Tensor, keys: Tensor, step: int, size: int, extend: bool
) -> tuple[Tensor, Tensor | None, Tensor, Tensor]:
    """`step` is added to a row's key before mixing. With `extend`: rows and keys, followed by those drawn."""
    count, rows, keys = len(rows), _int64(rows), _int64(keys)
    present, draw = torch.empty(count, dtype=torch.bool), torch.empty_like(keys)
    out_rows = keys.new_empty(count * (1 + size) if extend else (count, size))
    out_keys = torch.empty_like(out_rows) if extend else None
    call(
        "sample_hop",
        indptr.contiguous(),
        *_index(indices),
        len(indptr) - 1,
        len(indices),
        rows,
        keys,
        step,
        count,
        size,
        out_rows,
        out_keys,
        present,
        draw,
    )
    return out_rows, out_keys, present, draw


def readable(table: Tensor) -> bool:
    """Whether a kernel can read its rows: contiguous floats of a known dtype."""
    return table.dtype in DTYPES and table.stride(1) == 1 and table.device.type == "cpu"


def writable(out: Tensor) -> bool:
    return out.dtype == torch.float32 and readable(out)


def gather_self_and_mean(
    table: Tensor, rows: Tensor, hood: Dense | Ragged, shift: Tensor, scale: Tensor, out: Tensor, mean_at: int
) -> None:
    """A mean written at column 0 includes the row itself, which is then not written."""
    assert len(out) >= len(rows)
    assert out.shape[1] >= mean_at + table.shape[1]
    index, is_int64 = _index(hood.index)
    offsets, size = (_int64(hood.offsets), 0) if isinstance(hood, Ragged) else (None, hood.size)
    call(
        "gather_self_and_mean",
        table,
        DTYPES[table.dtype],
        table.stride(0),
        *table.shape,
        _int64(rows),
        index,
        is_int64,
        index.numel(),
        offsets,
        len(rows),
        size,
        hood.present.contiguous(),
        mean_at == 0,
        shift.contiguous(),
        scale.contiguous(),
        out,
        out.stride(0),
        mean_at,
    )


def scaled_rows(table: Tensor, nodes: Tensor, shift: Tensor, scale: Tensor, out: Tensor) -> None:
    assert len(out) >= len(nodes)
    assert out.shape[1] >= table.shape[1]
    call(
        "scaled_rows",
        table,
        DTYPES[table.dtype],
        table.stride(0),
        *table.shape,
        _int64(nodes),
        len(nodes),
        shift.contiguous(),
        scale.contiguous(),
        out,
        out.stride(0),
    )


def reduce_rows(table: Tensor, index: Tensor, offsets: Tensor, mode: str, buffers: Buffers) -> Tensor:
    """Over ragged neighborhoods."""
    (index, is_int64), out = _index(index), buffers.take(len(offsets) - 1, table.shape[1])
    about = (table, *table.shape, index, is_int64, len(index), _int64(offsets), len(out), MODES[mode])
    parts = -(-len(table) // PART_ROWS)
    if table.numel() > LINE * PART_ROWS and _panels_pay(parts, len(table), len(out), len(index)):
        bounds = torch.empty((parts + 1) * len(out), dtype=torch.int64)
        memory = buffers.take(len(table) + len(out) + 1, LINE)
        call("reduce_panels", *about, PART_ROWS, _aligned(memory), bounds, out)
        buffers.give_back(memory)
    else:
        call("reduce_rows", *about, out)
    return out


def _panels_pay(parts: int, table_rows: int, rows: int, neighbors: int) -> bool:
    return parts <= MOST_PARTS and neighbors >= max(TABLE_USES * table_rows, PART_USES * parts * rows)


def neighbor_lists(rows: Tensor, columns: Tensor, n: int) -> tuple[Tensor, Tensor]:
    if rows.stride() != columns.stride():
        rows, columns = rows.contiguous(), columns.contiguous()
    starts, indptr = (torch.empty(n + 1, dtype=torch.int64) for _ in range(2))
    between, lists = (torch.empty(len(rows), dtype=torch.int32) for _ in range(2))
    call("neighbor_lists", rows, columns, rows.stride(0), len(rows), n, starts, between, indptr, lists)
    found = int(indptr[-1])
    return indptr, lists if found == len(lists) else lists[:found].clone()


def gathered_maximum(table: Tensor, index: Tensor, buffers: Buffers) -> tuple[Tensor, Tensor]:
    best, winner = (buffers.take(len(index), table.shape[1], dtype) for dtype in (torch.float32, torch.int16))
    call("gathered_maximum", table, *table.shape, _int64(index), *index.shape, best, winner)
    return best, winner


def winners_sum(grad: Tensor, x: Tensor, index: Tensor, winner: Tensor, buffers: Buffers) -> Tensor:
    total = buffers.take(grad.shape[1], x.shape[1])
    call("winners_sum", grad, grad.shape[1], x, *x.shape, _int64(index), winner.contiguous(), *index.shape, total)
    return total


def lstm_step(
    gates: Tensor, table: Tensor, places: Tensor, bias: Tensor, before: Tensor | None, cells: Tensor, state: Tensor
) -> None:
    call("lstm_step", gates, table, len(table), _int64(places), bias, before, cells, state, *state.shape)


def lstm_step_gradient(
    gates: Tensor, before: Tensor | None, cells: Tensor, d_state: Tensor, d_cells: Tensor, d_gates: Tensor
) -> None:
    call("lstm_step_gradient", gates, before, cells, d_state, d_cells, d_gates, *d_state.shape)


def relu_l2norm(x: Tensor, relu: bool, normalize: bool, epsilon: float) -> Tensor:
    inverse = x.new_empty(len(x))
    call("relu_l2norm", x, *x.shape, relu, normalize, epsilon, inverse)
    return inverse


def relu_l2norm_gradient(
    grad: Tensor, y: Tensor, inverse: Tensor, relu: bool, normalize: bool, epsilon: float, out: Tensor
) -> None:
    call("relu_l2norm_gradient", grad, y, inverse, *y.shape, relu, normalize, epsilon, out)


def dropout(h: Tensor, threshold: int, factor: float, keys: Tensor, step: int, buffers: Buffers) -> Tensor:
    out = buffers.take_like(h)
    call("dropout", h, *h.shape, threshold, factor, _int64(keys), step, out)
    return out


def _aligned(memory: Tensor) -> Tensor:
    """The (rows, LINE) floats of (rows + 1, LINE) that begin at a cache line."""
    start = -memory.data_ptr() // 4 % LINE
    return memory.flatten()[start : start + memory.numel() - LINE]


def _int64(numbers: Tensor) -> Tensor:
    return numbers.to(torch.int64).contiguous()


def _index(index: Tensor) -> tuple[Tensor, bool]:
    """The index as int32 or int64, and whether it is int64."""
    index = index.contiguous() if index.dtype == torch.int32 else _int64(index)
    return index, index.dtype == torch.int64

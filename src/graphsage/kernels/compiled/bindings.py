"""What each kernel in C is called with: whole numbers of 64 bits one after the other (a graph's own may be of 32), and
buffers that are large enough. The torch form of the same name says what it computes."""

import torch
from torch import Tensor

from graphsage.kernels.buffers import Buffers
from graphsage.kernels.compiled.library import call
from graphsage.kernels.neighborhood import Dense, Ragged

KINDS = {torch.float32: 0, torch.float16: 1, torch.bfloat16: 2}
MODES = {"sum": 0, "mean": 1, "max": 2}
LINE = 16  # floats of a cache line: the columns that `reduce_panels` copies side by side
PART_ROWS = 1 << 17  # whose lines, 8 MB, stay in cache
MOST_PARTS = 8  # of a table, beyond which rows are visited too often
PART_USES = 6  # neighbors that each part should have in a neighborhood for the visit to pay
TABLE_USES = 4  # neighbors for each row of a table for its copy to pay
LARGEST_SAMPLE = 4096  # a row's draws lie on the stack


def hop(
    indptr: Tensor, indices: Tensor, rows: Tensor, keys: Tensor, step: int, size: int, grow: bool
) -> tuple[Tensor, Tensor | None, Tensor, Tensor]:
    """`step` is what leads from a row's key to its draw. With `grow`: rows and keys followed by those drawn."""
    count, rows, keys = len(rows), _whole(rows), _whole(keys)
    present, draw = torch.empty(count, dtype=torch.bool), torch.empty_like(keys)
    out_rows = keys.new_empty(count * (1 + size) if grow else (count, size))
    out_keys = torch.empty_like(out_rows) if grow else None
    call(
        "hop",
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
    """Whether rows of it can be read: floats of a known kind, one after the other."""
    return table.dtype in KINDS and table.stride(1) == 1 and table.device.type == "cpu"


def writable(out: Tensor) -> bool:
    return out.dtype == torch.float32 and readable(out)


def gather_self_and_mean(
    table: Tensor,
    rows: Tensor,
    hood: Dense | Ragged,
    mixed: bool,
    shift: Tensor,
    scale: Tensor,
    out: Tensor,
    mean_at: int,
) -> None:
    assert len(out) >= len(rows)
    assert out.shape[1] >= mean_at + table.shape[1]
    index, wide = _index(hood.index)
    offsets, size = (_whole(hood.offsets), 0) if isinstance(hood, Ragged) else (None, hood.size)
    call(
        "gather_self_and_mean",
        table,
        KINDS[table.dtype],
        table.stride(0),
        *table.shape,
        _whole(rows),
        index,
        wide,
        index.numel(),
        offsets,
        len(rows),
        size,
        hood.present.contiguous(),
        mixed,
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
        KINDS[table.dtype],
        table.stride(0),
        *table.shape,
        _whole(nodes),
        len(nodes),
        shift.contiguous(),
        scale.contiguous(),
        out,
        out.stride(0),
    )


def reduce_rows(table: Tensor, index: Tensor, offsets: Tensor, mode: str, buffers: Buffers) -> Tensor:
    """Over ragged neighborhoods."""
    (index, wide), out = _index(index), buffers.take(len(offsets) - 1, table.shape[1])
    about = (table, *table.shape, index, wide, len(index), _whole(offsets), len(out), MODES[mode])
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
    best, winner = (buffers.take(len(index), table.shape[1], kind) for kind in (torch.float32, torch.int16))
    call("gathered_maximum", table, *table.shape, _whole(index), *index.shape, best, winner)
    return best, winner


def winners_sum(grad: Tensor, x: Tensor, index: Tensor, winner: Tensor, buffers: Buffers) -> Tensor:
    total = buffers.take(grad.shape[1], x.shape[1])
    call("winners_sum", grad, grad.shape[1], x, *x.shape, _whole(index), winner.contiguous(), *index.shape, total)
    return total


def lstm_step(
    gates: Tensor, table: Tensor, places: Tensor, bias: Tensor, before: Tensor | None, cells: Tensor, state: Tensor
) -> None:
    call("lstm_step", gates, table, len(table), _whole(places), bias, before, cells, state, *state.shape)


def lstm_step_gradient(
    gates: Tensor, before: Tensor | None, cells: Tensor, d_state: Tensor, d_cells: Tensor, d_gates: Tensor
) -> None:
    call("lstm_step_gradient", gates, before, cells, d_state, d_cells, d_gates, *d_state.shape)


def relu_l2norm(x: Tensor, relu: bool, unit: bool, epsilon: float) -> Tensor:
    inverse = x.new_empty(len(x))
    call("relu_l2norm", x, *x.shape, relu, unit, epsilon, inverse)
    return inverse


def relu_l2norm_gradient(
    grad: Tensor, y: Tensor, inverse: Tensor, relu: bool, unit: bool, epsilon: float, out: Tensor
) -> None:
    call("relu_l2norm_gradient", grad, y, inverse, *y.shape, relu, unit, epsilon, out)


def dropout(h: Tensor, threshold: int, factor: float, keys: Tensor, step: int, buffers: Buffers) -> Tensor:
    out = buffers.take_like(h)
    call("dropout", h, *h.shape, threshold, factor, _whole(keys), step, out)
    return out


def _aligned(memory: Tensor) -> Tensor:
    """The part of (rows + 1, LINE) floats that begins at a cache line."""
    start = -memory.data_ptr() // 4 % LINE
    return memory.flatten()[start : start + memory.numel() - LINE]


def _whole(numbers: Tensor) -> Tensor:
    return numbers.to(torch.int64).contiguous()


def _index(index: Tensor) -> tuple[Tensor, bool]:
    """As it is where it is of 32 or 64 bits, and whether it is of 64."""
    index = index.contiguous() if index.dtype == torch.int32 else _whole(index)
    return index, index.dtype == torch.int64

"""Whatever a caller hands to a kernel, its form in C answers what its torch form does, or raises; nothing crashes."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from forms import both, gradients, same
from graphs import normal
from graphsage.kernels import backend
from graphsage.kernels.buffers import FRESH
from graphsage.kernels.compiled.library import library
from graphsage.kernels.dropout import dropout
from graphsage.kernels.gather import gather_max, gather_mean, gather_sum, gathered_maximum
from graphsage.kernels.lstm import lstm_over_rows
from graphsage.kernels.pool import winners_sum
from graphsage.kernels.random import Stream
from graphsage.kernels.relu_l2norm import relu_l2norm
from graphsage.kernels.rows import scaled_rows
from graphsage.kernels.sample import sample_and_extend, sample_last_hop
from graphsage.kernels.self_and_mean import gather_self_and_mean
from neighborhoods import dense, ragged

pytestmark = pytest.mark.skipif(
    backend.interpreted() or library() is None, reason="there is no compiler, or Triton runs"
)
ROWS = torch.tensor([3, 0, 3, 8])
INDEX = torch.tensor([[1, 2, 8], [0, 0, 0], [5, 4, 3], [7, 7, 1]])
PRESENT = torch.tensor([True, False, True, True])
OFFSETS = torch.tensor([0, 2, 2, 9, 12])
KEYS = Stream(0, "test").keys(torch.arange(4))
DENSE = dense(INDEX, PRESENT, KEYS, ROWS)
RAGGED = ragged(INDEX.flatten(), OFFSETS, KEYS, ROWS)
TABLE = normal(0, 9, 6)
ODD_TABLES: dict[str, Callable[[], Tensor]] = {
    "float64": lambda: TABLE.double(),
    "transposed": lambda: normal(0, 6, 9).t(),
    "every second column": lambda: normal(0, 9, 12)[:, ::2],
    "every second row": lambda: normal(0, 18, 6)[::2],
    "columns of a wider one": lambda: normal(0, 9, 30)[:, 7:13],
    "one row again and again": lambda: normal(0, 1, 6).expand(9, 6),
    "one column again and again": lambda: normal(0, 9, 1).expand(9, 6),
    "float16, columns of a wider one": lambda: normal(0, 9, 30)[:, 7:13].half(),
    "no columns": lambda: normal(0, 9, 6)[:, :0],
    "not numbers": lambda: TABLE.masked_fill(TABLE > 1, torch.nan),
    "infinite": lambda: TABLE.masked_fill(TABLE > 1, torch.inf).masked_fill(TABLE < -1, -torch.inf),
    "tiny": lambda: TABLE * 1e-42,
}


def agree(fast: object, plain: object) -> None:
    if isinstance(fast, tuple):
        for a, b in zip(fast, plain, strict=True):  # type: ignore[call-overload]
            agree(a, b)
    else:
        torch.testing.assert_close(fast, plain, rtol=1e-5, atol=1e-6, equal_nan=True)


@pytest.mark.parametrize("name", ODD_TABLES)
def test_tables_of_any_kind_and_order_are_read(name: str) -> None:
    table = ODD_TABLES[name]()
    dim = table.shape[1]
    shift, scale = normal(1, 2 * dim)[::2], normal(2, dim).exp()
    for neighborhood in (DENSE, RAGGED):
        for includes_self in (False, True):
            agree(*both(lambda n=neighborhood, m=includes_self: gather_self_and_mean([table], (n,), m, shift, scale)))
    agree(*both(lambda: scaled_rows([table], ROWS, shift, scale)))
    if dim and table.dtype == torch.float32:
        for reduce in (gather_mean, gather_sum, gather_max):
            agree(*both(lambda reduce=reduce: reduce(table, RAGGED)))
        agree(*both(lambda: gathered_maximum(table, INDEX, FRESH)[0]))


@pytest.mark.filterwarnings("ignore:The given NumPy array is not writable")
def test_a_file_that_may_only_be_read_is_a_table(tmp_path: Path) -> None:
    """A write to it would end the process."""
    np.save(tmp_path / "table.npy", TABLE.numpy())
    table = torch.from_numpy(np.load(tmp_path / "table.npy", mmap_mode="r"))
    for neighborhood in (DENSE, RAGGED):
        same(*both(lambda n=neighborhood: gather_self_and_mean([table], (n,), False, torch.ones(6), torch.ones(6))))
    assert torch.equal(table, TABLE)


@pytest.mark.parametrize("kind", [torch.int32, torch.int64])
def test_numbers_of_rows_may_be_of_either_width(kind: torch.dtype) -> None:
    one = torch.ones(6)
    rows, index, offsets = ROWS.to(kind), INDEX.to(kind), OFFSETS.to(kind)
    hoods = dense(index, PRESENT, KEYS, rows), ragged(index.flatten(), offsets, KEYS, rows)
    for neighborhood in hoods:
        same(*both(lambda n=neighborhood: gather_self_and_mean([TABLE], (n,), False, one, one)))
    same(*both(lambda: scaled_rows([TABLE], rows, one, one)))
    same(*both(lambda: gathered_maximum(TABLE, index, FRESH)))
    same(*both(lambda: lstm_over_rows(TABLE, normal(1, 8, 6), normal(2, 8, 2), normal(3, 8), index)))
    indptr = torch.tensor([0, 2, 2, 5, 9, 12, 12, 12, 12, 12])
    for draw in (sample_last_hop, sample_and_extend):
        for indices in (INDEX.flatten(), INDEX.flatten().int()):
            same(*both(lambda d=draw, i=indices: tuple(t.long() for t in d(indptr, i, rows, KEYS, 1, 2))))


def test_numbers_that_lie_apart_are_read() -> None:
    apart = torch.stack([INDEX, INDEX + 100], dim=2)[:, :, 0]
    rows = torch.stack([ROWS, ROWS + 100], dim=1)[:, 0]
    hood = dense(apart, torch.stack([PRESENT, ~PRESENT], dim=1)[:, 0], KEYS, rows)
    one = torch.ones(1).expand(6)
    expected = gather_self_and_mean([TABLE], (DENSE,), False, torch.ones(6), torch.ones(6))
    same(gather_self_and_mean([TABLE], (hood,), False, one, one), expected)
    assert torch.equal(gathered_maximum(TABLE, apart, FRESH)[0], gathered_maximum(TABLE, INDEX, FRESH)[0])
    indptr, keys = torch.arange(0, 20, 2)[:10].repeat_interleave(2)[::2], KEYS[:1].expand(4)
    same(*both(lambda: sample_last_hop(indptr, torch.arange(36)[::2] % 9, rows, keys, 1, 3)))


def test_offsets_need_not_begin_at_zero() -> None:
    later = ragged(INDEX.flatten(), OFFSETS[1:], KEYS[1:], ROWS[1:])
    same(*both(lambda: gather_self_and_mean([TABLE], (later,), True, torch.zeros(6), torch.ones(6))))


@pytest.mark.parametrize("kind", [torch.int32, torch.int64])
def test_offsets_are_not_cut_to_the_width_of_the_index(kind: torch.dtype) -> None:
    """More than 2^31 edges between fewer nodes: 64 bits of one beside 32 of the other."""
    beyond = ragged(INDEX.flatten().to(kind), torch.tensor([0, 2, (1 << 32) + 4]), KEYS[:2], ROWS[:2])
    with pytest.raises(IndexError, match="out of range"):
        gather_self_and_mean([TABLE], (beyond,), False, torch.ones(6), torch.ones(6))
    with pytest.raises(IndexError, match="out of range"):
        gather_sum(TABLE, beyond)


@pytest.mark.parametrize("order", ["rows", "columns"])
def test_results_go_into_buffers_of_any_width_and_order(order: str) -> None:
    shift, scale = normal(1, 6), normal(2, 6)
    wide = torch.full((5, 20), 7.0) if order == "rows" else torch.full((20, 5), 7.0).t()
    gather_self_and_mean([TABLE], (DENSE,), False, shift, scale, out=wide[:4])
    same(wide[:4, :12], gather_self_and_mean([TABLE], (DENSE,), False, shift, scale))
    assert (wide[4:] == 7).all()
    assert (wide[:, 12:] == 7).all()
    wide = torch.full((4, 9), 7.0) if order == "rows" else torch.full((9, 4), 7.0).t()
    scaled_rows([TABLE], ROWS, shift, scale, out=wide)
    same(wide[:, :6], scaled_rows([TABLE], ROWS, shift, scale))
    assert (wide[:, 6:] == 7).all()


@pytest.mark.parametrize("width", [11, 5])
def test_a_buffer_that_is_too_narrow_is_refused(width: int) -> None:
    with pytest.raises((AssertionError, RuntimeError)):
        gather_self_and_mean([TABLE], (DENSE,), False, torch.ones(6), torch.ones(6), out=torch.empty(4, width))


def test_nothing_comes_of_nothing() -> None:
    none, keys = torch.empty(0, dtype=torch.int64), KEYS[:0]
    nobody = [dense(INDEX[:0], PRESENT[:0], keys), ragged(none, torch.zeros(1).long(), keys)]
    for neighborhood in nobody:
        assert gather_self_and_mean([TABLE], (neighborhood,), True, torch.ones(6), torch.ones(6)).shape == (0, 6)
    assert scaled_rows([TABLE], none, torch.ones(6), torch.ones(6)).shape == (0, 6)
    assert gather_max(TABLE, nobody[1]).shape == (0, 6)
    assert gathered_maximum(TABLE, INDEX[:0], FRESH)[0].shape == (0, 6)
    assert winners_sum(normal(0, 0, 4), TABLE, INDEX[:0], torch.zeros(0, 4, dtype=torch.int16)).abs().sum() == 0
    assert winners_sum(normal(0, 4, 0), TABLE, INDEX, torch.zeros(4, 0, dtype=torch.int16)).shape == (0, 6)
    assert sample_last_hop(OFFSETS, INDEX.flatten(), none, keys, 1, 3)[0].shape == (0, 3)
    same(*both(lambda: sample_last_hop(torch.zeros(10).long(), none, ROWS, KEYS, 1, 3)))
    for shape in ((0, 3), (3, 0)):
        assert dropout(torch.ones(shape), 0.5, KEYS[: shape[0]], 0).shape == shape
        assert relu_l2norm(torch.ones(shape), True, True).shape == shape
    with pytest.raises(IndexError):
        gathered_maximum(TABLE, INDEX[:, :0], FRESH)


@pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf, 1e30, 1e-30, -0.0])
def test_odd_values_come_out_as_they_do_in_torch(value: float) -> None:
    h = normal(0, 4, 6)
    h[0, 2] = h[2] = value
    for relu, normalize in ((True, True), (True, False), (False, True)):
        agree(*both(lambda r=relu, u=normalize: gradients(lambda x: relu_l2norm(x, r, u), h, 1)))
    agree(*both(lambda: gradients(lambda x: dropout(x, 0.5, KEYS, 0), h, 1)))
    agree(*both(lambda: gathered_maximum(h, INDEX % 4, FRESH)[0]))
    agree(*both(lambda: lstm_over_rows(h, torch.ones(8, 6), torch.ones(8, 2), torch.zeros(8), INDEX % 4)))


@pytest.mark.parametrize("scale", [1e-6, 1e-3, 0.1, 0.2, 1.0])
def test_small_gates_keep_their_digits(scale: float) -> None:
    h = scale * torch.linspace(-1, 1, 40)[:, None]
    fast, plain = both(
        lambda: lstm_over_rows(h, torch.ones(4, 1), torch.zeros(4, 1), torch.zeros(4), torch.arange(40)[:, None])
    )
    torch.testing.assert_close(fast, plain, rtol=3e-6, atol=0)


@pytest.mark.parametrize("size", [4096, 4097])
def test_very_large_samples_are_the_same(size: int) -> None:
    """Below and above what fits the stack; the second node has fewer neighbors than are drawn."""
    indptr, indices = torch.tensor([0, 5000, 5010]), torch.arange(5010, dtype=torch.int32)
    nodes = torch.arange(2)
    fast, plain = both(lambda: sample_and_extend(indptr, indices, nodes, KEYS[:2], 1, size))
    assert all(torch.equal(a, b) for a, b in zip(fast, plain, strict=True))  # type: ignore[call-overload]


def test_a_winner_that_is_no_neighbor_is_an_error() -> None:
    for winner in (-1, 3):
        with pytest.raises((IndexError, RuntimeError), match="out of"):
            winners_sum(normal(0, 4, 2), TABLE, INDEX, torch.full((4, 2), winner, dtype=torch.int16))


def test_threads_of_python_do_not_disturb_each_other() -> None:
    """As many at once as a service may have, each of them with threads of its own, whose number changes meanwhile."""
    table, rows = normal(0, 500, 90), Stream(1, "test").keys(torch.arange(3000)).remainder(500)
    index = Stream(2, "test").keys(torch.arange(3000 * 5)).remainder(500).view(3000, 5)
    hood = dense(index, rows >= 0, rows, rows)
    one = torch.ones(90)

    def compute(turn: int) -> tuple[Tensor, ...]:
        torch.set_num_threads(1 + turn % 3)
        best, winner = gathered_maximum(table, index, FRESH)
        total = winners_sum(best, table, index, winner)
        return gather_self_and_mean([table], (hood,), False, one, one), best, winner, total

    expected = compute(0)
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(compute, range(12)):
            assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))

"""Memory of large matrices: aligned, and reused from step to step with one owner at a time and equal results."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from graphs import SEEDS, normal
from graphsage.kernels import buffers as module
from graphsage.kernels.buffers import CACHE_LINE, FRESH, HUGE_PAGE, STEP_SLACK, Buffers, aligned_memory, huge_page_table
from graphsage.kernels.relu_l2norm import linear_relu_l2norm, relu_l2norm

ROWS, WIDTH = 300, 128  # large enough to be kept


def place(tensor: Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


def test_memory_is_handed_out_again_after_it_was_given_back_and_not_before() -> None:
    buffers = Buffers()
    first = buffers.take(ROWS, WIDTH)
    assert place(buffers.take(ROWS, WIDTH)) != place(first)
    buffers.give_back(first)
    assert place(buffers.take(ROWS, WIDTH)) == place(first)


def test_a_part_of_a_matrix_does_not_free_the_whole() -> None:
    buffers = Buffers()
    first = buffers.take(ROWS, WIDTH)
    buffers.give_back(first[:10], first[:, :3])
    assert place(buffers.take(ROWS, WIDTH)) != place(first)


def test_the_next_step_takes_the_memory_of_the_last_one() -> None:
    buffers = Buffers()
    last = {place(buffers.take(ROWS, WIDTH)) for _ in range(3)}
    buffers.next_step()
    assert {place(buffers.take(ROWS, WIDTH)) for _ in range(3)} == last


def test_a_batch_of_a_few_rows_less_takes_the_same_memory_and_a_small_one_does_not() -> None:
    buffers = Buffers()
    at = place(buffers.take(ROWS, WIDTH))
    buffers.next_step()
    assert place(buffers.take(ROWS // 2, WIDTH)) != at
    assert place(buffers.take(ROWS - 7, WIDTH)) == at


def test_in_training_a_request_takes_a_free_buffer_several_times_its_size() -> None:
    buffers = Buffers(STEP_SLACK)
    large = buffers.take(ROWS, WIDTH)
    buffers.give_back(large)
    assert place(buffers.take(ROWS // 2, WIDTH)) == place(large)
    assert place(buffers.take(ROWS // 2, WIDTH)) != place(large)


def test_a_buffer_has_the_shape_and_dtype_asked_for_and_begins_at_a_cache_line() -> None:
    buffers = Buffers()
    for dtype in (torch.float32, torch.float64, torch.int16):
        taken = buffers.take(ROWS, WIDTH, dtype)
        assert taken.shape == (ROWS, WIDTH)
        assert taken.dtype == dtype
        assert taken.data_ptr() % 64 == 0
    assert buffers.take(0, 5).shape == (0, 5)
    assert buffers.take_like(torch.zeros(2, 3, dtype=torch.float64), width=7).shape == (2, 7)


def test_memory_that_no_step_takes_any_more_is_freed() -> None:
    buffers = Buffers()
    buffers.take(ROWS, WIDTH)
    for _ in range(2 * module.PATIENCE):
        buffers.next_step()
        buffers.take(3 * ROWS, WIDTH)
    assert buffers._buffers
    assert all(len(buffer.memory) > 2 * ROWS * WIDTH * 4 for buffer in buffers._buffers)


def test_fresh_memory_has_one_owner_for_ever() -> None:
    first = FRESH.take(ROWS, WIDTH)
    FRESH.give_back(first)
    FRESH.next_step()
    assert place(FRESH.take(ROWS, WIDTH)) != place(first)


@given(st.integers(1, 6), SEEDS, st.booleans(), st.booleans(), st.booleans())
def test_a_frozen_product_is_relu_unit_of_a_plain_one(
    rows: int, seed: int, relu: bool, normalize: bool, two: bool
) -> None:
    own, above, weight = (
        normal(seed, rows, 5),
        normal(seed + 3, rows, 2 if two else 0),
        normal(seed + 1, 4, 7 if two else 5),
    )
    grad = normal(seed + 2, rows, 4)
    outcomes = []
    for plain in (True, False):
        w, a = weight.clone().requires_grad_(), above.clone().requires_grad_()
        if plain:
            out = relu_l2norm(torch.cat([own, a], dim=1) @ w.t(), relu, normalize)
        else:
            out = linear_relu_l2norm(own, a if two else None, w, relu, normalize)
        kept = out.detach().clone()
        torch.autograd.backward(out, grad)
        outcomes.append((kept, w.grad, a.grad if two else None))
    torch.testing.assert_close(outcomes[0], outcomes[1])


def test_two_forward_passes_before_a_backward_pass_do_not_share_memory() -> None:
    buffers, x, weight = Buffers(), normal(0, ROWS, 5), normal(1, WIDTH, 5).requires_grad_()
    first = linear_relu_l2norm(x, None, weight, True, True, buffers)
    second = linear_relu_l2norm(-x, None, weight, True, True, buffers)
    assert place(first) != place(second)
    torch.autograd.backward(first.sum() + second.sum())
    expected = weight.detach().clone().requires_grad_()
    torch.autograd.backward(sum(relu_l2norm(v @ expected.t(), True, True).sum() for v in (x, -x)))  # type: ignore[arg-type]
    torch.testing.assert_close(weight.grad, expected.grad)


@pytest.mark.parametrize(
    ("size", "multiple"),
    [(1, CACHE_LINE), (5000, CACHE_LINE), (2 * HUGE_PAGE + 1, HUGE_PAGE), (5 * HUGE_PAGE, HUGE_PAGE)],
)
def test_memory_begins_at_a_cache_line_or_a_huge_page(size: int, multiple: int) -> None:
    multiple = multiple if hasattr(module.mmap, "MADV_HUGEPAGE") else CACHE_LINE
    memory = aligned_memory(size)
    memory[:] = 7
    assert (len(memory), memory.ctypes.data % multiple) == (size, 0)
    assert int(memory[-1]) == 7


def test_a_table_keeps_its_memory_alive() -> None:
    table = huge_page_table(3 * HUGE_PAGE // 64, 16)
    table[-1] = 2.0
    assert float(table[-1].sum()) == 32.0


def test_a_request_above_the_systems_memory_is_a_memory_error() -> None:
    with pytest.raises(MemoryError):
        aligned_memory(1 << 60)

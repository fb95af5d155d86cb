"""Memory that goes from step to step: the same numbers as fresh memory, and never two owners."""

from collections.abc import Iterator

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from graphs import SEEDS, normal
from graphsage.kernels import scratch
from graphsage.kernels.unit import frozen_relu_unit, relu_unit

ROWS, WIDTH = 300, 128  # large enough to lie in scratch memory


@pytest.fixture(autouse=True)
def reuse() -> Iterator[None]:
    with scratch.reuse():
        yield


def place(tensor: Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


def test_memory_is_taken_again_when_its_last_tensor_is_gone_and_not_before() -> None:
    first = scratch.take(ROWS, WIDTH)
    at, part = place(first), first[3:, ::2]
    assert place(scratch.take(ROWS, WIDTH)) != at
    del first
    assert place(scratch.take(ROWS, WIDTH)) != at
    del part
    assert place(scratch.take(ROWS, WIDTH)) == at


def test_a_batch_of_a_few_rows_less_takes_the_same_memory_and_a_small_one_does_not() -> None:
    at = place(scratch.take(ROWS, WIDTH))
    assert place(scratch.take(ROWS - 7, WIDTH)) == at
    assert place(scratch.take(ROWS // 2, WIDTH)) != at


def test_what_is_taken_has_the_asked_shape_and_type_and_begins_at_a_cache_line() -> None:
    for kind in (torch.float32, torch.float64, torch.int16):
        taken = scratch.take(ROWS, WIDTH, kind)
        assert taken.shape == (ROWS, WIDTH)
        assert taken.dtype == kind
        assert taken.data_ptr() % 64 == 0
    assert scratch.take(0, 5).shape == (0, 5)


def test_nothing_is_kept_after_the_outermost_block_and_what_is_in_use_stays_whole() -> None:
    with scratch.reuse():
        kept = scratch.take(ROWS, WIDTH).fill_(7)
    assert scratch._pool().buffers
    scratch._pool().users = 0  # as if the test's own block had ended
    with scratch.reuse():
        scratch.take(ROWS, WIDTH)
    assert not scratch._pool().buffers
    assert bool((kept == 7).all())
    scratch.take(ROWS, WIDTH)
    assert not scratch._pool().buffers
    scratch._pool().users = 1


def test_memory_that_no_step_takes_any_more_is_freed() -> None:
    scratch.take(ROWS, WIDTH)
    for _ in range(2 * scratch.PATIENCE):
        scratch.take(3 * ROWS, WIDTH)
    assert scratch._pool().buffers
    assert all(len(buffer.memory) > 2 * ROWS * WIDTH * 4 for buffer in scratch._pool().buffers)


@given(st.integers(1, 6), SEEDS, st.booleans(), st.booleans(), st.booleans())
def test_a_frozen_product_is_relu_unit_of_a_plain_one(rows: int, seed: int, relu: bool, unit: bool, two: bool) -> None:
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
            out = relu_unit(torch.cat([own, a], dim=1) @ w.t(), relu, unit)
        else:
            out = frozen_relu_unit(own, a if two else None, w, relu, unit)
        kept = out.detach().clone()
        torch.autograd.backward(out, grad)
        outcomes.append((kept, w.grad, a.grad if two else None))
    torch.testing.assert_close(outcomes[0], outcomes[1])


def test_two_forward_passes_before_a_backward_pass_do_not_share_memory() -> None:
    x, weight = normal(0, ROWS, 5), normal(1, WIDTH, 5).requires_grad_()
    first = frozen_relu_unit(x, None, weight, True, True)
    before = first.detach().clone()
    second = frozen_relu_unit(-x, None, weight, True, True)
    assert place(first) != place(second)
    assert torch.equal(first, before)
    torch.autograd.backward(first.sum() + second.sum())
    expected = weight.detach().clone().requires_grad_()
    torch.autograd.backward(sum(relu_unit(v @ expected.t(), True, True).sum() for v in (x, -x)))  # type: ignore[arg-type]
    torch.testing.assert_close(weight.grad, expected.grad)


def test_a_result_that_somebody_keeps_is_not_overwritten_by_later_steps() -> None:
    x, weight = normal(0, ROWS, 5), normal(1, WIDTH, 5).requires_grad_()
    kept = frozen_relu_unit(x, None, weight, True, True)
    torch.autograd.backward(kept.sum())
    expected, gradient = kept.detach().clone(), weight.grad
    assert gradient is not None
    for step in range(5):
        weight.grad = None
        torch.autograd.backward(frozen_relu_unit(step * x, None, weight, True, True).sum())
    assert torch.equal(kept, expected)


def test_a_step_without_a_backward_pass_frees_what_it_took() -> None:
    x, weight = normal(0, ROWS, 5), normal(1, WIDTH, 5).requires_grad_()
    out = frozen_relu_unit(x, None, weight, True, True)
    at = place(out)
    del out
    assert place(scratch.take(ROWS, WIDTH)) == at

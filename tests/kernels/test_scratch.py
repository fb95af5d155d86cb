"""Buffers that go from step to step: the same numbers as fresh memory, and never two owners."""

import gc
import weakref

import torch
from hypothesis import given
from hypothesis import strategies as st

from graphs import SEEDS, normal
from graphsage.kernels import scratch
from graphsage.kernels.unit import frozen_relu_unit, relu_unit


@given(st.integers(1, 6), SEEDS, st.booleans(), st.booleans())
def test_a_frozen_product_is_relu_unit_of_a_plain_one(rows: int, seed: int, relu: bool, unit: bool) -> None:
    x, weight, grad = normal(seed, rows, 5), normal(seed + 1, 4, 5), normal(seed + 2, rows, 4)
    outcomes = []
    for compute in (lambda w: frozen_relu_unit(x, w, relu, unit), lambda w: relu_unit(x @ w.t(), relu, unit)):
        learned = weight.clone().requires_grad_()
        out = compute(learned)
        kept = out.detach().clone()
        torch.autograd.backward(out, grad)
        outcomes.append((kept, learned.grad))
    torch.testing.assert_close(outcomes[0], outcomes[1])


def test_two_forward_passes_before_a_backward_pass_do_not_share_memory() -> None:
    x, weight = normal(0, 3, 5), normal(1, 4, 5).requires_grad_()
    first = frozen_relu_unit(x, weight, True, True)
    before = first.detach().clone()
    second = frozen_relu_unit(-x, weight, True, True)
    assert first.data_ptr() != second.data_ptr()
    assert torch.equal(first, before)
    torch.autograd.backward(first.sum() + second.sum())
    expected = weight.detach().clone().requires_grad_()
    torch.autograd.backward(sum(relu_unit(v @ expected.t(), True, True).sum() for v in (x, -x)))  # type: ignore[arg-type]
    torch.testing.assert_close(weight.grad, expected.grad)


def test_a_buffer_is_used_again_after_its_backward_pass_and_only_then() -> None:
    x, weight = normal(0, 7, 5), normal(1, 4, 5).requires_grad_()
    out = frozen_relu_unit(x, weight, True, True)
    place = out.data_ptr()
    assert scratch.take(7, 4).data_ptr() != place
    torch.autograd.backward(out.sum())
    assert place in {scratch.take(7, 4).data_ptr() for _ in range(4)}


def test_a_step_without_a_backward_pass_frees_what_it_took() -> None:
    x, weight = normal(0, 9, 5), normal(1, 4, 5).requires_grad_()
    out = frozen_relu_unit(x, weight, True, True)
    alive = weakref.ref(out.untyped_storage())
    gc.disable()
    try:
        del out
        assert alive() is None
    finally:
        gc.enable()

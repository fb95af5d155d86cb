"""Gather + reduce against a loop over neighbors, in every form of a neighborhood, with gradients."""

from collections.abc import Callable

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from graphs import SEEDS
from graphsage.kernels.gather import gather_max, gather_mean, gather_sum
from graphsage.kernels.neighborhood import Neighborhood
from neighborhoods import FORMS, case, dense, ragged

Kernel = Callable[[Tensor, Neighborhood], Tensor]
KERNELS: dict[str, tuple[Kernel, Callable[[Tensor], Tensor]]] = {
    "mean": (gather_mean, lambda rows: rows.mean(dim=0)),
    "sum": (gather_sum, lambda rows: rows.sum(dim=0)),
    "max": (gather_max, lambda rows: rows.amax(dim=0)),
}

every_kernel = pytest.mark.parametrize("name", list(KERNELS))
every_form = pytest.mark.parametrize("form", FORMS)


@every_kernel
@every_form
@given(seed=SEEDS, num_rows=st.integers(1, 6), size=st.integers(1, 5))
def test_fast_and_plain_kernels_agree(name: str, form: str, seed: int, num_rows: int, size: int) -> None:
    kernel, plain = KERNELS[name]
    made = case(form, seed, num_rows, size)
    result = kernel(made.table, made.neighborhood)
    expected = torch.stack([plain(made.table[row]) if row else torch.zeros(3) for row in made.lists])
    torch.testing.assert_close(result, expected)


@every_kernel
@every_form
def test_negative_rows_do_not_meet_a_zero_from_elsewhere(name: str, form: str) -> None:
    kernel, _ = KERNELS[name]
    made = case(form, 1)
    result = kernel(-1 - made.table.abs(), made.neighborhood)
    assert bool((result[made.neighborhood.present] <= -1).all())
    assert bool((result[~made.neighborhood.present] == 0).all())


@every_kernel
@every_form
@pytest.mark.parametrize("seed", range(4))
def test_gradients_equal_finite_differences(name: str, form: str, seed: int) -> None:
    kernel, _ = KERNELS[name]
    made = case(form, seed, dtype=torch.float64)
    table = made.table.requires_grad_()
    assert torch.autograd.gradcheck(lambda t: kernel(t, made.neighborhood), (table,))


def test_the_gradient_of_a_maximum_goes_to_one_neighbor_only() -> None:
    table = torch.ones(4, 1, requires_grad=True)
    index = torch.tensor([[2, 1, 2], [3, 3, 3]])
    result = gather_max(table, dense(index, torch.tensor([True, True]), torch.zeros(2).long()))
    torch.autograd.backward(result.sum())
    assert table.grad is not None
    assert table.grad.flatten().tolist() == [0, 0, 1, 1]


def test_rows_without_neighbors_send_no_gradient() -> None:
    for kernel, _ in KERNELS.values():
        table = torch.randn(3, 2, requires_grad=True)
        nobody = dense(torch.tensor([[0, 1]]), torch.tensor([False]), torch.zeros(1).long())
        torch.autograd.backward(kernel(table, nobody).sum())
        assert table.grad is not None
        assert not table.grad.any()


@every_kernel
def test_a_ragged_neighborhood_without_any_entry_gives_zeros(name: str) -> None:
    kernel, _ = KERNELS[name]
    nobody = ragged(torch.zeros(0).long(), torch.zeros(4).long(), torch.zeros(3).long())
    assert torch.equal(kernel(torch.randn(5, 2), nobody), torch.zeros(3, 2))


@every_kernel
@every_form
def test_half_precision_tables_give_half_precision(name: str, form: str) -> None:
    kernel, _ = KERNELS[name]
    made = case(form, 3)
    half = kernel(made.table.bfloat16(), made.neighborhood)
    assert half.dtype == torch.bfloat16
    torch.testing.assert_close(half.float(), kernel(made.table, made.neighborhood), atol=0.05, rtol=0.05)

"""Equation 3 on frozen rows against its plain form: multiply, gather, take the maximum; values and gradients."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from graphs import SEEDS, normal
from graphsage.kernels import pool
from graphsage.kernels.pool import frozen_relu_max, winners_sum


def plain(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, index: torch.Tensor, present: torch.Tensor
) -> torch.Tensor:
    return torch.relu((x @ weight.t() + bias)[index]).amax(dim=1) * present[:, None]


@given(seed=SEEDS, rows=st.integers(1, 70), size=st.integers(1, 5), dim=st.integers(1, 9))
def test_it_is_the_maximum_over_gathered_products(seed: int, rows: int, size: int, dim: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    x, weight, bias = normal(seed, 12, dim), normal(seed + 1, 4, dim), normal(seed + 2, 4)
    index = torch.randint(12, (rows, size), generator=generator)
    present = torch.rand(rows, generator=generator) < 0.8
    grad = normal(seed + 3, rows, 4)
    outcomes = []
    for form in (frozen_relu_max, plain):
        w, b = weight.clone().requires_grad_(), bias.clone().requires_grad_()
        out = form(x, w, b, index, present)
        kept = out.detach().clone()
        torch.autograd.backward(out, grad)
        outcomes.append((kept, w.grad, b.grad))
    torch.testing.assert_close(outcomes[0], outcomes[1], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("dim", [4, 6, 7, 11])
def test_summing_the_winners_in_pieces_of_rows_changes_nothing(dim: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "PIECE", 3)
    x, grad = normal(0, 9, dim), normal(1, 40, 5)
    index, winner = torch.randint(9, (40, 3)), torch.randint(3, (40, 5), dtype=torch.int16)
    expected = torch.zeros(5, dim)
    for row in range(40):
        for column in range(5):
            expected[column] += grad[row, column] * x[index[row, winner[row, column]]]
    torch.testing.assert_close(winners_sum(grad, x, index, winner), expected)

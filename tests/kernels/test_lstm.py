"""The LSTM over rows of a table against torch's own on gathered rows: values and every gradient."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from graphs import SEEDS, normal
from graphsage.kernels import lstm as lstm_module
from graphsage.kernels.lstm import lstm_over_rows


def outcome(lstm: nn.LSTM, h: Tensor, places: Tensor, grad: Tensor, fast: bool) -> list[Tensor | None]:
    lstm.zero_grad()
    rows = h.clone().requires_grad_()
    if fast:
        bias = lstm.bias_ih_l0 + lstm.bias_hh_l0
        last = lstm_over_rows(rows, lstm.weight_ih_l0, lstm.weight_hh_l0, bias, places)
    else:
        last = lstm(rows[places])[1][0][-1]
    kept = last.detach().clone()
    torch.autograd.backward(last, grad)
    return [kept, rows.grad, *(p.grad for p in lstm.parameters())]


@given(seed=SEEDS, rows=st.integers(1, 9), size=st.integers(1, 5), dim=st.integers(1, 4))
def test_it_equals_torchs_lstm_on_gathered_rows(seed: int, rows: int, size: int, dim: int) -> None:
    torch.manual_seed(seed)
    lstm = nn.LSTM(3, dim, batch_first=True).double()
    places = torch.randint(7, (rows, size))
    given = (lstm, normal(seed, 7, 3).double(), places, normal(seed + 1, rows, dim).double())
    torch.testing.assert_close(outcome(*given, fast=True), outcome(*given, fast=False))


def test_blocks_of_rows_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    lstm = nn.LSTM(3, 4, batch_first=True).double()
    given = (lstm, normal(0, 11, 3).double(), torch.randint(11, (23, 4)), normal(1, 23, 4).double())
    whole = [value.clone() for value in outcome(*given, fast=True) if value is not None]
    monkeypatch.setattr(lstm_module, "BLOCK_ROWS", 5)
    monkeypatch.setattr(lstm_module, "TABLE_ROWS", 3)
    torch.testing.assert_close(whole, outcome(*given, fast=True))

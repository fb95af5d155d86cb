"""Products with ReLU and normalization: who owns the memory."""

import pytest
import torch

from graphs import normal
from graphsage.kernels import buffers as buffers_module
from graphsage.kernels.buffers import Buffers
from graphsage.kernels.relu_l2norm import linear_relu_l2norm


def test_the_gradient_frees_neither_its_input_nor_its_result(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buffers_module, "SMALLEST", 1)
    buffers, weight = Buffers(), normal(0, 4, 4).requires_grad_()
    own = buffers.take(6, 4).fill_(1.0)
    y = linear_relu_l2norm(own, None, weight, True, True, buffers)
    torch.autograd.backward(y.sum())
    later = {buffers.take(6, 4).data_ptr() for _ in range(4)}
    assert not later & {own.data_ptr(), y.data_ptr()}

"""Kernels that have a Triton form only, against their torch form.

On a GPU (`make test-gpu`), and on any machine by Triton's interpreter (TRITON_INTERPRET=1, part of `make test`).
"""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from forms import SIZES, both, few, gradients, same
from graphs import SEEDS, normal
from graphsage.kernels import backend
from graphsage.kernels.gather import gather_relu_max
from graphsage.kernels.linear_without_input_grad import linear_without_input_grad
from graphsage.kernels.lstm import recur
from graphsage.kernels.neighborhood import Consecutive
from graphsage.kernels.random import Stream, permute
from graphsage.kernels.self_and_mean import self_and_mean
from graphsage.kernels.sequences import permutations
from graphsage.kernels.softmax import softmax_cross_entropy

pytestmark = pytest.mark.skipif(not backend.has_triton(), reason="Triton is not installed")
DEVICES = [
    pytest.param("cuda", marks=[pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")]),
    pytest.param("cpu", marks=pytest.mark.skipif(not backend.interpreted(), reason="TRITON_INTERPRET is not 1")),
]
every_device = pytest.mark.parametrize("device", DEVICES)


CONSECUTIVE = st.tuples(st.integers(1, 4), SIZES, st.integers(0, 3), SEEDS)


def consecutive(rows: int, size: int, gap: int, seed: int, device: str) -> tuple[Tensor, Consecutive]:
    present = (normal(seed, rows) > -0.5).to(device)
    neighborhood = Consecutive(rows + gap, size, present, torch.zeros(rows, dtype=torch.int64, device=device))
    return normal(seed + 1, rows + gap + rows * size + gap, 5).to(device), neighborhood


@every_device
@pytest.mark.parametrize("includes_self", [False, True])
@few
@given(case=CONSECUTIVE)
def test_joined_rows_agree(device: str, includes_self: bool, case: tuple[int, int, int, int]) -> None:
    h, neighborhood = consecutive(*case, device)
    same(*both(lambda: gradients(lambda x: self_and_mean(x, neighborhood, includes_self), h, case[3])))


@every_device
@few
@given(case=CONSECUTIVE)
def test_pooled_rows_agree(device: str, case: tuple[int, int, int, int]) -> None:
    h, neighborhood = consecutive(*case, device)
    bias = normal(case[3] + 2, 5).to(device).requires_grad_()

    def compute() -> tuple[Tensor, Tensor, Tensor]:
        bias.grad = None
        out, grad = gradients(lambda x: gather_relu_max(x, neighborhood, bias), h, case[3])
        assert bias.grad is not None
        return out, grad, bias.grad

    same(*both(compute))


@every_device
@pytest.mark.parametrize("gap", [0, 2])
def test_the_recurrent_part_is_that_of_torchs_lstm(device: str, gap: int) -> None:
    rows, size, dim, inputs = 4, 5, 3, 6
    lstm = torch.nn.LSTM(inputs, dim, batch_first=True).to(device)
    x = normal(0, gap + rows * size + gap, inputs).to(device)
    order = permutations(Stream(1, "test").keys(torch.arange(rows, device=device)), size)

    def ours() -> Tensor:
        return recur(x @ lstm.weight_ih_l0.t(), lstm.weight_hh_l0, lstm.bias_ih_l0 + lstm.bias_hh_l0, order, gap)

    def theirs() -> Tensor:
        places = gap + torch.arange(rows, device=device)[:, None] * size + order
        return lstm(x[places])[1][0][-1]

    outcomes = []
    for compute in (ours, theirs):
        lstm.zero_grad()
        with torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
            last = compute()
            torch.autograd.backward((last * normal(5, rows, dim).to(device)).sum())
        outcomes.append((last.detach(), *(parameter.grad.clone() for parameter in lstm.parameters())))
    same(*outcomes)


@every_device
@pytest.mark.parametrize(("weight_decay", "clip"), [(0.0, 0.0), (0.1, 0.0), (0.0, 0.3)])
def test_adam_is_that_of_torch(device: str, weight_decay: float, clip: float) -> None:
    from graphsage.execution.adam import Adam

    modules = [torch.nn.Linear(5, 3).to(device) for _ in range(2)]
    modules[1].load_state_dict(modules[0].state_dict())
    ours = Adam(modules[0], 0.05, weight_decay=weight_decay, clip=clip)
    assert ours.on_device
    theirs = torch.optim.Adam(modules[1].parameters(), 0.05, weight_decay=weight_decay)
    for step in range(6):
        for module, optimizer in zip(modules, (ours, theirs), strict=True):
            optimizer.zero_grad()
            torch.autograd.backward(module(normal(step, 4, 5).to(device)).square().sum())
            if clip and optimizer is theirs:
                torch.nn.utils.clip_grad_value_(module.parameters(), clip)
            if step == 3:
                optimizer.param_groups[0]["lr"] = 0.01  # a rate changed on the way counts
            optimizer.step()
    for a, b in zip(modules[0].parameters(), modules[1].parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)


@every_device
@pytest.mark.parametrize("classes", [1, 2, 41])
def test_cross_entropy_agrees(device: str, classes: int) -> None:
    scores, truth = 3 * normal(0, 6, classes).to(device), torch.arange(6, device=device) % classes
    same(*both(lambda: gradients(lambda x: softmax_cross_entropy(x, truth)[None], scores, 1)))


@every_device
def test_a_product_of_half_precision_rows_sums_in_float32(device: str) -> None:
    x, weight = normal(0, 9, 8).to(device, torch.bfloat16), normal(1, 4, 6).to(device)
    x[:, 6:] = 0
    weight.requires_grad_()
    out = linear_without_input_grad(x, weight)
    assert out.dtype == torch.float32
    expected = x[:, :6].float() @ weight.detach().bfloat16().float().t()
    torch.testing.assert_close(out, expected, rtol=1e-5, atol=1e-5)
    grad = normal(2, 9, 4).to(device)
    torch.autograd.backward(out, grad)
    torch.testing.assert_close(weight.grad, grad.bfloat16().float().t() @ x[:, :6].float(), rtol=1e-5, atol=1e-4)


@every_device
@pytest.mark.parametrize("n", [1, 2, 5, 64, 1000])
def test_permutations_agree(device: str, n: int) -> None:
    fast, plain = both(lambda: permute(torch.arange(n, device=device), n, Stream(3, "test").key))
    assert torch.equal(fast, plain)  # type: ignore[arg-type]
    assert sorted(fast.tolist()) == list(range(n))  # type: ignore[attr-defined]

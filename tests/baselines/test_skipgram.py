import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from graphs import SEEDS
from graphsage.baselines.skipgram import SkipGram
from graphsage.losses import unsupervised_loss


def plain_step(target: Tensor, context: Tensor, u: Tensor, v: Tensor, n: Tensor, lr: float, fresh: Tensor) -> None:
    """One step of gradient descent in place, by autograd. Rows that are not `fresh` do not move."""
    t, c = target.clone().requires_grad_(), context.clone().requires_grad_()
    torch.autograd.backward(unsupervised_loss(t[u], c[v], c[n]))
    assert t.grad is not None
    assert c.grad is not None
    target -= lr * t.grad * fresh[:, None]
    context -= lr * c.grad * fresh[:, None]


@given(st.integers(1, 9), st.integers(1, 5), st.booleans(), SEEDS)
def test_fast_and_plain_steps_agree(batch: int, negatives: int, some_frozen: bool, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    n = 6  # fewer nodes than rows of a batch: the same row is met several times in one step
    target, context = (torch.randn(n, 4, generator=generator, dtype=torch.float64) for _ in range(2))
    fresh = torch.rand(n, generator=generator) < 0.5 if some_frozen else torch.ones(n, dtype=torch.bool)
    plain = target.clone(), context.clone()
    fast = SkipGram(target.clone(), context.clone(), 0.7, fresh if some_frozen else None)
    for _ in range(3):
        u = torch.randint(n, (batch,), generator=generator)
        c = torch.randint(n, (batch + negatives,), generator=generator)
        fast.step(u, c)
        plain_step(*plain, u, c[:batch], c[batch:], 0.7, fresh)
    torch.testing.assert_close(fast.target, plain[0], rtol=0, atol=1e-12)
    torch.testing.assert_close(fast.context, plain[1], rtol=0, atol=1e-12)


def test_a_step_worked_out_by_hand() -> None:
    target, context = torch.tensor([[1.0], [0.0]]), torch.tensor([[0.0], [2.0]])
    SkipGram(target, context, lr=1.0).step(torch.tensor([0]), torch.tensor([1, 0]))
    sigmoid = 1 / (1 + torch.exp(torch.tensor(-2.0)))
    assert float(target[0]) == pytest.approx(float(1 - (sigmoid - 1) * 2 - 0.5 * 0))
    assert float(context[1]) == pytest.approx(float(2 - (sigmoid - 1) * 1))
    assert float(context[0]) == pytest.approx(-0.5)
    assert float(target[1]) == 0.0


def test_steps_are_made_with_one_thread_and_the_others_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second thread made them ten times as slow where it has to be woken for each of them."""
    seen: list[int] = []
    monkeypatch.setattr(SkipGram, "step", lambda *_: seen.append(torch.get_num_threads()))
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        none = torch.zeros(2, 0, dtype=torch.int64)
        SkipGram(torch.zeros(1, 1), torch.zeros(1, 1), 0.1).steps(none, none)
        assert (seen, torch.get_num_threads()) == ([1, 1], 2)
    finally:
        torch.set_num_threads(before)


@pytest.mark.gpu
def test_replayed_steps_equal_single_ones() -> None:
    generator = torch.Generator().manual_seed(0)
    tables = [torch.randn(50, 8, generator=generator, dtype=torch.float64) for _ in range(2)]
    u = torch.randint(50, (200, 16), generator=generator)
    c = torch.randint(50, (200, 20), generator=generator)
    there = SkipGram(tables[0].cuda(), tables[1].cuda(), 0.1)
    there.steps(u.cuda(), c.cuda())
    here = SkipGram(tables[0].clone(), tables[1].clone(), 0.1)
    here.steps(u, c)
    torch.testing.assert_close(there.target.cpu(), here.target, rtol=0, atol=1e-9)
    torch.testing.assert_close(there.context.cpu(), here.context, rtol=0, atol=1e-9)

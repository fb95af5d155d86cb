"""The objectives against numbers worked out by hand."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from graphs import SEEDS, normal
from graphsage.losses import sigmoid_loss, softmax_loss, supervised_loss, unsupervised_loss


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


@given(st.integers(1, 9), st.integers(1, 30))
def test_loss_of_zero_vectors_is_log_two_per_term(pairs: int, negatives: int) -> None:
    zero = torch.zeros(pairs, 4)
    expected = pytest.approx((1 + negatives) * math.log(2), rel=1e-5)
    assert float(unsupervised_loss(zero, zero, torch.zeros(negatives, 4))) == expected
    assert float(unsupervised_loss(zero, zero, torch.zeros(pairs, negatives, 4))) == expected


def test_equation_1_worked_out_by_hand() -> None:
    z_u = torch.tensor([[1.0, 2.0], [0.0, 1.0]])
    z_v = torch.tensor([[0.5, -1.0], [3.0, 2.0]])
    z_n = torch.tensor([[1.0, 0.0], [0.0, -1.0], [1.0, 1.0]])
    first = -math.log(sigmoid(-1.5)) - sum(math.log(sigmoid(-x)) for x in (1.0, -2.0, 3.0))
    second = -math.log(sigmoid(2.0)) - sum(math.log(sigmoid(-x)) for x in (0.0, -1.0, 1.0))
    assert float(unsupervised_loss(z_u, z_v, z_n)) == pytest.approx((first + second) / 2, rel=1e-6)
    only_second = unsupervised_loss(z_u, z_v, z_n, torch.tensor([False, True]))
    assert float(only_second) == pytest.approx(second, rel=1e-6)


@given(SEEDS, st.integers(1, 6), st.integers(1, 6))
def test_shared_and_per_pair_negatives_agree_when_they_are_equal(seed: int, pairs: int, negatives: int) -> None:
    z_u, z_v, z_n = normal(seed, pairs, 3), normal(seed + 1, pairs, 3), normal(seed + 2, negatives, 3)
    shared = unsupervised_loss(z_u, z_v, z_n)
    torch.testing.assert_close(unsupervised_loss(z_u, z_v, z_n.expand(pairs, -1, -1)), shared)


@given(SEEDS, st.integers(0, 5))
def test_the_mask_leaves_pairs_out_as_if_they_were_not_there(seed: int, kept: int) -> None:
    z_u, z_v, z_n = normal(seed, 5, 3), normal(seed + 1, 5, 3), normal(seed + 2, 4, 3)
    valid = torch.arange(5) < kept
    loss = unsupervised_loss(z_u, z_v, z_n, valid)
    if kept:
        torch.testing.assert_close(loss, unsupervised_loss(z_u[:kept], z_v[:kept], z_n))
    else:
        assert float(loss) == 0


@pytest.mark.parametrize("size", [1e3, 1e9, 1e18])
def test_extreme_values_stay_finite_and_so_do_gradients(size: float) -> None:
    for sign in (1, -1):
        z_u = torch.full((2, 1), size).requires_grad_()
        loss = unsupervised_loss(z_u, torch.full((2, 1), sign * size), torch.full((3, 1), -sign * size))
        torch.autograd.backward(loss)
        assert math.isfinite(float(loss.detach()))
        assert z_u.grad is not None
        assert bool(torch.isfinite(z_u.grad).all())
    scores, truth = torch.tensor([[size, -size]]), torch.tensor([[0, 1]])
    assert math.isfinite(float(sigmoid_loss(scores, truth)))
    assert math.isfinite(float(softmax_loss(scores, torch.tensor([1]))))


def test_softmax_loss_worked_out_by_hand() -> None:
    scores = torch.tensor([[1.0, 2.0, 0.0], [0.0, 0.0, 0.0]])
    first = math.log(math.e + math.e**2 + 1) - 2
    assert float(softmax_loss(scores, torch.tensor([1, 2]))) == pytest.approx((first + math.log(3)) / 2)


def test_sigmoid_loss_is_the_mean_over_nodes_and_labels() -> None:
    scores = torch.tensor([[1.0, -2.0], [0.0, 3.0]])
    truth = torch.tensor([[1, 1], [0, 1]], dtype=torch.uint8)
    terms = [sigmoid(1.0), sigmoid(-2.0), 1 - sigmoid(0.0), sigmoid(3.0)]
    assert float(sigmoid_loss(scores, truth)) == pytest.approx(-sum(map(math.log, terms)) / 4)


def test_the_shape_of_the_labels_chooses_the_loss() -> None:
    scores = normal(0, 3, 2)
    classes, labels = torch.tensor([0, 1, 1]), torch.tensor([[1, 0], [1, 1], [0, 0]], dtype=torch.uint8)
    assert torch.equal(supervised_loss(scores, classes), softmax_loss(scores, classes))
    assert torch.equal(supervised_loss(scores, labels), sigmoid_loss(scores, labels))

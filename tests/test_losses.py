"""The objectives against numbers worked out by hand."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from graphs import SEEDS, normal
from graphsage.losses import (
    REGRESSION_LOSSES,
    contrastive_loss,
    regression_loss,
    sigmoid_loss,
    softmax_loss,
    supervised_loss,
    unsupervised_loss,
)


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


def test_the_weight_of_a_nodes_class_multiplies_its_term() -> None:
    scores, classes = torch.tensor([[1.0, 0.0], [0.0, 0.0], [0.0, 3.0]]), torch.tensor([0, 1, 0])
    each = torch.stack([softmax_loss(scores[i : i + 1], classes[i : i + 1]) for i in range(3)])
    weights = torch.tensor([2.0, 0.5])
    torch.testing.assert_close(softmax_loss(scores, classes, weights), (each * weights[classes]).mean())


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


def test_infonce_worked_out_by_hand() -> None:
    z_u = torch.tensor([[2.0, 0.0], [0.0, 5.0], [3.0, 4.0]])
    z_v = torch.tensor([[1.0, 0.0], [0.6, 0.8], [0.0, -1.0]])
    u, v = torch.tensor([1, 2, 3]), torch.tensor([4, 5, 6])
    s = [[1.0, 0.6, 0.0], [0.0, 0.8, -1.0], [0.6, 1.0, -0.8]]  # cosines
    e = [[math.exp(x / 0.5) for x in row] for row in s]
    from_u = [-math.log(e[i][i] / sum(e[i])) for i in range(3)]
    from_v = [-math.log(e[i][i] / sum(row[i] for row in e)) for i in range(3)]
    expected = sum(from_u + from_v) / 6
    assert float(contrastive_loss(z_u, z_v, u, v, 0.5)) == pytest.approx(expected, rel=1e-6)
    # u_3 is v_1, and v_2 is v_3: these are no negatives of each other
    u, v = torch.tensor([1, 2, 4]), torch.tensor([4, 5, 5])
    from_u = [
        -math.log(e[0][0] / sum(e[0])),
        -math.log(e[1][1] / (e[1][0] + e[1][1])),
        -math.log(e[2][2] / e[2][2]),
    ]
    from_v = [
        -math.log(e[0][0] / (e[0][0] + e[1][0])),
        -math.log(e[1][1] / (e[0][1] + e[1][1] + e[2][1])),
        -math.log(e[2][2] / (e[0][2] + e[1][2] + e[2][2])),
    ]
    expected = sum(from_u + from_v) / 6
    assert float(contrastive_loss(z_u, z_v, u, v, 0.5)) == pytest.approx(expected, rel=1e-6)


@given(SEEDS, st.integers(1, 12), st.integers(1, 5))
def test_infonce_does_not_depend_on_the_order_of_the_batch_or_the_lengths(seed: int, pairs: int, nodes: int) -> None:
    z_u, z_v = normal(seed, pairs, 3), normal(seed + 1, pairs, 3)
    generator = torch.Generator().manual_seed(seed)
    u, v = torch.randint(nodes, (2, pairs), generator=generator)
    order = torch.randperm(pairs, generator=generator)
    loss = contrastive_loss(z_u, z_v, u, v, 0.3)
    torch.testing.assert_close(contrastive_loss(z_u[order], z_v[order], u[order], v[order], 0.3), loss)
    torch.testing.assert_close(contrastive_loss(3 * z_u, z_v / 2, u, v, 0.3), loss)
    assert float(loss) >= -1e-6


@given(SEEDS, st.integers(1, 8))
def test_a_batch_of_one_node_has_no_negatives(seed: int, pairs: int) -> None:
    same = torch.zeros(pairs, dtype=torch.int64)
    z_u = normal(seed, pairs, 3).requires_grad_()
    loss = contrastive_loss(z_u, normal(seed + 1, pairs, 3), same, same, 0.2)
    assert float(loss.detach()) == pytest.approx(0.0, abs=1e-6)
    torch.autograd.backward(loss)
    assert z_u.grad is not None
    assert torch.isfinite(z_u.grad).all()


def test_regression_losses_by_hand() -> None:
    """Errors 0.5, -2 and one unknown of four cells: means over all four."""
    values, targets = torch.tensor([[0.5, 1.0], [3.0, 2.0]]), torch.tensor([[0.0, 3.0], [float("nan"), 2.0]])
    assert float(regression_loss(values, targets, "mse")) == pytest.approx((0.25 + 4) / 4)
    assert float(regression_loss(values, targets, "mae")) == pytest.approx((0.5 + 2) / 4)
    assert float(regression_loss(values, targets, "huber")) == pytest.approx((0.125 + 1.5) / 4)


@pytest.mark.parametrize("name", REGRESSION_LOSSES)
def test_an_unknown_target_has_no_gradient(name: str) -> None:
    values = torch.tensor([[0.5, 1.0]], requires_grad=True)
    regression_loss(values, torch.tensor([[float("nan"), 3.0]]), name).backward()
    assert values.grad[0, 0] == 0
    assert values.grad[0, 1] < 0

"""From embeddings to class scores."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from graphs import normal
from graphsage.kernels.random import Stream
from graphsage.model.heads import ClassHead, RegressionHead


def test_scores_are_a_linear_map_of_z() -> None:
    head, z = ClassHead(3, 5), normal(0, 4, 3)
    torch.testing.assert_close(head(z), z @ head.linear.weight.t() + head.linear.bias)
    assert not head.linear.bias.any()


def test_the_learned_scale_multiplies_z() -> None:
    head, z = ClassHead(3, 5, scale=True), normal(0, 4, 3)
    torch.testing.assert_close(head(z), head.linear(z * torch.tensor(2.0).exp()))


def test_dropout_needs_training_and_keys() -> None:
    head, z = ClassHead(8, 5, dropout=0.5), normal(0, 4, 8)
    keys = Stream(0, "test").keys(torch.arange(4))
    assert torch.equal(head(z), head.linear(z))
    noisy = head(z, keys)
    assert not torch.allclose(noisy, head(z))
    assert torch.equal(noisy, head(z, keys))
    assert torch.equal(head.eval()(z, keys), head.linear(z))


def test_a_regression_head_scales_by_mean_and_deviation_of_known_targets() -> None:
    """Of 1, 3, unknown: mean 2, deviation 1. A constant target has the unit 0, and its value is predicted."""
    head = RegressionHead(3, 2)
    targets = torch.tensor([[1.0, 0.1], [3.0, 0.1], [float("nan"), 0.1]], dtype=torch.float64)
    head.fit(targets)
    assert head.shift.tolist() == [2.0, 0.1]
    assert head.unit.tolist() == [1.0, 0.0]
    assert head.standardized(targets)[:2].tolist() == [[-1.0, 0.0], [1.0, 0.0]]
    assert head.standardized(targets)[2, 0].isnan()
    assert head.values(torch.tensor([[0.5, 7.0]])).tolist() == [[2.5, 0.1]]


@given(st.sampled_from([1e-300, 1e-30, 1.0, 1e30, 9e37]), st.integers(0, 9))
def test_units_of_any_size_are_taken_back(size: float, seed: int) -> None:
    targets = size * torch.randn(7, 1, generator=torch.Generator().manual_seed(seed)).clamp(-1, 1).double()
    head = RegressionHead(3, 1)
    head.fit(targets)
    back = head.values(head.standardized(targets))
    torch.testing.assert_close(back / size, targets / size, rtol=1e-5, atol=1e-5)

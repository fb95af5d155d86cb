"""Degree features have known values."""

import math

import pytest
import torch

from graphsage.errors import DataError
from graphsage.features.degree import BINS, degree_features


def test_degree_features_are_the_logarithm_and_one_bin() -> None:
    features = degree_features(torch.tensor([0, 1, 2, 3, 6, 7]))
    assert features.shape == (6, 1 + BINS)
    assert features.dtype == torch.float32
    assert features[:, 0].tolist() == pytest.approx(
        [0, math.log(2), math.log(3), math.log(4), math.log(7), math.log(8)]
    )
    assert features[:, 1:].argmax(dim=1).tolist() == [0, 1, 1, 2, 2, 3]
    assert features[:, 1:].sum(dim=1).tolist() == [1] * 6


def test_bins_change_exactly_at_powers_of_two() -> None:
    for b in range(1, BINS):
        features = degree_features(torch.tensor([2**b - 2, 2**b - 1]))
        assert features[:, 1:].argmax(dim=1).tolist() == [b - 1, b]


def test_huge_degrees_share_the_last_bin() -> None:
    features = degree_features(torch.tensor([2**15 - 1, 2**20, 2**40]))
    assert features[:, 1:].argmax(dim=1).tolist() == [BINS - 1] * 3
    assert torch.isfinite(features).all()


def test_a_graph_without_nodes_has_no_rows() -> None:
    assert degree_features(torch.zeros(0, dtype=torch.int64)).shape == (0, 1 + BINS)


@pytest.mark.parametrize("degrees", [torch.tensor([1, -1]), torch.tensor([0.5]), torch.zeros(2, 2, dtype=torch.int64)])
def test_what_is_not_a_degree_is_refused(degrees: torch.Tensor) -> None:
    with pytest.raises(DataError, match="degrees must be"):
        degree_features(degrees)

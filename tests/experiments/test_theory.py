"""Clustering coefficients learned from random features (Corollary 2)."""

import pytest
import torch

from graphsage.experiments.theorem1 import clustering_coefficients
from graphsage.experiments.theory import learn, small_world


def r2(aggregator: str, steps: int) -> float:
    found = learn({"aggregator": aggregator, "nodes": 40, "steps": steps, "seed": 0, "device": "cpu"})
    return float(found["r2_same_graphs"])


def test_pool_learns_something_of_the_structure_and_the_same_every_time() -> None:
    learned = r2("pool", 80)
    assert learned > r2("pool", 0) + 0.05
    assert learned == r2("pool", 80)
    assert learned < 1


@pytest.mark.parametrize(("degree", "coefficient"), [(2, 0.0), (4, 0.5), (8, 9 / 14)])
def test_a_small_world_that_nothing_was_moved_in_has_the_coefficients_of_its_ring(
    degree: int, coefficient: float
) -> None:
    """3 (d - 2) / (4 (d - 1)) for a ring whose nodes are joined to their d nearest."""
    found = clustering_coefficients(small_world(30, degree, 0.0, 0))
    assert torch.allclose(found, torch.full_like(found, coefficient), atol=1e-6)

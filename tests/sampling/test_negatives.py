"""Negatives come from P_n, in proportion to degree to the power 0.75."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from graphs import SEEDS, chi_square_p
from graphsage.errors import DataError
from graphsage.kernels.random import Stream
from graphsage.sampling.negatives import SMOOTHING, Negatives


def test_frequencies_follow_the_smoothed_degrees() -> None:
    degrees = torch.tensor([0, 1, 16, 81, 0, 256, 3, 0])
    drawn = Negatives.of_degrees(degrees).draw(Stream(0, "test").keys(torch.arange(40_000)))
    counts = torch.bincount(drawn, minlength=8)
    some = degrees > 0
    assert chi_square_p(counts[some], degrees[some].double() ** 0.75) > 1e-4
    assert chi_square_p(counts[some], degrees[some].double()) < 1e-9
    assert SMOOTHING == 0.75


@given(st.lists(st.integers(0, 5), min_size=1, max_size=20), SEEDS)
def test_a_node_of_degree_zero_is_never_drawn(degrees: list[int], seed: int) -> None:
    degree = torch.tensor([*degrees, 1, 0])
    negatives = Negatives.of_degrees(degree)
    bits = torch.cat([Stream(seed, "test").keys(torch.arange(500)), torch.tensor([0, -1, 2**63 - 1, -(2**63)])])
    drawn = negatives.draw(bits)
    assert bool((degree[drawn] > 0).all())


def test_a_node_of_degree_zero_is_not_drawn_without_smoothing_either() -> None:
    drawn = Negatives.of_degrees(torch.tensor([0, 3, 0, 1]), smoothing=0.0).draw(
        Stream(0, "test").keys(torch.arange(200))
    )
    assert set(drawn.tolist()) == {1, 3}


@given(SEEDS)
def test_a_draw_depends_on_its_bits_only(seed: int) -> None:
    negatives = Negatives.of_degrees(torch.tensor([3, 1, 4, 1, 5]))
    bits = Stream(seed, "test").keys(torch.arange(12)).view(3, 4)
    drawn = negatives.draw(bits)
    assert drawn.shape == (3, 4)
    assert torch.equal(negatives.draw(bits[1]), drawn[1])


def test_a_graph_without_edges_has_no_negatives() -> None:
    with pytest.raises(DataError, match="no training node has an edge"):
        Negatives.of_degrees(torch.zeros(5, dtype=torch.int64))

"""The three types of neighborhood agree, and moving them to another table keeps their neighbors."""

import pytest
import torch
from hypothesis import given

from graphs import SEEDS
from graphsage.kernels.neighborhood import Consecutive, Dense, compact, with_repeats
from neighborhoods import case, dense, ragged

KEYS = torch.arange(3)
PRESENT = torch.tensor([True, False, True])


def test_consecutive_index_counts_up_from_the_start() -> None:
    hood = Consecutive(5, 2, PRESENT, KEYS)
    assert hood.index.tolist() == [[5, 6], [7, 8], [9, 10]]
    assert hood.counts.tolist() == [2, 0, 2]
    assert hood.num_rows == 3
    assert hood.rows == slice(0, 3)


def test_dense_rows_have_all_slots_or_none() -> None:
    assert dense(torch.zeros(3, 4).long(), PRESENT, KEYS).counts.tolist() == [4, 0, 4]


def test_ragged_rows_without_entries_are_not_present() -> None:
    hood = ragged(torch.tensor([7, 8, 9]), torch.tensor([0, 2, 2, 3]), KEYS)
    assert hood.counts.tolist() == [2, 0, 1]
    assert hood.present.tolist() == [True, False, True]


@pytest.mark.parametrize("form", ["dense", "ragged"])
@given(seed=SEEDS)
def test_a_compacted_neighborhood_reads_the_same_rows_each_once(form: str, seed: int) -> None:
    made = case(form, seed)
    nodes, (hood,) = compact((made.neighborhood,), len(made.table))
    assert nodes.tolist() == sorted(set(nodes.tolist()))
    assert torch.equal(nodes[hood.index], made.neighborhood.index)
    assert torch.equal(nodes[hood.rows], made.rows)
    assert torch.equal(hood.keys, made.neighborhood.keys)


@given(seed=SEEDS)
def test_spread_neighborhoods_keep_repeats_and_read_consecutive_rows(seed: int) -> None:
    first, second = case("dense", seed), case("dense", seed + 1, num_rows=2, size=4)
    hoods = (first.neighborhood, second.neighborhood)
    nodes, found = with_repeats(hoods)
    for before, after in zip(hoods, found, strict=True):
        assert isinstance(before, Dense)
        assert torch.equal(nodes[after.index], before.index)
        assert torch.equal(nodes[after.rows], before.rows)
        assert torch.equal(after.present, before.present)

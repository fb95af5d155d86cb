"""The three forms of a neighborhood say the same thing."""

import torch

from graphsage.kernels.neighborhood import Neighborhood

KEYS = torch.arange(3)
PRESENT = torch.tensor([True, False, True])


def test_consecutive_index_counts_up_from_the_start() -> None:
    neighborhood = Neighborhood.consecutive(5, 2, PRESENT, KEYS)
    assert neighborhood.index.tolist() == [[5, 6], [7, 8], [9, 10]]
    assert neighborhood.counts.tolist() == [2, 0, 2]
    assert neighborhood.num_rows == 3


def test_dense_rows_have_all_slots_or_none() -> None:
    neighborhood = Neighborhood.dense(torch.zeros(3, 4).long(), PRESENT, KEYS)
    assert neighborhood.counts.tolist() == [4, 0, 4]


def test_ragged_rows_without_entries_are_not_present() -> None:
    neighborhood = Neighborhood.ragged(torch.tensor([7, 8, 9]), torch.tensor([0, 2, 2, 3]), KEYS)
    assert neighborhood.counts.tolist() == [2, 0, 1]
    assert neighborhood.present.tolist() == [True, False, True]


def test_with_index_reads_other_rows_under_the_same_keys() -> None:
    consecutive = Neighborhood.consecutive(5, 2, PRESENT, KEYS)
    moved = consecutive.with_index(consecutive.index * 10)
    assert moved.index.tolist() == [[50, 60], [70, 80], [90, 100]]
    assert moved.start is None
    assert torch.equal(moved.keys, KEYS)
    assert torch.equal(moved.present, PRESENT)

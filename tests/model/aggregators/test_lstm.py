"""The LSTM aggregator sees its neighbors in a random order that its key decides."""

from dataclasses import replace
from itertools import permutations as all_permutations

import pytest
import torch
from hypothesis import given

from graphs import SEEDS, chi_square_p
from graphsage.kernels.random import Stream
from graphsage.kernels.sequences import groups, last_states, permutations, permuted
from graphsage.model.aggregators.lstm import LSTM_DIM, LSTMAggregator
from neighborhoods import as_ragged, case


@pytest.mark.parametrize("form", ["dense", "ragged"])
@given(seed=SEEDS)
def test_the_same_key_gives_the_same_result_and_another_key_another_order(form: str, seed: int) -> None:
    aggregator, example = LSTMAggregator(3, 4), case(form, seed, num_rows=8, size=6)
    first = aggregator(example.table, example.neighborhood)
    again = aggregator(example.table, example.neighborhood)
    other_keys = Stream(seed, "other").keys(torch.arange(8))
    other = aggregator(example.table, replace(example.neighborhood, keys=other_keys))
    assert torch.equal(first, again)
    assert example.neighborhood.counts.max() < 3 or not torch.allclose(first, other)


@pytest.mark.parametrize("size", [2, 3, 4])
def test_every_permutation_is_equally_likely(size: int) -> None:
    drawn = permutations(Stream(0, "test").keys(torch.arange(12_000)), size)
    number = {p: i for i, p in enumerate(all_permutations(range(size)))}
    counts = torch.bincount(torch.tensor([number[tuple(row)] for row in drawn.tolist()]), minlength=len(number))
    assert chi_square_p(counts) > 1e-4


def test_rows_in_small_groups_equal_rows_in_one() -> None:
    aggregator, example = LSTMAggregator(3, 4), case("ragged", 4, num_rows=12, size=4)
    whole = aggregator(example.table, example.neighborhood)
    some = last_states(aggregator.lstm, example.table, permuted(example.neighborhood), cells=6)
    torch.testing.assert_close(some, whole)


def test_groups_hold_every_row_once_and_stay_below_the_limit() -> None:
    counts = torch.randint(1, 9, (50,), generator=torch.Generator().manual_seed(0))
    order = torch.argsort(counts)
    found = groups(order, counts, cells=20)
    assert torch.equal(torch.cat(found), order)
    assert all(len(g) == 1 or len(g) * int(counts[g].max()) <= 20 for g in found)


def test_a_sequence_read_backwards_is_another_sequence() -> None:
    example = case("dense", 0)
    turned = replace(example.neighborhood, index=example.neighborhood.index.flip(1))
    aggregator = LSTMAggregator(3, 4)
    assert not torch.allclose(aggregator(example.table, example.neighborhood), aggregator(example.table, turned))


def test_the_small_width_is_the_default() -> None:
    assert LSTMAggregator(3).out_dim == LSTM_DIM == 128
    example = case("dense", 1)
    assert LSTMAggregator(3)(example.table, as_ragged(example)).shape == (5, 128)

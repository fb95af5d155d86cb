"""Counter-based random numbers: pure functions of a key, uniform, and independent of neighboring keys."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from graphs import SEEDS, chi_square_p
from graphsage.kernels.dropout import dropout
from graphsage.kernels.random import GOLDEN, Stream, below, derive, mix, mix_int, permute, uniform

INT64 = st.integers(-(2**63), 2**63 - 1)


@given(st.lists(INT64, min_size=1, max_size=20))
def test_mix_of_a_tensor_equals_mix_of_each_int(values: list[int]) -> None:
    before = torch.tensor(values)
    assert mix(before).tolist() == [mix_int(v) for v in values]
    assert before.tolist() == values


def test_mix_is_the_finalizer_of_splitmix64() -> None:
    # First outputs of the published generator from seed 1234567.
    published = [6457827717110365317, 3203168211198807973, 9817491932198370423]
    assert [mix_int(1234567 + (i + 1) * GOLDEN) & (2**64 - 1) for i in range(3)] == published


@given(INT64, st.integers(-(2**40), 2**40))
def test_derive_takes_an_int_or_a_tensor_counter_alike(key: int, counter: int) -> None:
    expected = mix_int(key + (counter + 1) * GOLDEN)
    assert derive(torch.tensor([key]), counter).tolist() == [expected]
    assert derive(torch.tensor([key]), torch.tensor([counter])).tolist() == [expected]


@given(SEEDS, st.permutations(range(12)))
def test_draws_do_not_depend_on_order_or_batch(seed: int, order: list[int]) -> None:
    stream = Stream(seed, "neighbors", 3)
    whole = stream.keys(torch.arange(12))
    assert torch.equal(stream.keys(torch.tensor(order)), whole[order])
    assert torch.equal(torch.cat([stream.keys(torch.arange(12)[i : i + 1]) for i in range(12)]), whole)


@given(SEEDS)
def test_streams_of_another_seed_purpose_or_epoch_differ(seed: int) -> None:
    streams = [
        Stream(seed, "neighbors"),
        Stream(seed + 1, "neighbors"),
        Stream(seed, "negatives"),
        Stream(seed, "neighbor"),
        Stream(seed, "neighbors", 1),
        Stream(seed, "neighbors", 2),
    ]
    keys = torch.stack([s.keys(torch.arange(50)) for s in streams])
    assert len(torch.unique(keys)) == keys.numel()
    assert Stream(seed, "walks", 4).key == Stream(seed, "walks", 4).key


@given(st.integers(1, 5000), INT64)
def test_permute_is_a_bijection(n: int, key: int) -> None:
    image = permute(torch.arange(n), n, key)
    assert torch.equal(image.sort().values, torch.arange(n))


@given(st.integers(2, 300), SEEDS)
def test_permute_of_some_positions_equals_those_of_all(n: int, seed: int) -> None:
    key = Stream(seed, "order").key
    some = torch.arange(0, n, 3)
    assert torch.equal(permute(some, n, key), permute(torch.arange(n), n, key)[some])


@pytest.mark.parametrize("n", range(2, 9))
def test_all_permutations_of_few_numbers_are_equally_likely(n: int) -> None:
    """For 7 and 8 numbers: all images of the first three."""
    places = n if n < 7 else 3
    cells = math.perm(n, places)
    keys = [Stream(0, "order", epoch).key for epoch in range(max(1000, 20 * cells))]
    images = torch.stack([permute(torch.arange(places), n, key) for key in keys])
    codes = (images * n ** torch.arange(places)).sum(dim=1)
    counts = torch.unique(codes, return_counts=True)[1]
    assert len(counts) == cells
    assert chi_square_p(counts) > 1e-4


@pytest.mark.parametrize("n", [16, 17, 40])
def test_a_position_goes_everywhere_equally_often(n: int) -> None:
    images = torch.stack([permute(torch.arange(n), n, Stream(0, "order", epoch).key) for epoch in range(600)])
    assert min(chi_square_p(torch.bincount(images[:, place], minlength=n)) for place in range(n)) > 1e-4


@given(st.lists(INT64, min_size=1, max_size=20), st.integers(1, 2**31 - 1))
def test_below_stays_in_range(bits: list[int], n: int) -> None:
    drawn = below(torch.tensor(bits), n)
    assert bool(((drawn >= 0) & (drawn < n)).all())
    assert torch.equal(drawn, below(torch.tensor(bits), torch.tensor(n)))


def test_below_reaches_both_ends_for_the_largest_n() -> None:
    n = 2**31 - 1
    assert below(torch.tensor([0, -1]), n).tolist() == [0, n - 1]


@pytest.mark.parametrize("n", [1, 2, 3, 7, 10, 129])
def test_below_is_uniform(n: int) -> None:
    drawn = below(Stream(1, "below").keys(torch.arange(100 * n + 20_000)), n)
    assert n == 1 or chi_square_p(torch.bincount(drawn, minlength=n)) > 1e-4


def test_uniform_is_uniform_in_zero_to_one() -> None:
    bits = Stream(2, "uniform").keys(torch.arange(50_000))
    x = uniform(bits)
    assert x.dtype == torch.float64
    assert float(x.min()) >= 0
    assert float(x.max()) < 1
    assert float(uniform(torch.tensor(-1))) < 1
    assert chi_square_p(np.histogram(x.numpy(), 50, (0, 1))[0]) > 1e-4


def tables_of_pairs() -> dict[str, tuple[torch.Tensor, torch.Tensor]]:
    """Pairs of draws that a careless hash would tie together."""
    count = torch.arange(60_000)
    keys = Stream(3, "pairs").keys(count)
    return {
        "next counter": (keys[:-1], keys[1:]),
        "counters 1024 apart": (keys[:-1024], keys[1024:]),
        "slots of a key": (derive(keys, 0), derive(keys, 1)),
        "parent and child": (keys, derive(keys, 0)),
        "next epoch": (Stream(3, "pairs", 1).keys(count), Stream(3, "pairs", 2).keys(count)),
        "next seed": (Stream(4, "pairs").keys(count), Stream(5, "pairs").keys(count)),
    }


@pytest.mark.parametrize("name", list(tables_of_pairs()))
@pytest.mark.parametrize("shift", [0, 29, 60], ids=["low bits", "middle bits", "high bits"])
def test_neighboring_draws_are_independent(name: str, shift: int) -> None:
    a, b = tables_of_pairs()[name]
    cells = ((a >> shift) & 15) * 16 + ((b >> shift) & 15)
    assert chi_square_p(torch.bincount(cells, minlength=256)) > 1e-4
    assert chi_square_p(torch.bincount(((a >> 60) & 15) * 16 + (b & 15), minlength=256)) > 1e-4


@pytest.mark.parametrize("p", [0.0, 0.2, 0.5, 0.9])
def test_dropout_keeps_the_expectation(p: float) -> None:
    h = torch.ones(4000, 20)
    dropped = dropout(h, p, Stream(6, "dropout").keys(torch.arange(4000)), 3)
    kept = 80_000 * (1 - p)
    assert set(np.unique(dropped.numpy()).round(4)) <= {0.0, np.float32(1 / (1 - p)).round(4)}
    spread = (80_000 * p * (1 - p)) ** 0.5
    assert abs(int((dropped > 0).sum()) - kept) <= 5 * spread
    assert float(dropped.mean()) == pytest.approx(1, abs=0.05)


@given(SEEDS)
def test_dropout_of_a_row_depends_on_its_key_only(seed: int) -> None:
    keys = Stream(seed, "dropout").keys(torch.arange(6))
    h = torch.ones(6, 8)
    assert torch.equal(dropout(h, 0.5, keys, 3)[2:4], dropout(h[2:4], 0.5, keys[2:4], 3))

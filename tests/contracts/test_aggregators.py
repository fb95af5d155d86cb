"""What every aggregator in AGGREGATORS promises. A new one needs its slow form in helpers/algorithms.py."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from algorithms import aggregate, array
from graphs import SEEDS
from graphsage.kernels.gather import gather_max, gather_mean
from graphsage.kernels.neighborhood import Neighborhood
from graphsage.model.aggregators import AGGREGATORS
from graphsage.model.aggregators.base import Aggregator
from neighborhoods import DIM, FORMS, Case, as_ragged, case, dense, ragged

every_name = pytest.mark.parametrize("name", list(AGGREGATORS))
every_form = pytest.mark.parametrize("form", FORMS)
UNORDERED = ("mean", "gcn", "pool", "meanpool")


def made(name: str, depth: int = 1) -> Aggregator:
    torch.manual_seed(len(name) + depth)
    return AGGREGATORS[name](DIM, 4, depth)


def call(aggregator: Aggregator, given: Case, neighborhood: Neighborhood | None = None) -> Tensor:
    result: Tensor = aggregator(given.table, neighborhood or given.neighborhood)
    return result


@every_name
@every_form
@given(seed=SEEDS, num_rows=st.integers(1, 6), size=st.integers(1, 5), depth=st.integers(1, 2))
def test_it_equals_the_papers_equation_node_by_node(
    name: str, form: str, seed: int, num_rows: int, size: int, depth: int
) -> None:
    aggregator, example = made(name, depth), case(form, seed, num_rows, size)
    result = call(aggregator, example).detach()
    assert result.shape == (num_rows, aggregator.out_dim)
    h = array(example.table)
    for row, neighbors in enumerate(example.lists):
        key = int(example.neighborhood.keys[row])
        expected = aggregate(name, aggregator, h[row], [h[u] for u in neighbors], key)
        torch.testing.assert_close(result[row].double(), torch.from_numpy(expected), atol=1e-5, rtol=1e-5)


REDUCE = {"mean": gather_mean, "max": gather_max}


@every_name
def test_forward_computes_what_the_class_declares(name: str) -> None:
    """Strategies rely on it: `reduction` over `message`, with the node itself if `includes_self`."""
    aggregator, example = made(name), case("dense", 3)
    hood = example.neighborhood
    if aggregator.reduction == "sequence":
        assert name not in UNORDERED
        return
    reduced = REDUCE[aggregator.reduction](aggregator.message(example.table), hood)
    if aggregator.includes_self:
        n = hood.counts[:, None]
        reduced = (n * reduced + aggregator.message(example.table)[hood.rows]) / (n + 1)
    torch.testing.assert_close(call(aggregator, example), reduced)


def test_the_small_model_has_the_papers_widths() -> None:
    """Appendix C: 512 for pool, 128 for the LSTM; the others are as wide as their input."""
    widths = {name: AGGREGATORS[name](DIM).out_dim for name in AGGREGATORS}
    assert widths == {"mean": DIM, "gcn": DIM, "pool": 512, "meanpool": 512, "lstm": 128}


@every_name
@every_form
@given(seed=SEEDS)
def test_a_row_without_neighbors_gives_zeros_and_never_nan(name: str, form: str, seed: int) -> None:
    aggregator, example = made(name), case(form, seed)
    result = call(aggregator, example)
    assert bool(torch.isfinite(result).all())
    alone = ~example.neighborhood.present
    if aggregator.includes_self:
        assert torch.equal(result[alone], example.table[example.rows][alone])
    else:
        assert not result[alone].any()


@every_name
def test_a_batch_where_nobody_has_neighbors_works(name: str) -> None:
    table, rows, keys = torch.randn(4, DIM), torch.arange(4), torch.arange(4)
    nobody = ragged(torch.zeros(0).long(), torch.zeros(5).long(), keys)
    silent = dense(rows[:, None].expand(4, 2), torch.zeros(4).bool(), keys)
    aggregator = made(name)
    expected = table if aggregator.includes_self else torch.zeros(4, aggregator.out_dim)
    torch.testing.assert_close(aggregator(table, nobody), expected)
    torch.testing.assert_close(aggregator(table, silent), expected)


@every_name
@pytest.mark.parametrize("form", ["dense", "consecutive"])
@given(seed=SEEDS)
def test_all_forms_give_the_same_result(name: str, form: str, seed: int) -> None:
    aggregator, example = made(name), case(form, seed)
    torch.testing.assert_close(call(aggregator, example), call(aggregator, example, as_ragged(example)))


@pytest.mark.parametrize("name", UNORDERED)
@given(seed=SEEDS, order=st.permutations(range(4)))
def test_neighbor_order_does_not_change_the_result(name: str, seed: int, order: list[int]) -> None:
    aggregator, example = made(name), case("dense", seed, size=4)
    reordered = replace(example.neighborhood, index=example.neighborhood.index[:, order])
    torch.testing.assert_close(call(aggregator, example), call(aggregator, example, reordered))


@every_name
@every_form
@pytest.mark.parametrize("seed", [0, 1])
def test_gradients_equal_finite_differences(name: str, form: str, seed: int) -> None:
    aggregator, example = made(name).double(), case(form, seed, num_rows=4, dtype=torch.float64)
    parameters = dict(aggregator.named_parameters())

    def run(table: Tensor, *weights: Tensor) -> Tensor:
        given = dict(zip(parameters, weights, strict=True))
        arguments = (table, example.neighborhood)
        result: Tensor = torch.func.functional_call(aggregator, given, arguments)
        return result

    inputs = (example.table.requires_grad_(), *(p.detach().requires_grad_() for p in parameters.values()))
    assert torch.autograd.gradcheck(run, inputs)


@every_name
def test_a_row_does_not_depend_on_the_other_rows(name: str) -> None:
    aggregator, example = made(name), case("dense", 5, num_rows=6)
    some = torch.tensor([4, 1])
    n = example.neighborhood
    part = dense(n.index[some], n.present[some], n.keys[some], some)
    torch.testing.assert_close(aggregator(example.table, part), call(aggregator, example)[some])


@pytest.mark.parametrize("name", ["mean", "gcn"])
@given(seed=SEEDS)
def test_an_average_commutes_with_scaling_columns(name: str, seed: int) -> None:
    example = case("ragged", seed)
    shift, scale = torch.tensor([1.0, -2.0, 0.5]), torch.tensor([2.0, 0.1, 3.0])
    after = (call(made(name), example) - shift) * scale
    before = made(name)((example.table - shift) * scale, example.neighborhood)
    present = example.neighborhood.present
    torch.testing.assert_close(after[present], before[present], atol=1e-5, rtol=1e-5)

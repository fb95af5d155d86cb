"""A layer of several relations adds up their results, each with weights of its own."""

import pytest
import torch
from hypothesis import given

from encoders import NAMES
from graphs import SEEDS, edge_lists, normal
from graphsage.errors import ConfigError
from graphsage.graph.build import from_edges
from graphsage.kernels.neighborhood import Related
from graphsage.model.aggregators import make_aggregator
from graphsage.model.encoder import Encoder, EncoderConfig
from graphsage.model.layer import SageLayer
from graphsage.sampling.minibatch import SamplingConfig, sample_minibatch, whole_graph

IN, OUT = 3, 4


@pytest.mark.parametrize("name", NAMES)
@given(edge_lists(), SEEDS)
def test_it_is_the_sum_of_separately_weighted_results(
    name: str, given_: tuple[int, list[tuple[int, int]]], seed: int
) -> None:
    n, edges = given_
    torch.manual_seed(seed)
    layer = SageLayer(IN, OUT, make_aggregator(name, IN, 4, 1), num_relations=2, activation=False, normalize=False)
    h, ((hood,),) = normal(seed, n, IN), whole_graph(from_edges(edges, n, direction="both"), 1)
    assert isinstance(hood, Related)
    weight, width = layer.weight.weight, layer.aggregator.out_dim  # type: ignore[union-attr]
    start = 0 if layer.aggregator.includes_self else IN
    expected = h[:, :start] @ weight[:, :start].t()
    for r, each in enumerate(hood.by_relation):
        columns = weight[:, start + r * width : start + (r + 1) * width]
        expected = expected + layer.aggregator(h, each) @ columns.t()
    torch.testing.assert_close(layer(h, hood), expected, atol=1e-5, rtol=1e-4)


def test_an_encoder_refuses_another_number_of_relations() -> None:
    edges, x = [(0, 1), (1, 2)], normal(0, 3, IN)
    one, two = (from_edges(edges, 3, direction=how) for how in ("in", "both"))
    encoder = Encoder(EncoderConfig(dim=4, relations=("in", "out")), IN)
    assert encoder(x, whole_graph(two, 2)).shape == (3, 4)
    with pytest.raises(ConfigError, match="the encoder aggregates 2 relations; got neighborhoods of 1"):
        encoder(x, whole_graph(one, 2))


@given(edge_lists(), SEEDS)
def test_every_relation_draws_its_own_number_of_its_own_neighbors(
    given_: tuple[int, list[tuple[int, int]]], seed: int
) -> None:
    n, edges = given_
    graph, targets = from_edges(edges, n, direction="both"), torch.arange(n)
    batch = sample_minibatch(graph, targets, [(1, 2), (3, 1)], seed)
    rows = targets
    for k in (2, 1):
        (hood,) = batch.neighborhoods[k - 1]
        nodes = torch.cat([rows, *(torch.empty(0).long(),)])
        below = []
        for each, size, lists in zip(hood.by_relation, ((1, 2), (3, 1))[k - 1], graph.by_relation, strict=True):
            assert each.index.shape == (len(rows), size)
            below.append(each.index)
            assert torch.equal(each.present, lists.degrees[rows] > 0)
        if k == 2:
            found = batch.rows
            assert torch.equal(found[: len(rows)], nodes)
            for each, lists in zip(below, graph.by_relation, strict=True):
                for row, drawn, has in zip(rows.tolist(), found[each].tolist(), lists.degrees[rows] > 0, strict=True):
                    assert set(drawn) <= (set(lists.neighbors(row).tolist()) if has else {row})
            rows = found


@pytest.mark.parametrize(
    ("sizes", "relations", "expected"),
    [
        ((), 1, [(25,), (10,)]),
        ((), 2, [(13, 13), (5, 5)]),
        ((), 6, [(5,) * 6, (2,) * 6]),
        ((9, 8, 7, 6), 2, [(9, 7), (8, 6)]),
    ],
)
def test_relations_share_the_sample_sizes_or_have_their_own(
    sizes: tuple[int, ...], relations: int, expected: list[tuple[int, ...]]
) -> None:
    assert list(SamplingConfig(relation_sizes=sizes).sizes(relations)) == expected


def test_other_numbers_of_sizes_are_refused() -> None:
    with pytest.raises(ConfigError, match="relation_sizes must hold 2 sizes, one per layer, for each of 2 relations"):
        SamplingConfig(relation_sizes=(5, 5, 5)).sizes(2)
    graph = from_edges([(0, 1)], 2, direction="both")
    with pytest.raises(ConfigError, match="only in a graph of one relation, and this one has 2; use redraw=True"):
        sample_minibatch(graph, torch.arange(2), [2, 2], 0, redraw=False)

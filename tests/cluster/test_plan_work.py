"""The cost model against numbers computed by hand, and laws that any cost model must keep."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from graphsage.cluster.plan.work import (
    AGGREGATORS,
    Gather,
    Graph,
    Model,
    Work,
    distinct,
    inference,
    layer_rows,
    training_step,
)
from graphsage.errors import ConfigError
from graphsage.model.aggregators import AGGREGATORS as KNOWN
from graphsage.model.encoder import Encoder, EncoderConfig
from graphsage.model.heads import ClassHead

GRAPH = Graph(nodes=1000, edges=8000, dim=6)


def test_the_folder_of_a_small_graph_by_hand() -> None:
    assert GRAPH.folder_bytes == 1000 * 6 * 4 + 8000 * 4 + 16 * 1000
    assert replace(GRAPH, value_bytes=2).feature_bytes == 12_000
    assert replace(GRAPH, nodes=2**31).index_bytes == 8


def test_rows_of_each_layer_are_the_tree_of_algorithm_2() -> None:
    assert layer_rows(512, (25, 10)) == [512 * 11, 512]
    assert layer_rows(2, (5, 4, 3)) == [2 * 4 * 5, 2 * 4, 2]


@pytest.mark.parametrize("name", AGGREGATORS)
@pytest.mark.parametrize("hidden", [None, 7])
def test_parameters_are_those_of_the_model_itself(name: str, hidden: int | None) -> None:
    config = EncoderConfig(aggregator=name, num_layers=3, dim=10, hidden_dim=hidden)
    modules = (Encoder(config, 6), ClassHead(10, 4))
    real = sum(parameter.numel() for module in modules for parameter in module.parameters())
    assert Model(name, (3, 3, 3), 10, hidden, classes=4).parameters(6) == real


def test_every_aggregator_of_the_paper_has_a_cost() -> None:
    assert set(AGGREGATORS) == set(KNOWN)
    with pytest.raises(ConfigError, match="aggregator must be one of mean, gcn, lstm, pool, meanpool; got 'max'"):
        Model("max")


def test_a_step_of_mean_by_hand() -> None:
    """2 targets, 3 neighbors each, which draw 5: 8 rows of layer 1, 2 of layer 2."""
    model = Model("mean", (5, 3), width=4, classes=2)
    work = training_step(GRAPH, model, 2)
    assert work.drawn == ((8.0, 5), (2.0, 3))
    assert [(g.kind, g.rows, g.row_bytes) for g in work.gathers] == [("mean", 40, 24), ("select", 8, 24)]
    first = 4 * 8 * 12 * 4  # forward, and the gradient of W; features have none
    second = 6 * 2 * 8 * 4
    head = 6 * 2 * 4 * 2
    assert work.products == first + second + head
    assert work.recurrent == 0
    weights = 12 * 4 + 8 * 4 + 2 * 5
    assert work.streamed == 6 * 4 * 4 * (8 + 2) + 7 * 4 * weights + 2 * 4 * 8 * 12 + 2 * 4 * 8 * 4


def test_a_step_of_gcn_multiplies_half_as_much_as_mean() -> None:
    mean, gcn = (training_step(GRAPH, Model(name, (5, 3), 4, classes=2), 2) for name in ("mean", "gcn"))
    assert gcn.products == 4 * 8 * 6 * 4 + 6 * 2 * 4 * 4 + 6 * 2 * 4 * 2
    assert gcn.gathers == mean.gathers


def test_pool_and_lstm_read_each_node_once() -> None:
    seen = distinct(8 * 6, 1000)
    assert 46 < seen < 48  # of 48 draws among 1,000 nodes about one repeats
    for name in ("pool", "lstm"):
        work = training_step(GRAPH, Model(name, (5, 3), 4, 7, classes=2), 2)
        assert work.gathers[0] == Gather("select", seen, 24, GRAPH.feature_bytes)
    lstm = training_step(GRAPH, Model("lstm", (5, 3), 4, 7, classes=2), 2)
    assert lstm.recurrent == 24 * 7 * 7 * (8 * 5 + 2 * 3)
    first = 4 * seen * 6 * 28 + 2 * 8 * 4 * (2 * 6 + 3 * 7)  # gates of the distinct rows, then W
    second = 6 * 8 * 4 * 28 + 6 * 2 * 4 * 11
    assert lstm.products == pytest.approx(first + second + 6 * 2 * 4 * 2)


def test_inference_reads_each_stored_edge_once_a_layer() -> None:
    """Wide features are made narrow first; narrow ones are read as they are."""
    wide, narrow = (
        inference(replace(GRAPH, dim=16), Model("mean", (5, 3), 8)),
        inference(GRAPH, Model("mean", (5, 3), 8)),
    )
    assert [(g.kind, g.rows, g.row_bytes) for work in wide for g in work.gathers] == [
        ("ragged", 8000, 32), ("ragged", 8000, 32)]  # fmt: skip
    assert [(g.kind, g.rows, g.row_bytes) for work in narrow for g in work.gathers] == [
        ("mean", 8000, 24), ("ragged", 8000, 32)]  # fmt: skip
    assert wide[0].products == 2 * 1000 * 8 * (16 + 16)
    pool = inference(GRAPH, Model("pool", (5,), 8, 10))
    assert pool[0].gathers == (Gather("max", 8000, 40, 40_000),)
    assert pool[0].products == 2 * 1000 * (6 * 10 + 8 * (6 + 10))


SIZES = st.tuples(st.integers(1, 30), st.integers(1, 30))


@given(name=st.sampled_from(AGGREGATORS), sizes=SIZES, batch=st.integers(1, 4096), dim=st.integers(1, 700),
       more=st.integers(1, 700), nodes=st.integers(10, 10**9))  # fmt: skip
def test_more_features_or_targets_never_cost_less(name: str, sizes: tuple[int, int], batch: int, dim: int, more: int,
                                                  nodes: int) -> None:  # fmt: skip
    graph, model = Graph(nodes, 20 * nodes, dim), Model(name, sizes, 64)
    here, there = training_step(graph, model, batch), training_step(replace(graph, dim=dim + more), model, batch)
    assert totals(here) <= totals(there)
    assert totals(here) <= totals(training_step(graph, model, batch + 1))
    assert totals(sum(inference(graph, model), Work())) <= totals(
        sum(inference(replace(graph, edges=graph.edges + more), model), Work())
    )


class totals:
    """Every kind of work, compared one by one."""

    def __init__(self, work: Work) -> None:
        drawn = sum(rows * size for rows, size in work.drawn)
        self.values = torch.tensor([work.gathered, work.products, work.recurrent, work.streamed, work.fresh, drawn],
                                   dtype=torch.float64)  # fmt: skip

    def __le__(self, other: "totals") -> bool:
        return bool((self.values <= other.values * (1 + 1e-9)).all())


@given(draws=st.floats(0, 1e12), nodes=st.integers(1, 10**10))
def test_there_are_never_more_different_nodes_than_draws_or_nodes(draws: float, nodes: int) -> None:
    assert 0 <= distinct(draws, nodes) <= min(draws, nodes) * (1 + 1e-9)

"""Who is seen in training, and the graph without those who are not."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from graphs import SEEDS, edge_lists, edge_set, graphs
from graphsage.errors import DataError
from graphsage.graph.build import from_edges
from graphsage.graph.graph import Graph
from graphsage.graph.split import NONE, TEST, TRAIN, VAL, Split, training_graph

FRACTIONS = st.tuples(st.integers(1, 8), st.integers(0, 8), st.integers(0, 8)).map(
    lambda parts: tuple(p / sum(parts) for p in parts)
)


def test_masks_put_each_node_into_one_part_at_most() -> None:
    split = Split.masks([True, False, False, False], np.array([0, 1, 0, 0]), torch.tensor([False, False, True, False]))
    assert split.codes.tolist() == [TRAIN, VAL, TEST, NONE]
    assert [split.nodes(part).tolist() for part in ("train", "val", "test", "all")] == [[0], [1], [2], [0, 1, 2, 3]]
    assert split.sizes() == {"train": 1, "val": 1, "test": 1}
    assert Split.masks([True, False]).codes.tolist() == [TRAIN, NONE]


def test_masks_that_overlap_or_differ_in_length_are_refused() -> None:
    with pytest.raises(DataError, match="node 2 is in two parts"):
        Split.masks([1, 0, 1], [0, 1, 1])
    with pytest.raises(DataError, match="got 2 and 3"):
        Split.masks([1, 0, 1], [0, 1])


def test_an_unknown_part_is_named() -> None:
    with pytest.raises(DataError, match="got 'dev'"):
        Split.masks([1, 0]).nodes("dev")


@given(st.integers(1, 60), FRACTIONS, SEEDS)
def test_a_random_split_has_the_sizes_asked_for(n: int, fractions: tuple[float, float, float], seed: int) -> None:
    split = Split.random(n, fractions, seed)
    sizes = split.sizes()
    assert sum(sizes.values()) == n
    assert sizes["train"] == round(n * fractions[0])
    assert abs(sizes["val"] - n * fractions[1]) <= 1
    assert torch.equal(split.codes, Split.random(n, fractions, seed).codes)


def test_a_random_split_treats_nodes_alike_and_follows_the_seed() -> None:
    trained = sum((Split.random(40, seed=seed).codes == TRAIN).int() for seed in range(600))
    assert int(trained.sum()) == 600 * 28
    spread = (600 * 0.7 * 0.3) ** 0.5
    assert bool(((trained - 420).abs() < 4.5 * spread).all())


@given(st.lists(st.integers(-9, 9), min_size=1, max_size=30), FRACTIONS)
def test_a_split_by_time_never_trains_on_what_came_later(times: list[int], fractions: tuple) -> None:
    time = torch.tensor(times)
    split = Split.by_time(time, fractions)
    by_code = {code: [t for t, c in zip(times, split.codes.tolist(), strict=True) if c == code] for code in range(3)}
    assert max(by_code[TRAIN]) == split.cutoff
    for earlier, later in ((TRAIN, VAL), (TRAIN, TEST), (VAL, TEST)):
        if by_code[earlier] and by_code[later]:
            assert max(by_code[earlier]) < min(by_code[later])
    assert len(by_code[TRAIN]) >= round(len(times) * fractions[0])


def test_a_split_by_time_cuts_in_the_shares_asked_for() -> None:
    split = Split.by_time(torch.arange(10).flip(0), (0.7, 0.1, 0.2))
    assert split.codes.tolist() == [TEST, TEST, VAL, *[TRAIN] * 7]
    assert split.cutoff == 6


def test_both_ends_of_a_time_are_included() -> None:
    split = Split.at_times(torch.tensor([3, 1, 2, 4, 5]), 2, 4)
    assert split.codes.tolist() == [VAL, TRAIN, TRAIN, VAL, TEST]
    assert split.cutoff == 2


def test_whole_graphs_validate_and_test() -> None:
    numbers = torch.tensor([1, 1, 2, 3, 3, 4])
    assert Split.by_graph(numbers, val=[3], test=[4, 2]).codes.tolist() == [TRAIN, TRAIN, TEST, VAL, VAL, TEST]
    with pytest.raises(DataError, match="there is no graph 7; graph numbers are 1, 2, 3, 4"):
        Split.by_graph(numbers, val=[7], test=[])
    with pytest.raises(DataError, match="graph 3 is in validation and in test"):
        Split.by_graph(numbers, val=[3], test=[3])


@pytest.mark.parametrize("fractions", [(0.5, 0.5), (0.8, 0.3, -0.1), (0.5, 0.2, 0.2), (0.25,) * 4])
def test_fractions_that_do_not_add_up_are_refused(fractions: tuple[float, ...]) -> None:
    with pytest.raises(DataError, match="add up to 1"):
        Split.random(10, fractions)


@given(graphs(directed=None), st.data())
def test_the_training_graph_has_the_edges_among_training_nodes_and_no_others(graph: Graph, data: st.DataObject) -> None:
    n = graph.num_nodes
    codes = data.draw(st.lists(st.sampled_from([TRAIN, VAL, TEST, NONE]), min_size=n, max_size=n))
    codes[0] = TRAIN
    seen = {v for v, code in enumerate(codes) if code == TRAIN}
    training = training_graph(graph, Split(torch.tensor(codes, dtype=torch.uint8)))
    assert edge_set(training) == {(v, u) for v, u in edge_set(graph) if v in seen and u in seen}
    assert training.num_nodes == n
    assert training.features is graph.features


@given(edge_lists(), st.booleans(), st.integers(-1, 12), st.data())
def test_edges_after_the_cutoff_are_not_in_the_training_graph(
    given_: tuple[int, list[tuple[int, int]]], directed: bool, cutoff: int, data: st.DataObject
) -> None:
    n, edges = given_
    times = data.draw(st.lists(st.integers(0, 12), min_size=len(edges), max_size=len(edges)))
    graph = from_edges(edges, n, edge_time=np.array(times, np.int64), directed=directed)
    training = training_graph(graph, Split(torch.zeros(n, dtype=torch.uint8), cutoff))
    early = [e for e, when in zip(edges, times, strict=True) if when <= cutoff]
    assert edge_set(training) == edge_set(from_edges(early, n, directed=directed))
    assert training.edge_time is not None
    assert len(training.edge_time) == training.num_stored_edges
    assert bool((training.edge_time <= cutoff).all())


def test_a_split_of_another_graph_or_without_training_nodes_is_refused() -> None:
    graph = from_edges([(0, 1)], 3)
    with pytest.raises(DataError, match="2 nodes, the graph 3"):
        training_graph(graph, Split.masks([1, 0]))
    with pytest.raises(DataError, match="no training nodes"):
        training_graph(graph, Split.masks([0, 0, 0], [1, 1, 1]))

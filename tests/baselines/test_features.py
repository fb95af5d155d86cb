"""Logistic regression on features and neighbor means."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from graphs import SEEDS, graphs, neighbor_lists, normal
from graphsage.baselines.features import (
    inductive_features,
    logistic_scores,
    neighbor_means,
    smoothed,
    without_leak,
)
from graphsage.graph.build import from_edges
from graphsage.graph.graph import Graph
from graphsage.graph.split import Split


def test_means_of_a_path_are_computed_by_hand() -> None:
    path = from_edges([[0, 1], [1, 2]], 4)
    x = np.array([[1.0], [2.0], [6.0], [9.0]])
    expected = [[2.0, 3.5], [3.5, 2.0], [2.0, 3.5], [0.0, 0.0]]
    np.testing.assert_allclose(neighbor_means(path, x, 2), expected)


@given(graphs())
def test_the_first_hop_is_the_mean_over_the_neighbor_list(graph: Graph) -> None:
    assert graph.features is not None
    x = graph.features.numpy()
    means = neighbor_means(graph, x, 1)
    for row, neighbors in neighbor_lists(graph).items():
        np.testing.assert_allclose(means[row], x[neighbors].mean(axis=0) if neighbors else 0 * x[row], atol=1e-6)


@given(graphs(max_nodes=20), SEEDS, st.integers(1, 3))
def test_training_rows_know_nothing_of_held_out_nodes(graph: Graph, seed: int, hops: int) -> None:
    split = Split.random(graph.num_nodes, (0.5, 0.2, 0.3), seed)
    train, test = split.nodes("train"), split.nodes("test")
    if not len(train):
        return
    assert graph.features is not None
    changed = graph.features.clone()
    changed[split.codes != 0] = normal(seed, 1)
    before = inductive_features(graph, split, graph.features.numpy(), hops)
    after = inductive_features(graph, split, changed.numpy(), hops)
    assert np.array_equal(before[train], after[train])
    full = np.concatenate([graph.features.numpy(), neighbor_means(graph, graph.features.numpy(), hops)], axis=1)
    assert np.array_equal(before[test], full[test])


def test_smoothing_is_the_mean_over_a_node_and_its_neighbors_with_a_self_loop_once() -> None:
    path = from_edges([[0, 1], [1, 2], [1, 1]], 4)
    x = np.array([[1.0], [2.0], [6.0], [9.0]])
    np.testing.assert_allclose(smoothed(path, x, 1), [[1.5], [3.0], [4.0], [9.0]])
    np.testing.assert_allclose(smoothed(path, x, 2), smoothed(path, smoothed(path, x, 1), 1))


def test_vectors_of_training_nodes_are_made_on_the_training_graph() -> None:
    path = from_edges([[0, 1], [1, 2]], 3)
    split = Split(torch.tensor([0, 0, 2], dtype=torch.uint8))
    x = np.array([[1.0], [3.0], [8.0]])
    made = without_leak(path, split, lambda graph: smoothed(graph, x, 1))
    np.testing.assert_allclose(made, [[2.0], [2.0], [5.5]])


def test_scores_name_their_hops_and_leave_unlabeled_nodes_out() -> None:
    labels = np.tile([0, 1], 20)
    edges = [(u, (u + 2) % 40) for u in range(40)]
    x = normal(1, 40, 2).numpy() + np.array([[3.0, 0.0], [-3.0, 0.0]])[labels]
    labels[::9] = -1
    scores = logistic_scores(from_edges(edges, 40, features=x, labels=labels), Split.random(40, seed=1))
    assert list(scores) == [
        "logistic regression on features",
        "logistic regression on features + 2 hops of neighbor means",
    ]
    assert min(scores.values()) > 0.8

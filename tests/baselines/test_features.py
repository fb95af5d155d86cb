"""Logistic regression on features and neighbor means."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from graphs import SEEDS, graphs, neighbor_lists, normal
from graphsage.baselines.features import inductive_features, logistic_regression, logistic_scores, neighbor_means
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


def test_logistic_regression_learns_classes_from_training_rows_alone() -> None:
    x = normal(0, 300, 3).numpy() * [1.0, 100.0, 0.01] + [0.0, 5.0, -5.0]
    labels = (x[:, 2] > -5.0).astype(np.int64) + 2 * (x[:, 1] > 5.0)
    train, test = np.arange(200), np.arange(200, 300)
    predicted = logistic_regression(x, labels, train, test, penalty=1.0)
    assert (predicted == labels[test]).mean() > 0.9
    hidden = labels.copy()
    hidden[test] = 7
    assert np.array_equal(logistic_regression(x, hidden, train, test, penalty=1.0), predicted)


def test_many_labels_have_a_regression_each() -> None:
    x = normal(1, 200, 2).numpy()
    labels = np.stack([x[:, 0] > 0, x[:, 1] > 0, np.ones(200, bool)], axis=1).astype(np.uint8)
    train, test = np.arange(150), np.arange(150, 200)
    predicted = logistic_regression(x, labels, train, test)
    assert predicted.shape == (50, 3)
    assert ((predicted == labels[test]).mean(axis=0) > [0.9, 0.9, 0.999]).all()


def test_a_large_penalty_leaves_only_the_most_frequent_class() -> None:
    x = normal(2, 100, 2).numpy()
    labels = (x[:, 0] > 0.5).astype(np.int64)
    predicted = logistic_regression(x, labels, np.arange(80), np.arange(80, 100), penalty=1e4)
    assert torch.equal(torch.from_numpy(predicted), torch.zeros(20, dtype=torch.int64))


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

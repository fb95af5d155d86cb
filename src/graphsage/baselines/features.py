"""Logistic regression on a node's own features, and on those of its neighborhood: what a model must beat."""

from typing import Any

import numpy as np
import numpy.typing as npt

from graphsage.errors import DataError
from graphsage.evaluation.f1 import f1_scores
from graphsage.graph.graph import Graph
from graphsage.graph.split import TRAIN, Split, training_graph

Array = npt.NDArray[Any]


def neighbor_means(graph: Graph, x: Array, hops: int) -> Array:
    """Side by side: the mean of the neighbors' x, the mean of their means, ... (N, hops * D); 0 for isolated nodes."""
    from scipy.sparse import csr_array

    degrees = graph.degrees.cpu().numpy()
    weights = np.repeat(1.0 / np.maximum(degrees, 1), degrees).astype(np.float32)
    n = graph.num_nodes
    average = csr_array((weights, graph.indices.cpu().numpy(), graph.indptr.cpu().numpy()), shape=(n, n))
    means = [np.asarray(x, np.float32)]
    for _ in range(hops):
        means.append(average @ means[-1])
    return np.concatenate(means[1:], axis=1)


def inductive_features(graph: Graph, split: Split, x: Array, hops: int) -> Array:
    """x and its neighbor means, (N, (1 + hops) * D), without a leak: rows of training nodes are computed on the
    training graph alone, those of held-out nodes on the full graph."""
    seen = neighbor_means(training_graph(graph, split), x, hops)
    full = neighbor_means(graph, x, hops)
    train = (split.codes == TRAIN).numpy()[:, None]
    return np.concatenate([np.asarray(x, np.float32), np.where(train, seen, full)], axis=1)


def logistic_regression(x: Array, labels: Array, train: Array, test: Array, penalty: float = 10.0) -> Array:
    """Classes (len(test),) or 0 and 1 for each label (len(test), C), learned from the rows `train` of x.

    Columns are standardized by the training rows. `penalty` is the weight of half the squared coefficients against
    the sum of the training rows' losses; of 1, 3, 10, 30, 100 and 1000, none scores above 10 on setmm's validation
    nodes, with or without neighbor means. The fit runs to scikit-learn's own tolerance: stopped early (tol=0.01) it is
    a much weaker opponent (docs/log.md has the numbers).
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler
    from threadpoolctl import threadpool_limits

    scaler = StandardScaler().fit(x[train])
    x_train, x_test = scaler.transform(x[train]), scaler.transform(x[test])

    def answers(column: Array) -> Array:
        seen = np.unique(column)
        if len(seen) == 1:
            return np.full(len(test), seen[0])
        with threadpool_limits(1):  # many small products: threads that wait for each other cost more than they bring
            model = LogisticRegression(C=1.0 / penalty, max_iter=5000).fit(x_train, column)
        return np.asarray(model.predict(x_test))

    if labels.ndim == 1:
        return answers(labels[train])
    return np.stack([answers(column) for column in labels[train].T], axis=1)


def logistic_scores(graph: Graph, split: Split) -> dict[str, float]:
    """Test micro F1 of logistic regressions on all labeled training nodes, without and with neighbor means."""
    if graph.labels is None or graph.features is None:
        raise DataError("logistic regression needs labels and features, and the graph lacks one of them")
    x, labels = graph.features.numpy(), graph.labels.numpy()
    train, test = (split.nodes(part).numpy() for part in ("train", "test"))
    if not graph.multilabel:
        train, test = train[labels[train] >= 0], test[labels[test] >= 0]
    tables = {
        "logistic regression on features": x,
        "logistic regression on features + 2 hops of neighbor means": inductive_features(graph, split, x, 2),
    }
    answers = {name: logistic_regression(table, labels, train, test) for name, table in tables.items()}
    return {name: round(f1_scores(labels[test], each).micro, 4) for name, each in answers.items()}

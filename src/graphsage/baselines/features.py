"""Parameter-free vectors of a node and its neighborhood: the yardsticks that a model must exceed."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from graphsage.errors import DataError
from graphsage.evaluation.f1 import f1_scores
from graphsage.evaluation.probe import logistic_regression, tuned_probe
from graphsage.features.degree import degree_features
from graphsage.graph.graph import Graph
from graphsage.graph.split import TRAIN, Split, training_graph

Array = npt.NDArray[Any]


def neighbor_means(graph: Graph, x: Array, hops: int) -> Array:
    """Side by side: the mean of the neighbors' x, the mean of their means, ... (N, hops * D); 0 for isolated nodes."""
    means: list[Array] = [np.asarray(x, np.float32)]
    for _ in range(hops):
        means.append(_neighbor_sums(graph, means[-1]) / np.maximum(_degrees(graph), np.float32(1)))
    return np.concatenate(means[1:], axis=1)


def smoothed(graph: Graph, x: Array, times: int) -> Array:
    """Equation 2 without weights, `times` in a row: the mean over a node and its neighbors (N, D)."""
    looped = np.zeros((graph.num_nodes, 1), np.float32)
    rows, columns = graph.edge_rows.cpu().numpy(), graph.indices.cpu().numpy()
    looped[rows[rows == columns]] = 1.0
    z = np.asarray(x, np.float32)
    for _ in range(times):
        z = (_neighbor_sums(graph, z) + (1.0 - looped) * z) / (_degrees(graph) + 1.0 - looped)
    return z


def _degrees(graph: Graph) -> Array:
    return np.asarray(graph.degrees.cpu().numpy()[:, None], np.float32)


def _neighbor_sums(graph: Graph, x: Array) -> Array:
    from scipy.sparse import csr_array

    ones = np.ones(graph.num_stored_edges, np.float32)
    n = graph.num_nodes
    adjacency = csr_array((ones, graph.indices.cpu().numpy(), graph.indptr.cpu().numpy()), shape=(n, n))
    return np.asarray(adjacency @ x)


def tuned_regressions(graph: Graph, split: Split) -> dict[str, dict[str, Array]]:
    """What logistic regressions on features, and on features and 2 hops of neighbor means, decide for the labeled nodes
    of val and test. Validation nodes choose their penalties. A graph without features has degrees."""
    assert graph.labels is not None
    here = graph.to("cpu")
    if here.features is None:
        found = without_leak(here, split, lambda seen: degree_features(seen.degrees).numpy())
        here = here.replace(features=torch.from_numpy(found))
    assert here.features is not None
    assert here.labels is not None
    x, labels = here.features.float().numpy(), here.labels.numpy()
    parts = {part: here.labeled(split.nodes(part)).numpy() for part in ("train", "val", "test")}
    tables = {"features": x, "features + 2 hops of neighbor means": inductive_features(here, split, x, 2)}
    return {name: tuned_probe(table, labels, parts)[1] for name, table in tables.items()}


def without_leak(graph: Graph, split: Split, vectors: Callable[[Graph], Array]) -> Array:
    """`vectors` of training nodes on the training graph alone, of held-out nodes on the full graph."""
    train = (split.codes == TRAIN).numpy()[:, None]
    return np.where(train, vectors(training_graph(graph, split)), vectors(graph))


def inductive_features(graph: Graph, split: Split, x: Array, hops: int) -> Array:
    """x and its neighbor means, (N, (1 + hops) * D), without a leak."""
    means = without_leak(graph, split, lambda seen: neighbor_means(seen, x, hops))
    return np.concatenate([np.asarray(x, np.float32), means], axis=1)


def logistic_scores(graph: Graph, split: Split) -> dict[str, float]:
    """Test micro F1 of logistic regressions on all labeled training nodes, without and with neighbor means."""
    if graph.labels is None or graph.features is None:
        raise DataError("logistic regression needs labels and features, and the graph lacks one of them")
    x, labels = graph.features.numpy(), graph.labels.numpy()
    train, test = (graph.labeled(split.nodes(part)).numpy() for part in ("train", "test"))
    tables = {
        "logistic regression on features": x,
        "logistic regression on features + 2 hops of neighbor means": inductive_features(graph, split, x, 2),
    }
    answers = {name: logistic_regression(table, labels, train, test) for name, table in tables.items()}
    return {name: round(f1_scores(labels[test], each).micro, 4) for name, each in answers.items()}

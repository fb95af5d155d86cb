"""Scores of possible links without a trained model: what every link predictor is compared with.

Edges are a matrix A (queries or nodes, candidates) of 0 and 1: row u points to its known partners.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from graphsage.errors import DataError
from graphsage.evaluation.ranking import Scores

Array = npt.NDArray[Any]
NEAREST = 20
"""Old nodes that vote for the partners of a new one."""


def popularity(known: sparse.csr_array) -> Scores:
    """The number of known links that lead to a candidate; the same order for every query."""
    count = np.asarray(known.sum(axis=0), dtype=np.float64).reshape(-1)
    return lambda queries: np.tile(count, (len(queries), 1))


def common_neighbors(adjacency: sparse.csr_array, queries: Array, candidates: Array) -> Scores:
    """The number of nodes joined to both. `adjacency` (N, N) is symmetric."""
    return _two_steps(adjacency, np.ones(adjacency.shape[0]), queries, candidates)


def resource_allocation(adjacency: sparse.csr_array, queries: Array, candidates: Array) -> Scores:
    """Common neighbors, each counted as 1 / its degree (Zhou, Lu and Zhang 2009). `adjacency` (N, N) is symmetric."""
    degree = np.asarray(adjacency.sum(axis=1), dtype=np.float64).reshape(-1)
    return _two_steps(adjacency, 1 / np.maximum(degree, 1), queries, candidates)


def _two_steps(adjacency: sparse.csr_array, weight: Array, queries: Array, candidates: Array) -> Scores:
    binary = adjacency.astype(np.float64)
    back = sparse.csr_array(sparse.diags_array(weight) @ binary[:, candidates])
    return lambda rows: np.asarray((binary[queries[rows]] @ back).todense())


def nearest_vote(
    query_features: Array, voter_features: Array, voter_links: sparse.csr_array, nearest: int = NEAREST
) -> Scores:
    """The `nearest` old nodes with the most similar features (cosine) vote for their own partners, by similarity.

    `voter_links` (V, C) are the known links of the V voters.
    """
    if voter_links.shape[0] != len(voter_features):
        raise DataError(f"there are {len(voter_features)} voters and links of {voter_links.shape[0]}")
    voters, asking = _unit(voter_features), _unit(query_features)
    count = min(nearest, len(voters))

    def scores(rows: Array) -> Array:
        similarity = asking[rows] @ voters.T
        chosen = np.argpartition(-similarity, count - 1, axis=1)[:, :count]
        weight = np.maximum(np.take_along_axis(similarity, chosen, axis=1), 0)
        indptr = np.arange(len(rows) + 1) * count
        shape = (len(rows), len(voters))
        votes = sparse.csr_array((weight.reshape(-1), chosen.reshape(-1), indptr), shape=shape)
        return np.asarray((votes @ voter_links.astype(np.float64)).todense())

    return scores


def _unit(features: Array) -> Array:
    features = np.asarray(features, dtype=np.float32)
    length = np.linalg.norm(features, axis=1, keepdims=True)
    scaled: Array = np.divide(features, length, out=np.zeros_like(features), where=length > 0)
    return scaled

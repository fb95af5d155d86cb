"""The largest connected component, of which the paper's Reddit and citation graphs consist."""

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def largest_component(num_nodes: int, edges: Array) -> tuple[Array, Array]:
    """Rows (ascending) of the largest component of an undirected graph, and its edges in new row numbers. Of several
    that are equally large, the one with the smallest row."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    pairs = np.asarray(edges, np.int64).reshape(-1, 2)
    ones = np.ones(len(pairs), np.int8)
    _, part = connected_components(coo_array((ones, (pairs[:, 0], pairs[:, 1])), (num_nodes, num_nodes)), False)
    rows = np.flatnonzero(part == np.bincount(part).argmax())
    place = np.full(num_nodes, -1)
    place[rows] = np.arange(len(rows))
    kept = place[pairs]
    return rows, kept[(kept >= 0).all(axis=1)]

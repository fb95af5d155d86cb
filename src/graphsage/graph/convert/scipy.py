"""SciPy sparse adjacency matrices: an entry (u, v) is an edge from u to v, as in scipy.sparse.csgraph."""

from typing import TYPE_CHECKING, Any

import numpy as np

from graphsage.errors import DataError
from graphsage.graph.build import edges_of
from graphsage.graph.convert.common import answers_from, from_entries, note_dropped, plain
from graphsage.graph.graph import Graph

if TYPE_CHECKING:
    import scipy.sparse


def from_scipy(
    adjacency: Any,
    *,
    features: Any = None,
    labels: Any = None,
    weights: bool = False,
    directed: bool | None = None,
    **attributes: Any,
) -> Graph:
    """A square sparse matrix or array of any format. Stored zeros are no edges. With `weights` the other values are the
    weights of the edges; without, values other than 1 are not kept, and a warning says so.

    `directed=None`: undirected if the matrix is symmetric. False makes both directions of each entry, as is right for
    a triangular matrix of an undirected graph. `features` may be sparse (and become dense); `labels` may be names;
    `attributes` are those of `Graph.from_edges`.
    """
    if not hasattr(adjacency, "tocoo"):
        raise DataError(f"from_scipy takes a sparse matrix; got {type(adjacency).__name__}; see scipy.sparse.csr_array")
    if len(adjacency.shape) != 2 or adjacency.shape[0] != adjacency.shape[1]:
        raise DataError(f"an adjacency matrix must be square; got shape {tuple(adjacency.shape)}")
    matrix = adjacency.tocoo()
    sources, targets = matrix.row, matrix.col
    if weights:
        attributes = {"edge_weight": matrix.data, **attributes}
    elif not (matrix.data == 1).all():
        there = matrix.data != 0
        sources, targets = sources[there], targets[there]
        if not (matrix.data[there] == 1).all():
            note_dropped("values of the matrix", ["weights"], "; to keep them, pass weights=True")
    if labels is not None:
        attributes = {**answers_from(labels), **attributes}
    n = int(adjacency.shape[0])
    return from_entries(sources, targets, n, directed=directed, features=features, **attributes)


def to_scipy(graph: Graph) -> "scipy.sparse.csr_array[Any, Any]":
    """The adjacency as an (N, N) csr_array of float32 weights, or ones; an undirected edge is stored both ways. The
    weights of a pair's edges of several types or times add up."""
    from scipy.sparse import coo_array

    edges = edges_of(graph, both_ways=True)
    note_dropped("edge attributes", [*["time"] * (edges.time is not None), *["type"] * (edges.kinds is not None)])
    data = np.ones(len(edges.pairs), np.float32) if edges.weight is None else plain(edges.weight)
    made = coo_array((data, tuple(plain(edges.pairs).T)), shape=(graph.num_nodes, graph.num_nodes)).tocsr()
    if edges.weight is None:
        made.data[:] = 1  # repeated pairs were summed
    return made

"""SciPy sparse adjacency matrices: an entry (u, v) is an edge from u to v, as in scipy.sparse.csgraph."""

from typing import TYPE_CHECKING, Any

import numpy as np

from graphsage.errors import DataError
from graphsage.graph.convert.common import answers_from, from_entries, note_dropped, one_way, plain
from graphsage.graph.graph import Graph

if TYPE_CHECKING:
    import scipy.sparse


def from_scipy(
    adjacency: Any, *, features: Any = None, labels: Any = None, directed: bool | None = None, **attributes: Any
) -> Graph:
    """A square sparse matrix or array of any format. Stored zeros are no edges, and values other than 1 are not kept.

    `directed=None`: undirected if the pattern is symmetric. False makes both directions of each entry, as is right for
    a triangular matrix of an undirected graph. `features` may be sparse (and become dense); `labels` may be names;
    `attributes` are those of `Graph.from_edges`.
    """
    if not hasattr(adjacency, "tocoo"):
        raise DataError(f"from_scipy takes a sparse matrix; got {type(adjacency).__name__}; see scipy.sparse.csr_array")
    if len(adjacency.shape) != 2 or adjacency.shape[0] != adjacency.shape[1]:
        raise DataError(f"an adjacency matrix must be square; got shape {tuple(adjacency.shape)}")
    matrix = adjacency.tocoo()
    sources, targets = matrix.row, matrix.col
    if not (matrix.data == 1).all():
        there = matrix.data != 0
        sources, targets = sources[there], targets[there]
        if not (matrix.data[there] == 1).all():
            note_dropped("values of the matrix", ["weights"], "; GraphSAGE reads which edges there are")
    if labels is not None:
        attributes = {**answers_from(labels), **attributes}
    n = int(adjacency.shape[0])
    return from_entries(sources, targets, n, directed=directed, features=features, **attributes)


def to_scipy(graph: Graph) -> "scipy.sparse.csr_array[Any, Any]":
    """The adjacency as an (N, N) csr_array of float32 ones; an undirected edge is stored in both directions."""
    from scipy.sparse import csc_array, csr_array

    lists = one_way(graph)
    ones, shape = np.ones(lists.num_stored_edges, np.float32), (graph.num_nodes, graph.num_nodes)
    arrays = ones, plain(lists.indices), plain(lists.indptr)
    if lists.direction == "out":
        return csr_array(arrays, shape=shape)
    return csc_array(arrays, shape=shape).tocsr()  # row v lists the u of its edges (u, v): that is column v

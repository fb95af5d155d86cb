"""Whether a graph from a file can be trusted: checked once, in memory-bounded steps, before it is used."""

import torch

from graphsage.errors import GraphError
from graphsage.graph.graph import Graph

_CHUNK = 1 << 24


def check_graph(graph: Graph) -> None:
    """Refuse row pointers that go backwards, neighbors that are no nodes and classes below -1, naming the first.

    Graphs built from edges pass by construction; a damaged graph folder would otherwise read outside its arrays.
    """
    n = graph.num_nodes
    backwards = torch.nonzero(graph.degrees < 0)
    if len(backwards):
        raise GraphError(f"indptr goes backwards at node {int(backwards[0, 0])}; the graph is damaged, build it again")
    for start in range(0, graph.num_stored_edges, _CHUNK):
        chunk = graph.indices[start : start + _CHUNK]
        bad = torch.nonzero((chunk < 0) | (chunk >= n))
        if len(bad):
            place = int(bad[0, 0])
            raise GraphError(
                f"stored edge {start + place} points at node {int(chunk[place])}, but the graph has {n} nodes; "
                "the graph is damaged, build it again"
            )
    if graph.labels is not None and not graph.multilabel:
        low = torch.nonzero(graph.labels < -1)
        if len(low):
            row = int(low[0, 0])
            raise GraphError(f"classes must be -1 (unknown) or more; node {row} has {int(graph.labels[row])}")

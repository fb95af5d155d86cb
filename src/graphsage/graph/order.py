"""A node order in which neighbors lie close together, so that a table in that order is read in fewer places.

It matters where features are read from a disk: a page holds several rows, and what is read ahead is what comes next.
"""

import torch
from torch import Tensor

from graphsage.errors import GraphError
from graphsage.graph.graph import Graph
from graphsage.graph.split import Split

ROUNDS = 8


def local_order(graph: Graph, rounds: int = ROUNDS) -> Tensor:
    """Rows of `graph` in the order in which to write them, (N,): communities one after the other.

    Communities come from label propagation: every node starts as its own, and in each round takes the label that most
    of its neighbors have (of several the smallest; its own counts too). A few passes over the edges; nothing is drawn.
    """
    label = torch.arange(graph.num_nodes)
    rows, columns = graph.edge_rows, graph.indices.long()
    everyone = torch.arange(graph.num_nodes)
    for _ in range(rounds):
        pairs = torch.cat([rows, everyone]) * graph.num_nodes + torch.cat([label[columns], label])
        found, votes = torch.unique(pairs, return_counts=True)  # ascending: by row, then by label
        voter, choice = found // graph.num_nodes, found % graph.num_nodes
        best = torch.zeros(graph.num_nodes, dtype=torch.int64).scatter_reduce(0, voter, votes, "amax")
        winner = votes == best[voter]
        new = torch.full_like(label, graph.num_nodes).scatter_reduce(0, voter[winner], choice[winner], "amin")
        if torch.equal(new, label):
            break
        label = new
    return torch.argsort(label, stable=True)


def in_local_order(graph: Graph, splits: dict[str, Split]) -> tuple[Graph, dict[str, Split]]:
    """`graph` renumbered by `local_order`, and its splits with it."""
    order = local_order(graph)
    return renumbered(graph, order), {name: Split(split.codes[order], split.cutoff) for name, split in splits.items()}


def renumbered(graph: Graph, order: Tensor) -> Graph:
    """`graph` with its rows in `order` (N,), a permutation; outside ids stay with their nodes."""
    n = graph.num_nodes
    if not torch.equal(order.sort().values, torch.arange(n)):
        raise GraphError(f"an order must hold each of the {n} rows once; got {len(order)} numbers that do not")
    place = torch.empty_like(order)
    place[order] = torch.arange(n)
    degrees = graph.degrees[order]
    indptr = torch.cat([degrees.new_zeros(1), degrees.cumsum(0)])
    rows = torch.repeat_interleave(torch.arange(n), degrees)
    taken = torch.arange(len(rows)) - indptr[rows] + graph.indptr[order][rows]
    columns = place[graph.indices[taken].long()]
    sorting = torch.argsort(rows * n + columns)  # neighbors are ascending within a row
    moved = {
        name: value[order] for name in ("features", "labels", "time", "graph_number")
        if (value := getattr(graph, name)) is not None
    }  # fmt: skip
    ids = None if graph.ids is None else graph.ids.taken(order.tolist())
    edge_time = None if graph.edge_time is None else graph.edge_time[taken][sorting]
    return graph.replace(indptr=indptr, indices=columns[sorting].to(graph.indices.dtype), edge_time=edge_time, ids=ids,
                         **moved)  # fmt: skip

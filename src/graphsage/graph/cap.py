"""The degree cap (Appendix C): edges subsampled so that no node has more than 128 neighbors."""

import torch
from torch import Tensor

from graphsage.errors import ConfigError, one_of
from graphsage.graph.graph import Graph
from graphsage.graph.split import keep_edges
from graphsage.kernels.random import Stream, derive

MAX_DEGREE = 128  # Appendix C: hubs would not fit a dense table; at most 25 are drawn, so the cap biases little
CAPS = ("symmetric", "row")


def cap_degrees(graph: Graph, max_degree: int | None = MAX_DEGREE, *, seed: int = 0, cap: str = "symmetric") -> Graph:
    """`graph` with at most `max_degree` neighbors a node, a fixed random subset drawn from the seed.

    symmetric  every edge has one random priority; it stays if both ends rank it among their best `max_degree`.
    row        the released code's way: every node keeps its own random subset, so u may keep v without the reverse.
    """
    one_of("cap", cap, CAPS)
    if max_degree is None:
        return graph
    if max_degree < 1:
        raise ConfigError(f"max_degree must be at least 1, or None for no cap; got {max_degree}")
    hubs = graph.degrees > max_degree
    if not bool(hubs.any()):
        return graph
    rows = graph.edge_rows
    columns = graph.indices.long()
    both_ways = cap == "symmetric" and not graph.directed
    priority = edge_priorities(rows, columns, seed, both_ways)
    threshold = _thresholds(graph, hubs, rows, priority, max_degree)
    keep = priority <= threshold[rows]
    if both_ways:
        keep &= priority <= threshold[columns]
    return keep_edges(graph, rows, keep)


def edge_priorities(rows: Tensor, columns: Tensor, seed: int, both_ways: bool) -> Tensor:
    low, high = (torch.minimum(rows, columns), torch.maximum(rows, columns)) if both_ways else (rows, columns)
    return derive(Stream(seed, "degree cap").keys(low), high)


def _thresholds(graph: Graph, hubs: Tensor, rows: Tensor, priority: Tensor, max_degree: int) -> Tensor:
    """The priority of each hub's last surviving edge; the largest int64 for all other nodes."""
    at_hub = torch.nonzero(hubs[rows]).flatten()
    order = torch.argsort(priority[at_hub], stable=True)
    order = order[torch.argsort(rows[at_hub][order], stable=True)]  # by hub, then by priority
    ranked = priority[at_hub][order]
    degrees = graph.degrees[hubs]
    first = torch.cat([degrees.new_zeros(1), degrees.cumsum(0)[:-1]])
    threshold = ranked.new_full((graph.num_nodes,), torch.iinfo(torch.int64).max)
    threshold[hubs] = ranked[first + max_degree - 1]
    return threshold

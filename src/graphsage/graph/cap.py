"""The degree cap (Appendix C): edges subsampled so that no node has more than 128 neighbors.

`CapRule` decides which edges survive. Three storages apply it: a graph in memory (`capped`), a folder larger than
memory (graph/external/cap.py) and a live graph (live/cap.py builds its base with `capped`, live/adjacency.py updates
it). A priority depends on the seed and the keys of both nodes. In memory and on disk a node's key is its row number, in
a live graph it is a hash of its id, so the same graph keeps other edges once it is served live.
"""

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from graphsage.errors import ConfigError, one_of
from graphsage.graph.graph import Graph
from graphsage.graph.split import keep_edges
from graphsage.kernels.random import GOLDEN, Stream, derive, mix_int

MAX_DEGREE = 128  # Appendix C: hubs would not fit a dense table; at most 25 are drawn, so the cap biases little
CAPS = ("symmetric", "row")
NO_THRESHOLD = torch.iinfo(torch.int64).max  # the threshold of a node that is not a hub
CAP_EDGE_BYTES = 62  # peak memory per stored edge of `cap_degrees`, measured with 99% of edges at hubs
_CHUNK = 1 << 20  # edges whose priorities are computed or compared at once


@dataclass(frozen=True)
class CapRule:
    """Every edge has a random priority. An edge survives if its priority is at most the threshold of its row.

    A hub has more than `max_degree` neighbors. Its threshold is the `max_degree`-th smallest priority of its edges.

    symmetric  (u, v) and (v, u) share one priority, which must be within the thresholds of both ends. Directed graphs
               are capped by row instead.
    row        as in the released code, every node keeps its own random subset: u may keep v without the reverse.
    """

    max_degree: int | None
    cap: str
    seed: int
    directed: bool

    def __post_init__(self) -> None:
        one_of("cap", self.cap, CAPS)
        if self.max_degree is not None and self.max_degree < 1:
            raise ConfigError(f"max_degree must be at least 1, or None for no cap; got {self.max_degree}")

    @cached_property
    def limit(self) -> int:
        return NO_THRESHOLD if self.max_degree is None else self.max_degree

    @cached_property
    def both_ways(self) -> bool:
        return self.cap == "symmetric" and not self.directed

    @cached_property
    def _stream(self) -> Stream:
        return Stream(self.seed, "degree cap")

    def priorities(self, u: Tensor, v: Tensor) -> Tensor:
        """Priorities of the edges (u, v) by the keys of their ends; the two broadcast."""
        low, high = (torch.minimum(u, v), torch.maximum(u, v)) if self.both_ways else (u, v)
        return derive(self._stream.keys(low), high)

    def priority(self, u: int, v: int) -> int:
        """`priorities` of one edge, in Python integers."""
        low, high = (min(u, v), max(u, v)) if self.both_ways else (u, v)
        return mix_int(mix_int((low + 1) * GOLDEN + self._stream.key) + (high + 1) * GOLDEN)

    def best(self, priorities: Tensor) -> Tensor:
        """The `limit` smallest priorities of a hub (..., E), ascending: the last one is its threshold."""
        return priorities.topk(self.limit, largest=False).values

    def best_of_rows(self, priorities: Tensor, degrees: Tensor) -> Tensor:
        """`best` (H, limit) of hubs whose edges follow each other, padded rows of similar degrees at a time."""
        best = priorities.new_empty(len(degrees), self.limit)
        start = degrees.cumsum(0) - degrees
        bits = degrees.log2().ceil().long()
        for power in set(bits.tolist()):
            for hubs in torch.split(torch.nonzero(bits == power).flatten(), max(1, _CHUNK >> power)):
                place = torch.arange(int(degrees[hubs].max()), device=degrees.device)
                rows = priorities[(start[hubs, None] + place).clamp_(max=len(priorities) - 1)]
                best[hubs] = self.best(rows.masked_fill_(place >= degrees[hubs, None], NO_THRESHOLD))
        return best

    def largest_surviving(self, at_row: Tensor, at_neighbor: Tensor) -> Tensor:
        """The largest priority with which each edge survives, by the thresholds of its ends."""
        return torch.minimum(at_row, at_neighbor) if self.both_ways else at_row


def cap_degrees(graph: Graph, max_degree: int | None = MAX_DEGREE, *, seed: int = 0, cap: str = "symmetric") -> Graph:
    """`graph` with at most `max_degree` neighbors per node, a random subset that depends only on the seed.

    `CapRule` describes the values of `cap`.
    """
    rule = CapRule(max_degree, cap, seed, graph.directed)
    return capped(graph, rule, torch.arange(graph.num_nodes, device=graph.indptr.device))[0]


def capped(graph: Graph, rule: CapRule, keys: Tensor) -> tuple[Graph, dict[int, Tensor]]:
    """`graph` with the edges that survive, and `CapRule.best` of every hub by row. `keys` (N,) are the nodes' keys."""
    degrees = graph.degrees
    is_hub = degrees > rule.limit
    hubs = torch.nonzero(is_hub).flatten()
    if not len(hubs):
        return graph, {}
    rows, columns = graph.edge_rows, graph.indices.long()
    at_hub = is_hub[rows] | is_hub[columns] if rule.both_ways else is_hub[rows]
    edges = torch.split(torch.nonzero(at_hub).flatten(), _CHUNK)  # all others survive and need no priority
    priorities = [rule.priorities(keys[rows[some]], keys[columns[some]]) for some in edges]
    at_own_hub = [found[is_hub[rows[some]]] for found, some in zip(priorities, edges, strict=True)]
    best = rule.best_of_rows(torch.cat(at_own_hub), degrees[hubs])
    threshold = torch.full_like(degrees, NO_THRESHOLD)
    threshold[hubs] = best[:, -1]
    keep = torch.ones_like(at_hub)
    for found, some in zip(priorities, edges, strict=True):
        keep[some] = found <= rule.largest_surviving(threshold[rows[some]], threshold[columns[some]])
    return keep_edges(graph, rows, keep), dict(zip(hubs.tolist(), best, strict=True))

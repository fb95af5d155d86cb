"""The degree cap (Appendix C): edges subsampled so that no node has more than 128 neighbors.

`CapRule` decides which edges survive. Three storages apply it: a graph in memory (`capped`), a folder larger than
memory (`cap_files`) and a live graph (live/adjacency.py builds its base with `capped` and updates it). A priority
depends on the seed and the keys of both nodes, and a key depends on the node's id alone (`graph.ids.node_key`). So all
storages keep the same edges, whatever the order of the rows, and a node that arrives later keeps those that it would
have had from the start.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from graphsage.atomic import atomic_folder
from graphsage.errors import at_least, one_of
from graphsage.graph.external.csr import CsrFiles
from graphsage.graph.external.row_file import RowWriter
from graphsage.graph.graph import Graph
from graphsage.graph.ids import IntArray
from graphsage.graph.split import keep_edges, of_edges
from graphsage.kernels.random import GOLDEN, Stream, derive, mix_int

MAX_DEGREE = 128  # Appendix C: hubs would not fit a dense table; at most 25 are drawn, so the cap biases little
CAPS = ("row", "symmetric")
NO_THRESHOLD = torch.iinfo(torch.int64).max  # the threshold of a node that is not a hub
CAP_EDGE_BYTES = 62  # peak memory per stored edge of `cap_degrees`, measured with 99% of edges at hubs
_CHUNK = 1 << 20  # edges whose priorities are computed or compared at once


@dataclass(frozen=True)
class CapRule:
    """Every edge has a random priority. An edge survives if its priority is at most the threshold of its row.

    A hub has more than `max_degree` neighbors. Its threshold is the `max_degree`-th smallest priority of its edges.

    row        every node keeps its own random subset: u may keep v without the reverse. No node loses all neighbors.
    symmetric  (u, v) and (v, u) share one priority, which must be within the thresholds of both ends, so a node whose
               neighbors are all hubs may lose them. Directed graphs are capped by row instead.
    """

    max_degree: int | None
    cap: str
    seed: int
    directed: bool
    self_loops: bool = True
    """False: edges from a node to itself do not survive, and do not count as neighbors."""

    def __post_init__(self) -> None:
        one_of("cap", self.cap, CAPS)
        at_least(1, self, "max_degree")

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


def cap_degrees(
    graph: Graph, max_degree: int | None = MAX_DEGREE, *, seed: int = 0, cap: str = "row", self_loops: bool = True
) -> Graph:
    """`graph` with at most `max_degree` neighbors per node, drawn by the seed and the ids; see `CapRule`.

    Of several relations each is capped, and the lists of all together are not."""
    if graph.relations:
        return graph.with_relations(
            lambda each: cap_degrees(each, max_degree, seed=seed, cap=cap, self_loops=self_loops)
        )
    return capped(graph, CapRule(max_degree, cap, seed, graph.directed, self_loops))[0]


def without_self_loops(graph: Graph) -> Graph:
    """`graph` without edges from a node to itself; the same object if it has none."""
    if graph.relations:
        return graph.with_relations(without_self_loops)
    loops = []
    step = max(1, _CHUNK * graph.num_nodes // max(graph.num_stored_edges, 1))  # rows of about _CHUNK edges
    for start in range(0, graph.num_nodes, step):
        rows = torch.arange(start, min(start + step, graph.num_nodes), device=graph.indptr.device)
        first, last = (int(graph.indptr[at]) for at in (start, start + len(rows)))
        owners = torch.repeat_interleave(rows, graph.degrees[start : start + step])
        loops.append(first + torch.nonzero(graph.indices[first:last] == owners).flatten())
    places = torch.cat(loops) if loops else graph.indptr[:0]
    if not len(places):
        return graph
    keep = torch.ones(graph.num_stored_edges, dtype=torch.bool, device=places.device)
    keep[places] = False
    degrees = graph.degrees.index_add(0, graph.indices[places].long(), torch.full_like(places, -1))
    return graph.replace(
        indptr=torch.cat([degrees.new_zeros(1), degrees.cumsum(0)]),
        indices=graph.indices[keep],
        **of_edges(graph, keep),
    )


def without_equal_weights(graph: Graph) -> Graph:
    """`graph` without weights that are all equal, in each relation."""
    graph = graph.with_relations(without_equal_weights) if graph.relations else graph
    weight = graph.edge_weight
    same = weight is not None and (not len(weight) or bool((weight == weight[0]).all()))
    return graph.replace(edge_weight=None) if same else graph


def capped(graph: Graph, rule: CapRule, keys: Callable[[], Tensor] | None = None) -> tuple[Graph, dict[int, Tensor]]:
    """`graph` with the edges that survive, and `CapRule.best` of every hub by row. `keys` returns `graph.keys`; it is
    called only if there is a hub, before edges are read."""
    graph = graph if rule.self_loops else without_self_loops(graph)
    if rule.max_degree is None:
        return graph, {}
    degrees = graph.degrees
    is_hub = degrees > rule.limit
    hubs = torch.nonzero(is_hub).flatten()
    if not len(hubs):
        return graph, {}
    node_keys = graph.keys if keys is None else keys()
    rows, columns = graph.edge_rows, graph.indices.long()
    at_hub = is_hub[rows] | is_hub[columns] if rule.both_ways else is_hub[rows]
    edges = torch.split(torch.nonzero(at_hub).flatten(), _CHUNK)  # all others survive and need no priority
    priorities = [rule.priorities(node_keys[rows[some]], node_keys[columns[some]]) for some in edges]
    at_own_hub = [found[is_hub[rows[some]]] for found, some in zip(priorities, edges, strict=True)]
    best = rule.best_of_rows(torch.cat(at_own_hub), degrees[hubs])
    threshold = torch.full_like(degrees, NO_THRESHOLD)
    threshold[hubs] = best[:, -1]
    keep = torch.ones_like(at_hub)
    for found, some in zip(priorities, edges, strict=True):
        keep[some] = found <= rule.largest_surviving(threshold[rows[some]], threshold[columns[some]])
    return keep_edges(graph, rows, keep), dict(zip(hubs.tolist(), best, strict=True))


RUN_EDGES = 1 << 20
EDGE_BYTES = 96  # of memory that an edge takes while it is ranked


def cap_files(
    adjacency: CsrFiles,
    folder: Path,
    max_degree: int | None,
    *,
    seed: int,
    cap: str,
    directed: bool,
    keys: IntArray | None = None,
    self_loops: bool = True,
    run_edges: int = RUN_EDGES,
) -> bool:
    """Write the capped graph into `folder`; return False and write nothing if all edges survive."""
    rule = CapRule(max_degree, cap, seed, directed, self_loops)
    if max_degree is None and self_loops:
        return False
    hubs, thresholds, loops = _thresholds(adjacency, rule, keys, run_edges)
    if not (len(hubs) or loops):
        return False

    def threshold(nodes: Tensor) -> Tensor:
        if not len(hubs):
            return torch.full_like(nodes, NO_THRESHOLD)
        place = torch.searchsorted(hubs, nodes).clamp_(max=len(hubs) - 1)
        return torch.where(hubs[place] == nodes, thresholds[place], NO_THRESHOLD)

    with (
        atomic_folder(folder) as temporary,
        RowWriter(temporary / "indptr.npy", np.int64) as indptr,
        RowWriter(temporary / "indices.npy", adjacency.indices.dtype) as indices,
    ):
        indptr.write(np.zeros(1, np.int64))
        for start, pointers in adjacency.runs(run_edges):
            found = adjacency.neighbors(int(pointers[0]), int(pointers[-1]))
            count = len(pointers) - 1
            rows = torch.from_numpy(np.repeat(np.arange(start, start + count), np.diff(pointers)))
            columns = torch.from_numpy(found.astype(np.int64))
            priorities = rule.priorities(_keys_of(rows, keys), _keys_of(columns, keys))
            keep = priorities <= rule.largest_surviving(threshold(rows), threshold(columns))
            keep &= (rows != columns) | self_loops
            counts = torch.bincount(rows[keep] - start, minlength=count)
            before = indices.count
            indices.write(found[keep.numpy()])
            indptr.write(before + counts.cumsum(0).numpy())
    return True


def _thresholds(
    adjacency: CsrFiles, rule: CapRule, keys: IntArray | None, run_edges: int
) -> tuple[Tensor, Tensor, int]:
    """The nodes with too many neighbors, ascending, their thresholds, and the number of self loops to remove."""
    hubs, last, loops = [], [], 0
    for start, pointers in adjacency.runs(run_edges):
        degrees = np.diff(pointers)
        if not rule.self_loops:
            rows = np.repeat(np.arange(start, start + len(degrees)), degrees)
            own = rows[adjacency.neighbors(int(pointers[0]), int(pointers[-1])) == rows]
            degrees = degrees - np.bincount(own - start, minlength=len(degrees))
            loops += len(own)
        for row in np.flatnonzero(degrees > rule.limit).tolist():
            found = adjacency.neighbors(int(pointers[row]), int(pointers[row + 1])).astype(np.int64)
            if not rule.self_loops:
                found = found[found != start + row]
            hub, others = torch.tensor([start + row]), torch.from_numpy(found)
            priorities = rule.priorities(_keys_of(hub, keys), _keys_of(others, keys))
            hubs.append(start + row)
            last.append(int(rule.best(priorities)[-1]))
    return torch.tensor(hubs, dtype=torch.int64), torch.tensor(last, dtype=torch.int64), loops


def _keys_of(nodes: Tensor, keys: IntArray | None) -> Tensor:
    return nodes if keys is None else torch.from_numpy(keys[nodes.numpy()])


def cap_summary(graph: Graph, capped: Graph, max_degree: int | None, cap: str) -> str:
    """What the cap removes from `graph`, for people."""
    pairs = [*zip(graph.by_relation, capped.by_relation, strict=True)]
    stored = sum(whole.num_stored_edges for whole, _ in pairs)
    removed = stored - sum(kept.num_stored_edges for _, kept in pairs)
    lost = sum(int(((whole.degrees > 0) & (kept.degrees == 0)).sum()) for whole, kept in pairs)
    relation = f" and relation, of {len(pairs)}" if len(pairs) > 1 else ""
    return (
        f"at most {max_degree} neighbors per node{relation} ({cap}): removes {removed:,} of {stored:,} stored "
        f"edges ({removed / max(stored, 1):.1%}); {lost:,} nodes lose all neighbors"
    )

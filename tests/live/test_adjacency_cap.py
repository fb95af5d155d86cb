"""The degree caps in memory, on disk and of a live graph keep the same edges if nodes have the same keys."""

import tempfile
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from graphs import SEEDS, edge_set, graphs
from graphsage.graph import cap as module
from graphsage.graph.build import from_edges
from graphsage.graph.cap import CAPS, CapRule, cap_degrees, cap_files
from graphsage.graph.external import csr
from graphsage.graph.graph import Graph
from graphsage.graph.storage import save_graph
from graphsage.live.adjacency import Adjacency, BaseCap, Cap
from graphsage.live.generation import Generation, generation_of, with_text_ids

Edges = set[tuple[int, int]]


def slowly(graph: Graph, rule: CapRule) -> Edges:
    """The rule, edge by edge."""
    edges = {(v, u) for v, u in edge_set(graph) if v != u or rule.self_loops}
    ranked = {v: sorted(rule.priority(v, u) for w, u in edges if w == v)[: rule.limit] for v in range(graph.num_nodes)}

    def within(v: int, u: int) -> bool:
        return rule.priority(v, u) in ranked[v]

    return {(v, u) for v, u in edges if within(v, u) and (not rule.both_ways or within(u, v))}


def keyed_by_row(graph: Graph) -> Generation:
    made = generation_of(with_text_ids(graph), [{}] * graph.num_nodes)
    return replace(made, keys=np.arange(graph.num_nodes))


def shown(live: Adjacency, count: int) -> Edges:
    return {(row, int(other)) for row in range(count) for other in live.capped(row)}


def on_disk(graph: Graph, limit: int | None, seed: int, cap: str, self_loops: bool) -> Edges:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        save_graph(graph, folder / "graph")
        if not cap_files(
            csr.CsrFiles.open(folder / "graph"),
            folder / "capped",
            limit,
            seed=seed,
            cap=cap,
            directed=graph.directed,
            self_loops=self_loops,
            run_edges=7,
        ):
            return edge_set(graph)
        indptr, indices = (torch.from_numpy(np.load(folder / "capped" / f"{n}.npy")) for n in ("indptr", "indices"))
        return edge_set(graph.replace(indptr=indptr, indices=indices))


@given(
    graphs(directed=None),
    st.one_of(st.none(), st.integers(1, 4)),
    st.sampled_from(CAPS),
    st.booleans(),
    SEEDS,
    st.randoms(use_true_random=False),
    st.sampled_from([5, 1000]),
)
def test_all_degree_caps_keep_the_same_edges(
    graph: Graph, limit: int | None, cap: str, self_loops: bool, seed: int, order: Random, chunk: int
) -> None:
    n = graph.num_nodes
    expected = slowly(graph, CapRule(limit, cap, seed, graph.directed, self_loops))
    before, module._CHUNK = module._CHUNK, chunk
    try:
        assert edge_set(cap_degrees(graph, limit, seed=seed, cap=cap, self_loops=self_loops)) == expected
        assert on_disk(graph, limit, seed, cap, self_loops) == expected
        base = keyed_by_row(graph)
        live = Adjacency(base, BaseCap(base, Cap(limit, cap, seed, self_loops)), {})
        assert shown(live, n) == expected
    finally:
        module._CHUNK = before
    empty = keyed_by_row(from_edges(np.zeros((0, 2), np.int64), n, directed=graph.directed))
    grown = Adjacency(empty, BaseCap(empty, Cap(limit, cap, seed, self_loops)), {})
    edges = sorted(edge_set(graph))
    order.shuffle(edges)
    start = 0
    while start < len(edges):  # a few at a time, some of them again
        size = order.randint(1, len(edges))
        some = np.array(edges[max(0, start - order.randint(0, 2)) : start + size]).T
        grown.join(some[1], some[0])
        start += size
    assert shown(grown, n) == expected
    for row, other in edges[::2]:  # taken away from the base and joined again
        live.cut(other, row)
    for row, other in edges[::2]:
        live.join(np.array([other]), np.array([row]))
    assert shown(live, n) == expected

"""Random graphs for property tests: isolated nodes, self loops, repeated edges, several components."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from hypothesis import strategies as st
from torch import Tensor

from graphsage.graph.build import from_edges
from graphsage.graph.graph import UNKNOWN, Graph
from graphsage.tables.spec import DIRECTIONS

SEEDS = st.integers(0, 2**32 - 1)


@st.composite
def edge_lists(draw: Callable[..., Any], max_nodes: int = 12) -> tuple[int, list[tuple[int, int]]]:
    """A number of nodes and edges among the first of them, so that the last ones may be isolated."""
    n = draw(st.integers(1, max_nodes))
    joined = draw(st.integers(1, n))
    node = st.integers(0, joined - 1)
    return n, draw(st.lists(st.tuples(node, node), max_size=3 * n))


@st.composite
def graphs(
    draw: Callable[..., Any],
    max_nodes: int = 12,
    dim: int = 3,
    directed: bool | None = False,
    several: bool = False,
) -> Graph:
    """A graph with `dim` normal features; `directed=None` draws that too. `several` draws one or two relations."""
    n, edges = draw(edge_lists(max_nodes))
    way = draw(st.booleans()) if directed is None else directed
    direction = draw(st.sampled_from(DIRECTIONS)) if several else "in" if way else "merged"
    return from_edges(edges, n, features=normal(draw(SEEDS), n, dim), direction=direction)


@st.composite
def full_graphs(
    draw: Callable[..., Any],
    max_nodes: int = 8,
    directions: tuple[str, ...] = ("merged", "in"),
    of_edges: bool = False,
) -> Graph:
    """A graph that may have all there is: ids of both kinds, features, classes or many labels, names, times; with
    `of_edges` also edge types and weights."""
    n, edges = draw(edge_lists(max_nodes))
    columns: dict[str, Any] = {}
    if draw(st.booleans()):
        columns["features"] = normal(draw(SEEDS), n, draw(st.integers(1, 3)))
    many = draw(st.sampled_from([None, False, True]))
    if many is not None:
        width = draw(st.integers(1, 3))
        row: Any = st.lists(st.integers(0, 1), min_size=width, max_size=width) if many else st.integers(-1, width - 1)
        labels = draw(st.lists(row, min_size=n, max_size=n))
        if many:  # the first node is known, so that the graph has labels everywhere
            unknown = draw(st.lists(st.booleans(), min_size=n - 1, max_size=n - 1))
            labels[1:] = [[UNKNOWN] * width if hide else row for hide, row in zip(unknown, labels[1:], strict=True)]
        columns["labels"] = np.array(labels, np.uint8 if many else np.int64)
        columns["class_names"] = draw(st.sampled_from([None, [f"class {i}" for i in range(width)]]))
    words = st.text(min_size=1, max_size=4).filter(str.strip)
    kind = draw(st.sampled_from([None, words, st.integers(-(2**63), 2**63 - 1)]))
    if kind is not None:
        columns["ids"] = draw(st.lists(kind, min_size=n, max_size=n, unique=True))
    whole = st.integers(-(2**40), 2**40)
    for name in ("time", "graph_number"):
        if draw(st.booleans()):
            columns[name] = draw(st.lists(whole, min_size=n, max_size=n))
    if draw(st.booleans()):
        columns["edge_time"] = draw(st.lists(whole, min_size=len(edges), max_size=len(edges)))
    if of_edges and draw(st.booleans()):
        columns["edge_type"] = draw(st.lists(st.integers(0, 1), min_size=len(edges), max_size=len(edges)))
        columns["edge_types"] = ["loves", "hates"]
    if of_edges and draw(st.booleans()):  # sums are exact
        columns["edge_weight"] = draw(st.lists(st.sampled_from([0.5, 1, 3]), min_size=len(edges), max_size=len(edges)))
    return from_edges(edges, n, direction=draw(st.sampled_from(directions)), **columns)


def facts(graph: Graph, *without: str) -> dict[str, Any]:
    """All that a graph says, for comparison: attributes as lists with their types, ids as the outside sees them."""
    names = ("indptr", "indices", "features", "labels", "time", "graph_number", "edge_time", "edge_weight")
    tensors = {name: getattr(graph, name) for name in names}
    said = {name: None if t is None else (t.dtype, t.tolist()) for name, t in tensors.items()}
    said |= {"ids": [graph.id_of(row) for row in range(graph.num_nodes)], "class_names": graph.class_names}
    said |= {"directed": graph.directed, "direction": graph.direction}
    said |= {"relations": {name: facts(each) for name, each in graph.relations.items()}}
    return {name: value for name, value in said.items() if name not in without}


def normal(seed: int, *shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """Normal numbers from a seed (dense, so that no two are equal)."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def neighbor_lists(graph: Graph) -> dict[int, list[int]]:
    """The graph as a dictionary from a node to its neighbors."""
    return {v: graph.neighbors(v).tolist() for v in range(graph.num_nodes)}


def star(leaves: int) -> Graph:
    """Node 0 joined with 1..leaves."""
    return from_edges([(0, v) for v in range(1, leaves + 1)], leaves + 1)


def regular(n: int, d: int) -> Graph:
    """Every node has the d nearest nodes of a ring as neighbors (d even, n > d)."""
    return from_edges([(v, (v + step) % n) for v in range(n) for step in range(1, d // 2 + 1)], n)


def edge_set(graph: Graph) -> set[tuple[int, int]]:
    """All stored (row, neighbor) pairs."""
    return {(v, u) for v, neighbors in neighbor_lists(graph).items() for u in neighbors}


def chi_square_p(counts: Any, expected: Any = None) -> float:
    """The p value that `counts` come from `expected` shares (all equal by default)."""
    from scipy.stats import chisquare

    counts = np.asarray(counts, float)
    if expected is not None:
        shares = np.asarray(expected, float)
        expected = shares / shares.sum() * counts.sum()
    return float(chisquare(counts, expected).pvalue)

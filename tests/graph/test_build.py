"""From edges to a graph: what is merged, kept and dropped."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from graphs import edge_lists, edge_set, neighbor_lists
from graphsage.errors import GraphError
from graphsage.graph.build import from_edges
from graphsage.graph.graph import Graph

EdgeList = tuple[int, list[tuple[int, int]]]


@given(edge_lists())
def test_an_undirected_graph_holds_every_edge_both_ways_once(given_: EdgeList) -> None:
    n, edges = given_
    graph = from_edges(edges, n)
    lists = neighbor_lists(graph)
    expected = {v: sorted({b for a, b in edges if a == v} | {a for a, b in edges if b == v}) for v in range(n)}
    assert lists == expected  # ascending, too
    assert graph.num_nodes == n
    assert graph.degrees.tolist() == [len(expected[v]) for v in range(n)]
    assert graph.num_edges == len({frozenset(e) for e in edges})
    assert graph.num_self_loops == len({a for a, b in edges if a == b})
    assert graph.indptr.dtype == torch.int64
    assert graph.indices.dtype == torch.int32


@given(edge_lists())
def test_in_a_directed_graph_the_neighbors_of_v_are_the_u_of_its_edges_from_u_to_v(given_: EdgeList) -> None:
    n, edges = given_
    graph = from_edges(edges, n, directed=True)
    assert edge_set(graph) == {(v, u) for u, v in edges}
    assert graph.num_edges == graph.num_stored_edges == len(set(edges))


@given(edge_lists(), st.booleans())
def test_self_loops_can_be_dropped(given_: EdgeList, directed: bool) -> None:
    n, edges = given_
    graph = from_edges(edges, n, directed=directed, self_loops=False)
    without = from_edges([e for e in edges if e[0] != e[1]], n, directed=directed)
    assert edge_set(graph) == edge_set(without)
    assert graph.num_self_loops == 0


@given(edge_lists(), st.booleans(), st.randoms(use_true_random=False))
def test_the_order_of_edges_does_not_matter(given_: EdgeList, directed: bool, random: object) -> None:
    n, edges = given_
    shuffled = list(edges)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    a, b = (from_edges(e, n, directed=directed) for e in (edges, shuffled))
    assert torch.equal(a.indptr, b.indptr)
    assert torch.equal(a.indices, b.indices)


@given(edge_lists(), st.booleans(), st.data())
def test_a_repeated_edge_keeps_its_earliest_time(given_: EdgeList, directed: bool, data: st.DataObject) -> None:
    n, edges = given_
    times = data.draw(st.lists(st.integers(-50, 50), min_size=len(edges), max_size=len(edges)))
    graph = from_edges(edges, n, edge_time=np.array(times, dtype=np.int64), directed=directed)
    earliest: dict[tuple[int, int], int] = {}
    for (a, b), when in zip(edges, times, strict=True):
        for pair in [(b, a)] if directed else [(a, b), (b, a)]:
            earliest[pair] = min(when, earliest.get(pair, when))
    assert graph.edge_time is not None
    pairs = [(v, u) for v, near in neighbor_lists(graph).items() for u in near]
    assert dict(zip(pairs, graph.edge_time.tolist(), strict=True)) == earliest


@pytest.mark.parametrize(
    "edges",
    [
        [(0, 1), (2, 1)],
        np.array([[0, 1], [2, 1]], np.int32),
        np.array([[0, 1], [2, 1]], np.uint64),
        torch.tensor([[0, 1], [2, 1]]),
        np.asfortranarray([[0, 1], [2, 1]]),
    ],
    ids=["list", "int32", "uint64", "tensor", "fortran"],
)
def test_edges_may_be_any_array_of_integers(edges: object) -> None:
    assert neighbor_lists(from_edges(edges)) == {0: [1], 1: [0, 2], 2: [1]}


@pytest.mark.parametrize("kind", ["read-only", "reversed", "big-endian", "unsigned"])
def test_arrays_of_every_layout_are_read_without_a_warning(kind: str) -> None:
    def laid_out(values: list[object], dtype: type) -> np.ndarray:
        array = np.array(values, dtype)
        if kind == "reversed":
            return np.array(values[::-1], dtype)[::-1]
        if kind == "big-endian":
            return array.astype(array.dtype.newbyteorder(">"))
        if kind == "unsigned" and array.dtype.kind == "i":
            return array.astype(np.uint64)
        array.flags.writeable = False
        return array

    edges, labels = laid_out([[0, 1], [1, 2]], np.int64), laid_out([0, 1, 1], np.int64)
    features, time = laid_out([[1], [2], [3]], np.float32), laid_out([5, 6, 7], np.int64)
    graph = from_edges(edges, features=features, labels=labels, time=time)
    assert neighbor_lists(graph) == {0: [1], 1: [0, 2], 2: [1]}
    assert [t.tolist() for t in (graph.features, graph.labels, graph.time) if t is not None] == [
        [[1], [2], [3]],
        [0, 1, 1],
        [5, 6, 7],
    ]
    assert neighbor_lists(graph.with_nodes(features=features[:1], edges=edges))[2] == [1]


def test_the_number_of_nodes_comes_from_rows_or_from_edges() -> None:
    assert from_edges([(0, 3)]).num_nodes == 4
    assert from_edges([(0, 3)], 9).num_nodes == 9
    assert from_edges([(0, 1)], features=np.zeros((5, 2))).num_nodes == 5
    assert from_edges([(0, 1)], labels=[0, 1, 0]).num_nodes == 3
    assert from_edges([(0, 1)], ids=["a", "b", "c", "d"]).num_nodes == 4
    assert from_edges([(0, 1)], ids=(name for name in "abcd")).num_nodes == 4
    assert from_edges([(0, 1)], time=[1, 2, 3]).num_nodes == 3


def test_a_graph_may_have_no_edges() -> None:
    for none in ([], np.zeros((0, 2), np.int64), torch.zeros(0, 2)):
        graph = from_edges(none, 3)
        assert graph.num_nodes == 3
        assert graph.num_edges == 0
        assert neighbor_lists(graph) == {0: [], 1: [], 2: []}


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int8, np.int64, np.uint16, np.bool_])
def test_features_of_every_number_type_become_floating_point(dtype: type) -> None:
    values = np.array([[0, 1], [1, 1]]).astype(dtype)
    for given_ in (values, torch.from_numpy(values)) if dtype != np.uint16 else (values,):
        graph = from_edges([(0, 1)], features=given_)
        assert graph.features is not None
        assert graph.features.dtype == (torch.float16 if dtype == np.float16 else torch.float32)
        assert graph.features.tolist() == [[0, 1], [1, 1]]


def test_labels_become_classes_or_bits() -> None:
    one = from_edges([(0, 1)], labels=np.array([2, -1], np.int8))
    assert one.labels is not None
    assert one.labels.dtype == torch.int64
    assert (one.multilabel, one.num_classes) == (False, 3)
    many = from_edges([(0, 1)], labels=[[0, 1.0, 1], [0, 0, 0]], class_names=["x", "y", "z"])
    assert many.labels is not None
    assert many.labels.dtype == torch.uint8
    assert (many.multilabel, many.num_classes, many.class_names) == (True, 3, ("x", "y", "z"))
    assert from_edges([(0, 1)]).num_classes == 0


def test_new_nodes_come_after_the_old_ones() -> None:
    old = from_edges([(0, 1), (1, 1)], features=np.eye(2), labels=[0, 1], ids=["a", "b"], class_names=["no", "yes"])
    new = old.with_nodes(features=[[3, 4], [5, 6]], edges=[(2, 0), (3, 2)], ids=["c", "d"])
    assert neighbor_lists(new) == {0: [1, 2], 1: [0, 1], 2: [0, 3], 3: [2]}
    assert new.features is not None
    assert new.features.tolist() == [[1, 0], [0, 1], [3, 4], [5, 6]]
    assert new.labels is not None
    assert new.labels.tolist() == [0, 1, -1, -1]
    assert new.class_names == ("no", "yes")
    assert new.rows_of(["d", "a"]).tolist() == [3, 0]
    assert neighbor_lists(old) == {0: [1], 1: [0, 1]}  # the old graph is as it was


@given(edge_lists(8), edge_lists(4), st.booleans(), st.data())
def test_growing_equals_building_at_once(old: EdgeList, added: EdgeList, directed: bool, data: st.DataObject) -> None:
    n, edges = old
    node = st.integers(0, n + added[0] - 1)
    later = data.draw(st.lists(st.tuples(node, node), max_size=8))
    x = np.arange(2 * (n + added[0]), dtype=np.float32).reshape(-1, 2)
    whole = from_edges([*edges, *later], n + added[0], features=x, directed=directed)
    grown = from_edges(edges, n, features=x[:n], directed=directed).with_nodes(features=x[n:], edges=later)
    assert edge_set(grown) == edge_set(whole)
    assert grown.directed == directed
    assert grown.features is not None
    assert torch.equal(grown.features, torch.from_numpy(x))


def test_nodes_can_arrive_without_features_ids_or_edges() -> None:
    plain = from_edges([(0, 1)])
    assert neighbor_lists(plain.with_nodes(edges=[(1, 3)])) == {0: [1], 1: [0, 3], 2: [], 3: [1]}
    assert from_edges([(0, 1)], features=np.eye(2)).with_nodes(features=[[1, 1]], edges=[]).num_nodes == 3
    with pytest.raises(GraphError, match="pass features for the 1 new"):
        from_edges([(0, 1)], features=np.eye(2)).with_nodes(edges=[(0, 2)])
    with pytest.raises(GraphError, match="2 features like the graph; got 3"):
        from_edges([(0, 1)], features=np.eye(2)).with_nodes(features=np.zeros((1, 3)), edges=[(0, 2)])
    with pytest.raises(GraphError, match="pass ids for the 1 new"):
        from_edges([(0, 1)], ids=["a", "b"]).with_nodes(edges=[(0, 2)])
    with pytest.raises(GraphError, match="repeats 'a'"):
        from_edges([(0, 1)], ids=["a", "b"]).with_nodes(edges=[(0, 2)], ids=["a"])
    with pytest.raises(GraphError, match="edge 1 points at node 3"):
        from_edges([(0, 1)], features=np.eye(2)).with_nodes(features=[[1, 1]], edges=[(0, 2), (2, 3)])


def test_a_graph_describes_itself() -> None:
    graph = Graph.from_edges([(0, 1), (1, 2)], features=np.zeros((3, 4)), labels=[0, 1, 1])
    assert repr(graph) == "Graph(3 nodes, 4 stored edges, 4 features, 2 classes)"
    assert graph.id_of(2) == 2
    assert graph.to("cpu").features is graph.features


@pytest.mark.parametrize("make", [sparse.csr_matrix, sparse.coo_array, lambda x: torch.tensor(x).to_sparse()])
def test_sparse_features_become_dense(make: Any) -> None:
    table = np.array([[0.0, 2.0], [0.0, 0.0], [1.5, 0.0]], np.float32)
    graph = from_edges([(0, 1)], features=make(table))
    assert graph.features is not None
    assert graph.features.tolist() == table.tolist()


def test_sparse_features_that_do_not_fit_are_refused() -> None:
    with pytest.raises(GraphError, match=r"sparse features of shape \(3, 9000000000\) are too many to make dense"):
        from_edges([(0, 1)], features=sparse.csr_matrix((3, 9_000_000_000)))


@pytest.mark.parametrize("labels", [["b", "a", None, "b"], np.array(["b", "a", None, "b"], object)])
def test_labels_may_be_names(labels: Any) -> None:
    graph = from_edges([(0, 1)], 4, labels=labels)
    assert graph.labels is not None
    assert (graph.labels.tolist(), graph.class_names) == ([1, 0, -1, 1], ("a", "b"))
    graph = from_edges([(0, 1)], 4, labels=labels, class_names=["b", "c", "a"])
    assert graph.labels is not None
    assert (graph.labels.tolist(), graph.class_names) == ([0, 2, -1, 0], ("b", "c", "a"))
    with pytest.raises(GraphError, match="the label 'b' is not in class_names"):
        from_edges([(0, 1)], 4, labels=labels, class_names=["a"])


def test_ragged_labels_are_refused() -> None:
    with pytest.raises(GraphError, match="labels must be one value per node, or rows of one length"):
        from_edges([(0, 1)], 2, labels=[[0, 1], [1]])

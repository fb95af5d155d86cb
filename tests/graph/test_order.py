"""Node orders: renumbering changes nothing but row numbers, and a local order brings neighbors together."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from graphsage.errors import GraphError
from graphsage.graph.check import check_graph
from graphsage.graph.graph import Graph
from graphsage.graph.order import local_order, renumbered
from graphsage.graph.paging import exceeds_memory, memory_available, read_ahead
from graphsage.graph.storage import load_array, open_graph, save_graph
from planted import planted_graph


@given(st.integers(0, 2**32 - 1), st.booleans())
def test_renumbering_keeps_every_edge_and_what_belongs_to_a_node(seed: int, directed: bool) -> None:
    generator = torch.Generator().manual_seed(seed)
    n = int(torch.randint(1, 12, (1,), generator=generator))
    edges = torch.randint(n, (20, 2), generator=generator)
    graph = Graph.from_edges(edges, n, features=torch.randn(n, 2, generator=generator), labels=torch.arange(n),
                             ids=[f"node {row}" for row in range(n)], time=torch.arange(n) * 10,
                             directed=directed)  # fmt: skip
    order = torch.randperm(n, generator=generator)
    moved = renumbered(graph, order)
    check_graph(moved)
    for row in range(n):
        old = int(order[row])
        assert moved.id_of(row) == graph.id_of(old)
        assert torch.equal(moved.features[row], graph.features[old])
        assert int(moved.labels[row]) == old
        assert int(moved.time[row]) == old * 10
        neighbors = moved.neighbors(row)
        assert torch.equal(neighbors, neighbors.sort().values)
        assert sorted(order[neighbors.long()].tolist()) == graph.neighbors(old).tolist()


def test_times_stay_with_their_edges_and_integer_ids_with_their_nodes() -> None:
    graph = Graph.from_edges([[0, 1], [0, 2], [2, 1]], 3, edge_time=[10, 20, 30], ids=[7, 8, 9], directed=True)
    moved = renumbered(graph, torch.tensor([2, 0, 1]))  # rows are now 9, 7, 8
    found = {(moved.id_of(int(u)), moved.id_of(int(v))): int(t)
             for u, v, t in zip(moved.edge_rows, moved.indices, moved.edge_time, strict=True)}  # fmt: skip
    assert found == {(8, 7): 10, (9, 7): 20, (8, 9): 30}  # a row holds the sources of its edges


@pytest.mark.parametrize("order", [[0, 1], [0, 1, 1], [0, 1, 2, 2]])
def test_an_order_must_be_a_permutation(order: list[int]) -> None:
    with pytest.raises(GraphError, match="each of the 3 rows once"):
        renumbered(Graph.from_edges([[0, 1]], 3), torch.tensor(order))


def test_a_local_order_puts_shuffled_cliques_side_by_side() -> None:
    size, count = 8, 20
    place = torch.from_numpy(np.random.default_rng(0).permutation(size * count))
    inside = torch.combinations(torch.arange(size))
    edges = torch.cat([place[inside + size * clique] for clique in range(count)])
    first = torch.arange(count) * size
    bridges = torch.stack([place[first], place[first.roll(-1)]], 1)
    graph = Graph.from_edges(torch.cat([edges, bridges]), size * count)
    moved = renumbered(graph, local_order(graph))
    far = (moved.edge_rows - moved.indices).abs() >= size
    assert int(far.sum()) <= 2 * count  # the bridges
    assert int(((graph.edge_rows - graph.indices).abs() >= size).sum()) > 20 * count


def test_the_system_is_told_how_a_mapped_table_is_read(tmp_path) -> None:
    graph = planted_graph()
    save_graph(graph, tmp_path / "graph")
    features = open_graph(tmp_path / "graph").features
    before = features.clone()
    assert read_ahead(features, False)
    assert read_ahead(features, True)
    assert torch.equal(features, before)
    assert not read_ahead(features[:0], False)


def test_a_table_larger_than_memory_is_known_before_it_is_read(tmp_path) -> None:
    available = memory_available()
    assert 1 << 20 < available < 1 << 50
    path = tmp_path / "huge.npy"
    header = np.lib.format.open_memmap(path, "w+", np.float16, (available // 2 // 1000 + 2000, 1000))  # sparse on disk
    del header
    assert exceeds_memory(torch.utils.dlpack.from_dlpack(load_array(path)))
    assert not exceeds_memory(planted_graph().features)

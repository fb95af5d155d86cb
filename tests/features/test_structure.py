"""Features by edges: worked out by hand, equal for new nodes, and independent of the order of rows and neighbors."""

import torch
from hypothesis import given
from hypothesis import strategies as st

import graphsage as gs
from graphs import SEEDS
from graphsage.features.degree import degree_features
from graphsage.features.structure import Structure

BOTH = Structure(degree=True, projections=70)


def numbered(pairs: list[tuple[int, int]], nodes: int, order: list[int] | None = None) -> gs.Graph:
    """A graph of `nodes` with ids n0, n1, ..; its rows in another order on request."""
    order = list(range(nodes)) if order is None else order
    place = {node: row for row, node in enumerate(order)}
    edges = torch.tensor([(place[a], place[b]) for a, b in pairs], dtype=torch.int64).view(-1, 2)
    return gs.Graph.from_edges(edges, nodes, ids=[f"n{node}" for node in order])


def table(graph: gs.Graph) -> torch.Tensor:
    return torch.cat(BOTH.of_graph(graph), dim=1)


def test_one_neighbor_gives_its_signs_and_more_their_sum() -> None:
    graph = numbered([(0, 1), (0, 2), (3, 1), (0, 3)], 5)
    degrees, x = BOTH.of_graph(graph)
    assert torch.equal(degrees, degree_features(graph.degrees))
    signs = x[2]  # of node 0, the only neighbor of node 2
    assert x.shape == (5, 70)
    assert set(signs.tolist()) == {-1.0, 1.0}
    assert torch.equal(x[4], torch.zeros(70))
    alone = BOTH.of_lists(graph.keys[[1]], torch.tensor([0, 1]))[1][0]
    torch.testing.assert_close(x[3], (signs + alone) / 2**0.5)
    assert BOTH.width == 17 + 70
    assert Structure().of_graph(graph) == []


@given(SEEDS, st.integers(2, 25), st.data())
def test_another_order_of_the_rows_permutes_the_features_to_the_bit(seed: int, nodes: int, data: st.DataObject) -> None:
    generator = torch.Generator().manual_seed(seed)
    pairs = [(int(a), int(b)) for a, b in torch.randint(nodes, (3 * nodes, 2), generator=generator)]
    order = data.draw(st.permutations(range(nodes)))
    one, other = table(numbered(pairs, nodes)), table(numbered(pairs, nodes, order))
    assert torch.equal(one[list(order)], other)


@given(SEEDS, st.integers(2, 25))
def test_a_new_node_has_features_by_its_edges_alone(seed: int, nodes: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    pairs = [(int(a), int(b)) for a, b in torch.randint(nodes, (2 * nodes, 2), generator=generator)]
    neighbors = sorted(set(torch.randint(nodes, (3,), generator=generator).tolist()))
    before = numbered(pairs, nodes)
    grown = before.with_nodes(edges=[(nodes, v) for v in neighbors], ids=["new"])
    expected = torch.cat(BOTH.of_lists(before.keys[neighbors], torch.tensor([0, len(neighbors)])), dim=1)[0]
    assert torch.equal(table(grown)[nodes], expected)
    others = [v for v in range(nodes) if v not in neighbors]
    assert torch.equal(table(grown)[others], table(before)[others])


def test_products_estimate_how_many_neighbors_two_nodes_share() -> None:
    share = [(0, v) for v in range(2, 34)] + [(1, v) for v in range(10, 42)]  # 24 of 32 in common
    x = Structure(projections=4096).of_graph(numbered(share, 42))[0]
    assert abs(float(x[0] @ x[1]) / 4096 - 24 / 32) < 0.05

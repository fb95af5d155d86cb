"""Links are in one part each, and what may be read for a part holds none of the links that are asked later."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from graphsage.errors import ConfigError, DataError
from graphsage.graph.graph import Graph
from graphsage.graph.link_split import graph_links, split_links
from graphsage.graph.split import Split, without_test_nodes
from planted import planted_graph, planted_split

WAYS = {False: "merged", True: "in", "out": "out"}
EVERYONE = Split(torch.zeros(120, dtype=torch.uint8))


def as_set(pairs: torch.Tensor) -> set[tuple[int, int]]:
    return {(int(a), int(b)) for a, b in pairs}


def edges_of(graph: Graph) -> set[tuple[int, int]]:
    pairs = torch.stack([graph.indices.long(), graph.edge_rows], dim=1)
    return as_set(pairs.flip(1) if graph.direction == "out" else pairs)


def planted(directed: bool | str, seed: int = 0) -> Graph:
    graph = planted_graph(120, seed)
    edges = graph_links(graph)
    some = torch.cat([edges, edges[::5].flip(1)]) if directed else edges
    time = torch.arange(len(some)) % 50
    return Graph.from_edges(some, 120, features=graph.features, direction=WAYS[directed], edge_time=time)


@settings(max_examples=20, deadline=None)
@given(st.sampled_from([False, True, "out"]), st.sampled_from(["edges", "time"]), st.integers(0, 9), st.integers(0, 5))
def test_each_link_is_in_one_part_and_hidden_until_then(directed: bool | str, how: str, seed: int, of: int) -> None:
    graph = planted(directed, of)
    links = {pair for pair in as_set(graph_links(graph)) if pair[0] != pair[1]}
    made = split_links(graph, how, EVERYONE, seed)
    train, val, test = (as_set(part.pairs) for part in (made.train, made.val, made.test))
    assert made.both_ways is (directed is False)
    turned = {(b, a) for a, b in train} if made.both_ways else set()
    everything = links | ({(b, a) for a, b in links} if made.both_ways else set())
    assert not (train | turned) & val
    assert not (train | turned) & test
    assert not val & test
    assert len(everything - train - turned - val - test) == made.skipped - sum(
        pair[0] == pair[1] for pair in as_set(graph_links(graph))
    )
    for part, later in ((made.train, val | test), (made.val, val | test), (made.test, test)):
        held = edges_of(part.messages) | as_set(part.known)
        assert not held & later
        assert not held & {(b, a) for a, b in later}
    assert edges_of(made.test.messages) >= val
    if how == "edges":
        assert len(train) == pytest.approx(0.8 * len(links), abs=0.02 * len(links) + 1)


def test_the_newest_links_are_the_test() -> None:
    graph = planted(directed=True)
    made = split_links(graph, "time", EVERYONE)
    time = dict(zip(map(tuple, graph_links(graph).tolist()), graph.edge_time.tolist(), strict=True))
    newest = {name: [time[pair] for pair in as_set(made.part(name).pairs)] for name in ("train", "val", "test")}
    assert max(newest["train"]) < min(newest["val"]) <= max(newest["val"]) < min(newest["test"])


@pytest.mark.parametrize("directed", [True, False])
def test_new_nodes_have_no_edges_and_ask_for_older_ones(directed: bool) -> None:
    graph, split = planted(directed).replace(edge_time=None), planted_split(planted_graph())
    made = split_links(graph, "nodes", split)
    codes = split.codes
    for part, code in ((made.val, 1), (made.test, 2)):
        assert set(codes[part.pairs[:, 0]].tolist()) == {code}
        assert (codes[part.pairs[:, 1]] < code).all()
        assert (codes[part.candidates] < code).all()
        assert not any(codes[v] == code for pair in edges_of(part.messages) for v in pair)
    assert (codes[made.train.pairs] == 0).all()
    assert edges_of(made.test.messages) == edges_of(without_test_nodes(graph, split))
    asked = as_set(graph_links(graph)) | (set() if directed else {(b, a) for a, b in as_set(graph_links(graph))})
    assert as_set(made.val.pairs) == {(a, b) for a, b in asked if codes[a] == 1 and codes[b] == 0}


def test_the_order_of_nodes_does_not_change_the_parts() -> None:
    graph = planted(directed=False).replace(edge_time=None)
    ids = [f"n{row}" for row in range(120)]
    order = torch.randperm(120, generator=torch.Generator().manual_seed(0))
    place = torch.argsort(order)
    links = graph_links(graph)
    one = Graph.from_edges(links, 120, ids=ids)
    two = Graph.from_edges(place[links], ids=[ids[row] for row in order.tolist()])
    first, second = split_links(one, "edges", EVERYONE), split_links(two, "edges", EVERYONE)
    assert as_set(first.test.pairs) == as_set(order[second.test.pairs])


def test_a_table_of_pairs_is_learned_instead_of_the_edges() -> None:
    graph = planted(directed=False).replace(edge_time=None)
    pairs = torch.stack([torch.arange(60), torch.arange(60) + 60], dim=1)
    made = split_links(graph, "edges", EVERYONE, pairs=pairs)
    assert as_set(made.train.pairs) | as_set(made.val.pairs) | as_set(made.test.pairs) == as_set(pairs)
    lost = edges_of(graph) - edges_of(made.train.messages)
    assert lost <= as_set(pairs) | {(b, a) for a, b in as_set(pairs)}
    assert not made.both_ways
    assert len(split_links(graph, "nodes", planted_split(graph), pairs=pairs).train.pairs) > 5


@pytest.mark.parametrize(
    ("edges", "how", "sentence"),
    [
        ([[0, 1], [1, 2]], "edges", "2 links are too few"),
        ([[0, 1], [1, 1]], "edges", "1 link is too few"),
        ([[a, b] for a in range(9) for b in range(a)], "edges", "no possible negatives"),
        ([[a, b] for a in range(6) for b in range(a)], "nodes", "no possible negatives"),
        ([[a, a + 1] for a in range(20)], "time", "the graph has none"),
        ([[a, a + 1] for a in range(20)], "nodes", "the val part has no link"),
        ([[a, a] for a in range(20)], "edges", "0 links are too few"),
    ],
)
def test_what_cannot_be_learned_is_refused(edges: list[list[int]], how: str, sentence: str) -> None:
    n = max(max(pair) for pair in edges) + 1
    codes = torch.zeros(n, dtype=torch.uint8)
    if n == 6:
        codes[4], codes[5] = 1, 2
    with pytest.raises(DataError, match=sentence):
        split_links(Graph.from_edges(edges, n), how, Split(codes))


def test_reverses_of_older_links_are_in_no_part() -> None:
    edges = [[a, a + 1] for a in range(20)]
    time = list(range(20)) + list(range(20, 40))
    graph = Graph.from_edges(edges + [[b, a] for a, b in edges], 21, direction="in", edge_time=time)
    with pytest.raises(DataError, match=r"val part has no link .* the reverses of older links, which give them away"):
        split_links(graph, "time", EVERYONE)


def test_edges_after_validation_are_unknown_to_the_test() -> None:
    """Nodes 0 to 9 train, 10 and 11 (times 10, 11) validate, 12 and 13 test; three edges of old nodes are dated 5, 11
    and 12."""
    node_time = torch.tensor([0] * 10 + [10, 11, 12, 13])
    dated = {(0, 1): 5, (2, 3): 11, (4, 5): 12}
    dated |= {(new, old): int(node_time[new]) for new in range(10, 14) for old in range(3)}
    graph = Graph.from_edges(list(dated), 14, direction="in", edge_time=list(dated.values()), time=node_time)
    made = split_links(graph, "nodes", Split.at_times(node_time, 9, 11))
    for known in (edges_of(made.test.messages), as_set(made.test.known)):
        assert {(0, 1), (2, 3), (11, 2)} <= known
        assert (4, 5) not in known
    assert edges_of(made.val.messages) == as_set(made.train.pairs) == {(0, 1)}
    assert as_set(made.test.pairs) == {(new, old) for new in (12, 13) for old in range(3)}


def test_several_relations_are_refused() -> None:
    graph = Graph.from_edges([[a, (a + 1) % 30] for a in range(30)], 30, direction="both")
    with pytest.raises(ConfigError, match="edges of one relation"):
        split_links(graph, "edges", Split(torch.zeros(30, dtype=torch.uint8)))

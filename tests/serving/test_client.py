"""The Python client: large batches, versions, recall, lists and the feed."""

import json
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphsage.errors import ConfigError
from graphsage.serving.client import Client, Node, ServiceError, Version, _parts
from graphsage.serving.settings import Settings
from small_service import NEW, N, Small, served


@pytest.fixture(scope="module")
def client(small: Small, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    copied = small.copy(tmp_path_factory.mktemp("client"))
    with served(copied) as (_, address), Client(address, retries=20) as made:
        yield made


def test_large_batches_are_several_requests_in_order(client: Client) -> None:
    ids = [f"node-{row % N}" for row in range(600)]
    nodes = [Node(attributes={"words": f"about {row}", "size": row % 5}, edges=["node-1"]) for row in range(300)]
    large = client.embed(ids=ids, nodes=nodes)
    assert large.vectors.shape == (900, 8)
    assert np.array_equal(large.vectors[:N], large.vectors[N : 2 * N])
    alone = [client.embed(ids=[ids[599]]), client.embed(nodes=[nodes[0]]), client.embed(nodes=[nodes[299]])]
    assert np.array_equal(large.vectors[[599, 600, 899]], np.concatenate([each.vectors for each in alone]))
    predicted = client.predict(ids=ids)
    assert len(predicted) == 600
    assert predicted[599] == predicted[29] == client.predict(ids=["node-29"])[0]
    assert (predicted.model, predicted.graph) == (large.model, large.graph)


def test_a_refusal_names_the_place_in_the_whole_batch(client: Client) -> None:
    ids = ["node-1"] * 300
    with pytest.raises(ServiceError, match=r"404: ids\[299\] is not in the graph"):
        client.embed(ids=[*ids[:299], "nobody"])
    with pytest.raises(ServiceError, match=r"422: nodes\[270\]\.edges\[0\] is not in the graph"):
        client.embed(ids=ids, nodes=[*[Node(**NEW)] * 270, Node(attributes=NEW["attributes"], edges=["nobody"])])  # type: ignore
    with pytest.raises(ServiceError, match=r"edges\[257\] has a target .*; the first 256 of the batch are stored"):
        client.put_edges([*[("node-1", "node-2")] * 257, ("node-1", "nobody")])
    with pytest.raises(ServiceError, match=r"422: body\.nodes\[298\]\.id is .*; body\.nodes\[299\]\.id is"):
        client.put_nodes([*[Node("node-1")] * 298, Node("x" * 513), Node("")])
    with pytest.raises(ServiceError, match=r"422: body\.nodes is too short"):
        client.put_nodes([])
    with pytest.raises(ServiceError, match="422: give ids, nodes or both"):
        client.embed()


def test_what_cannot_be_sent_is_refused_and_the_connection_can_be_used(client: Client) -> None:
    for act, said in (
        (lambda: client.embed(ids="node-1"), "ids must be a list, not one str"),
        (lambda: client.put_nodes(Node("a")), "nodes must be a list, not one Node"),  # type: ignore[arg-type]
        (lambda: client.embed(nodes=[Node(features=[float("nan")])]), "a number of the request is NaN"),
        (lambda: client.ingest([("node-1", "node-2"), "node-3"]), "line 2 must be a Node or an edge"),  # type: ignore
    ):
        with pytest.raises(ConfigError, match=said):
            act()
        assert client.embed(ids=["node-1"]).vectors.shape == (1, 8)


def test_a_large_batch_of_nodes_may_refer_forwards(client: Client) -> None:
    nodes = [
        Node(f"new-{row}", attributes=NEW["attributes"], edges=[f"new-{(row + 7) % 600}", "node-3"])  # type: ignore
        for row in range(600)
    ]
    version = client.put_nodes(nodes)
    assert version == client.embed(ids=["new-0"]).graph
    for row in (0, 250, 299, 599):
        expected = {f"new-{(row + 7) % 600}", f"new-{(row - 7) % 600}", "node-3"}
        assert {*client.node(f"new-{row}").neighbors} == expected


def test_a_search_says_its_recall_and_version(client: Client) -> None:
    found = client.search(id="node-1", k=3)
    assert len(found) == 3
    assert found.recall == 1
    assert isinstance(found.graph, Version)
    assert found.model == client.model()["model"]
    assert [each.cosine for each in found] == sorted((each.cosine for each in found), reverse=True)
    assert found[:2] == tuple(found)[:2]


def test_all_nodes_and_all_changes_can_be_walked(client: Client) -> None:
    before = client.model()["graph"]["sequence"]
    client.put_nodes([Node(f"walk-{row}", **NEW) for row in range(300)])  # type: ignore[arg-type]
    client.delete_node("walk-7")
    listed = {node.id: node for node in client.nodes("walk-", attributes=True)}
    assert {*listed} == {f"walk-{row}" for row in range(300)} - {"walk-7"}
    assert listed["walk-1"].attributes == NEW["attributes"]
    assert {f"node-{row}" for row in range(N)} < {node.id for node in client.nodes()}
    changes = list(client.changes(before))
    assert [change["sequence"] for change in changes] == list(range(before + 1, before + 1 + len(changes)))
    assert sum(len(change.get("nodes", ())) for change in changes) == 300
    assert changes[-1]["removed_nodes"] == ["walk-7"]
    assert "features" in next(client.changes(before, features=True))["nodes"][0]


@given(
    st.lists(st.text(max_size=8), max_size=700),
    st.lists(st.tuples(st.integers(0, 300_000), st.integers(0, 1000)), max_size=40),
)
def test_parts_are_whole_in_order_and_within_the_limits(ids: list[str], nodes: list[tuple[int, int]]) -> None:
    made = [Node(attributes={"a": "x" * size}, edges=["e"] * edges) for size, edges in nodes]
    parts = list(_parts(ids, made))
    limits = Settings()
    assert [id for part in parts for id in part.ids] == ids
    assert [place for part in parts for place in part.nodes] == list(range(len(made)))
    for part in parts:
        sent = [made[place] for place in part.nodes]
        assert 0 < len(part.ids) + len(sent) <= limits.max_nodes
        assert ids[part.first_id : part.first_id + len(part.ids)] == part.ids
        body = json.dumps({"ids": part.ids, "nodes": [node.as_json() for node in sent], "encoding": "base64"})
        assert len(body) <= limits.max_body
        assert sum(len(node.edges) for node in sent) <= limits.max_edges

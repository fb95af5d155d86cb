"""Nodes in pages, and the feed of changes."""

import json
from typing import Any

import pytest
from starlette.testclient import TestClient

from graphsage.live.change import LARGEST_ATTRIBUTES, Change, NodeChange
from graphsage.live.store import LiveGraph
from graphsage.serving import listing_routes
from graphsage.serving.service import Service
from small_service import NEW, N

ALL = {f"node-{row}" for row in range(N)}


def walk(client: TestClient, **asked: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    cursor = ""
    while cursor is not None:
        answer = client.get("/v1/nodes", params={**asked, "cursor": cursor})
        assert answer.status_code == 200, answer.text
        said = answer.json()
        assert len(said["nodes"]) <= asked.get("limit", 100)
        found += said["nodes"]
        cursor = said["next"]
    return found


@pytest.mark.parametrize("limit", [1, 7, 100])
def test_every_node_is_listed_once(client: TestClient, limit: int) -> None:
    client.put("/v1/nodes", json={"nodes": [{"id": id, **NEW} for id in ("new", "a/ü\n", "x" * 512)]})
    client.delete("/v1/nodes/node-7")
    ids = [each["id"] for each in walk(client, limit=limit)]
    assert len(ids) == len(set(ids))
    assert {*ids} == ALL - {"node-7"} | {"new", "a/ü\n", "x" * 512}
    assert {each["id"] for each in walk(client, limit=limit, prefix="node-1")} == {
        id for id in ALL if id.startswith("node-1")
    }


def test_a_walk_is_not_disturbed_by_changes_and_compaction(client: TestClient) -> None:
    first = client.get("/v1/nodes", params={"limit": 10}).json()
    client.put("/v1/nodes/new", json=NEW)
    client.delete(f"/v1/nodes/{first['nodes'][-1]['id']}")  # the cursor names it
    client.post("/v1/admin/compact")
    rest, cursor = list[str](), first["next"]
    while cursor:
        said = client.get("/v1/nodes", params={"limit": 10, "cursor": cursor}).json()
        rest += [each["id"] for each in said["nodes"]]
        cursor = said["next"]
    assert sorted([*(each["id"] for each in first["nodes"]), *rest]) == sorted({*ALL, *({"new"} & {*rest})})


def test_a_listed_node_is_described_as_on_its_own(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    client.patch("/v1/nodes/node-3", json={"attributes": {"note": "seen"}, "label": "logic"})
    monkeypatch.setattr(listing_routes, "LARGEST_PAGE", 200)  # several pages
    for node in walk(client, attributes=True):
        alone = client.get(f"/v1/nodes/{node['id']}").json()
        assert node == {name: alone[name] for name in ("id", "label", "degree", "attributes")}
    assert {*walk(client)[0]} == {"id", "label", "degree"}


@pytest.mark.parametrize("cursor", ["!", "a", "_w==", "é"])
def test_a_cursor_of_another_make_is_refused(client: TestClient, cursor: str) -> None:
    answer = client.get("/v1/nodes", params={"cursor": cursor})
    assert (answer.status_code, answer.json()["detail"]) == (422, "cursor must be the `next` of a page")


def feed(client: TestClient, since: int, **asked: Any) -> list[dict[str, Any]]:
    answer = client.get("/v1/changes", params={"since": since, **asked})
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/x-ndjson"
    return [json.loads(line) for line in answer.text.splitlines()]


def test_the_feed_tells_every_change(client: TestClient) -> None:
    assert feed(client, 0) == []
    client.put("/v1/nodes", json={"nodes": [{"id": "new", "label": "logic", **NEW}]})
    client.put("/v1/edges", json={"edges": [{"source": "new", "target": "node-2"}]})
    client.delete("/v1/edges", params={"source": "new", "target": "node-2"})
    client.delete("/v1/nodes/new")
    expected = [
        {
            "sequence": 1,
            "nodes": [{"id": "new", "attributes": NEW["attributes"], "label": "logic"}],
            "edges": [["node-1", "new"], ["node-4", "new"]],
        },
        {"sequence": 2, "edges": [["new", "node-2"]]},
        {"sequence": 3, "removed_edges": [["new", "node-2"]]},
        {"sequence": 4, "removed_nodes": ["new"]},
    ]
    assert feed(client, 0) == expected
    client.post("/v1/admin/compact")
    assert feed(client, 1, limit=2) == expected[1:3], "the journal keeps changes for the feed"
    assert client.get("/v1/changes", params={"since": 4}).headers["x-graph-sequence"] == "4"
    answer = client.get("/v1/changes", params={"since": 5})
    assert (answer.status_code, answer.json()["detail"]) == (422, "the graph has 4 changes, none after number 5")


def test_the_feed_is_enough_to_have_the_same_graph(client: TestClient, service: Service) -> None:
    """With `features`, also where a node was given ready features or text."""
    ready = [0.5] * service.model.rows.width
    client.put("/v1/nodes/a", json=NEW)
    client.patch("/v1/nodes/a", json={"features": ready})
    made, changed = (each["nodes"][0]["features"] for each in feed(client, 0, features=True))
    x = service.model.rows.features([NEW["attributes"]], [None])[0]  # type: ignore[list-item]
    assert x is not None
    assert (made, changed) == (x.tolist(), ready)


def test_a_follower_that_is_too_late_is_told(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    from graphsage.live import store

    monkeypatch.setattr(store, "KEPT", 1)
    for number in range(3):
        client.put(f"/v1/nodes/new-{number}", json=NEW)
    client.post("/v1/admin/compact")
    answer = client.get("/v1/changes", params={"since": 0})
    assert answer.status_code == 410
    assert answer.json()["detail"].startswith("the journal no longer has the changes after number 0; list the nodes")
    assert client.get("/v1/changes").status_code == 422


def large(size: int, name: str = "note") -> dict[str, Any]:
    """Attributes that are `size` bytes as JSON."""
    return {name: "x" * (size - len(json.dumps({name: ""}, separators=(",", ":"))))}


def test_attributes_of_a_node_have_a_limit(client: TestClient) -> None:
    for attributes in (large(LARGEST_ATTRIBUTES + 1), {"note": "ü" * (LARGEST_ATTRIBUTES // 2)}):
        for method, path, body in (
            ("PUT", "/v1/nodes/node-1", {"attributes": attributes}),
            ("POST", "/v1/embed", {"nodes": [{"attributes": attributes}]}),
        ):
            answer = client.request(method, path, json=body)
            assert answer.status_code == 422
            assert answer.json()["detail"].endswith("attributes has more than 262,144 bytes as JSON")
    half = LARGEST_ATTRIBUTES // 2
    assert client.patch("/v1/nodes/node-1", json={"attributes": large(half, "a")}).status_code == 200
    answer = client.patch("/v1/nodes/node-1", json={"attributes": large(half, "b")})
    assert answer.status_code == 422
    assert answer.json()["detail"] == "the node would have 262,181 bytes of attributes; at most 262,144 are stored"
    assert client.patch("/v1/nodes/node-1", json={"attributes": large(half, "a")}).status_code == 200, "replaced"


def test_changes_of_one_group_and_of_one_request_are_added_up(service: Service) -> None:
    live: LiveGraph = service.live
    half = LARGEST_ATTRIBUTES // 2
    with live._guard:  # so that both wait for one group
        futures = [live.submit(Change((NodeChange("node-1", attributes=large(half, name)),))) for name in "ab"]
        twice = live.submit(Change(tuple(NodeChange("node-2", attributes=large(half, name)) for name in "ab")))
        again = live.submit(Change(removed_nodes=("node-1",)))
    assert [type(future.exception(20)).__name__ for future in (*futures, twice, again)] == [
        "NoneType",
        "DataError",
        "DataError",
        "NoneType",
    ]

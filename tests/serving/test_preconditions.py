"""ETags of nodes: a read tells whether anything changed, a change is made for the state that was read or not at all."""

import threading
from collections.abc import Mapping

import pytest
from starlette.testclient import TestClient

from graphsage.serving.service import Service
from small_service import NEW, small_model

PATH = "/v1/nodes/node-1"


def tag(client: TestClient, path: str = PATH) -> str:
    answer = client.get(path)
    assert answer.status_code == 200
    found: str = answer.headers["etag"]
    assert found[0] == found[-1] == '"'
    return found


def test_a_read_is_answered_304_until_the_node_its_prediction_or_the_model_changes(
    client: TestClient, service: Service
) -> None:
    tags = [tag(client)]

    def known() -> bool:
        answer = client.get(PATH, headers={"If-None-Match": f'"other", W/{tags[-1]}'})
        assert answer.headers["etag"] == tag(client)
        assert (answer.content == b"") == (answer.status_code == 304)
        return answer.status_code == 304

    assert known()
    client.put("/v1/nodes/far", json={**NEW, "edges": []})
    client.post("/v1/admin/compact")
    assert known(), "another node changed, and compaction changes nothing"
    neighbor = client.get(PATH).json()["neighbors"][0]
    size = {"words": "topology", "size": 4}
    for change in (
        lambda: client.patch(PATH, json={"attributes": {"note": 1}}),
        lambda: client.put("/v1/nodes", json={"nodes": [{"id": neighbor, "attributes": size}]}),  # the prediction
        lambda: (small_model(seed=1)[0].save(service.run), client.post("/v1/admin/reload"))[1],
        lambda: client.delete(f"/v1/nodes/{neighbor}"),
    ):
        assert change().status_code == 200
        assert not known()
        tags.append(tag(client))
    assert len(set(tags)) == 5
    assert len({each.split(".")[0] for each in tags}) == 3, "the state is the node's own"


def test_a_node_is_created_changed_and_deleted_in_the_expected_state_only(client: TestClient) -> None:
    new = "/v1/nodes/new"
    assert client.patch(new, json=NEW).status_code == 404
    for headers in ({"If-Match": "*"}, {"If-Match": tag(client)}):
        assert client.put(new, json=NEW, headers=headers).status_code == 412
    created = client.put(new, json={**NEW, "label": "logic"}, headers={"If-None-Match": "*"})
    assert created.status_code == 200
    again = client.put(new, json=NEW, headers={"If-None-Match": "*"})
    assert (again.status_code, again.headers["content-type"]) == (412, "application/problem+json")
    old = created.headers["etag"]
    note = client.patch(new, json={"attributes": {"note": "a"}}, headers={"If-Match": f'"x", {old}'})
    assert note.status_code == 200
    client.put("/v1/nodes/node-4", json={"attributes": {"note": 1}})  # a neighbor: no conflict
    now = note.headers["etag"]
    for change in (
        client.put(new, json={"label": "algebra"}, headers={"If-Match": old}),
        client.patch(new, json={"label": "algebra"}, headers={"If-Match": f"W/{now}"}),
        client.delete(new, headers={"If-Match": old}),
    ):
        assert change.status_code == 412
    said = client.get(new).json()
    assert (said["label"], said["attributes"]["note"]) == ("logic", "a")
    assert client.delete(new, headers={"If-Match": now}).status_code == 200
    assert client.get(new).status_code == 404


@pytest.mark.parametrize(
    "headers",
    [
        {"If-Match": "unquoted"},
        {"If-Match": ""},
        {"If-None-Match": '"a"'},
        {"If-Match": "*", "If-None-Match": "*"},
    ],
)
def test_conditions_that_cannot_be_checked_are_refused(client: TestClient, headers: Mapping[str, str]) -> None:
    assert client.put("/v1/nodes/new", json=NEW, headers=headers).status_code == 400
    for answer in (
        client.put("/v1/nodes", json={"nodes": [{"id": "new", **NEW}]}, headers=headers),
        client.put("/v1/edges", json={"edges": [{"source": "node-1", "target": "node-2"}]}, headers=headers),
        client.delete("/v1/edges", params={"source": "node-1", "target": "node-2"}, headers=headers),
    ):
        assert answer.status_code == 400
    assert client.get("/v1/model").json()["graph"]["sequence"] == 0


def test_no_update_is_lost_between_reading_and_writing(client: TestClient) -> None:
    refused = []

    def count() -> None:
        own = TestClient(client.app, raise_server_exceptions=False)
        for _ in range(10):
            while True:
                read = own.get(PATH, params={"neighbors": 0})
                number = read.json()["attributes"].get("count", 0)
                headers = {"If-Match": read.headers["etag"]}
                answer = own.patch(PATH, json={"attributes": {"count": number + 1}}, headers=headers)
                if answer.status_code == 200:
                    break
                assert answer.status_code == 412
                refused.append(number)

    threads = [threading.Thread(target=count) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert client.get(PATH).json()["attributes"]["count"] == 30
    assert refused, "they never met"

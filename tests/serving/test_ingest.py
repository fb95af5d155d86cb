"""Bulk loads: lines are stored or refused one by one, and other requests are answered meanwhile."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.testclient import TestClient

from graphsage.errors import OutputError
from graphsage.serving.client import Client, Ingested, Node, ServiceError
from graphsage.serving.ingest import LONGEST_PAUSE, _lines
from graphsage.serving.service import Service
from small_service import NEW, Small, eventually, served

TYPE = {"Content-Type": "application/x-ndjson"}


def send(client: TestClient, *lines: Any, **headers: str) -> dict[str, Any]:
    body = b"\n".join(line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines)
    answer = client.post("/v1/ingest", content=body, headers={**TYPE, **headers})
    assert answer.status_code == 200, answer.text
    said: dict[str, Any] = answer.json()
    return said


def test_each_line_is_stored_or_refused_with_its_number(client: TestClient) -> None:
    secret = "zebra-4711"
    said = send(
        client,
        {"id": "a", "label": "logic", **NEW},
        b"",
        {"id": "b", **NEW, "edges": ["a"]},
        {"source": "a", "target": "node-2"},
        b'{"id": "' + secret.encode() + b'"',
        [secret],
        {"id": "c", **NEW, "edges": ["node-1", secret]},
        {"source": secret, "target": "a"},
        {"id": "d", **NEW, secret: 1},
        {"id": "e", "attributes": {"words": secret, "size": secret}},
        {"id": "f"},
        {"attributes": NEW["attributes"]},
        {"id": "g", **NEW, "label": secret},
        b'{"id": "h", "features": [NaN]}',
        {"id": "i", "attributes": {"words": "x", "size": 1e30}},
        b"\xff\r",
        {"id": "z", **NEW},
    )
    counts = {name: said[name] for name in ("lines", "nodes", "edges", "refused")}
    assert counts == {"lines": 17, "nodes": 3, "edges": 1, "refused": 12}
    assert said["graph"]["sequence"] == client.get("/v1/model").json()["graph"]["sequence"] > 0
    details = {each["line"]: each["detail"] for each in said["errors"]}
    assert list(details) == [5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]
    assert secret not in json.dumps(said)
    assert details[5] == details[6] == "the line is not a JSON object"
    assert details[7] == "edges[1] has a source that is not in the graph; add it first"
    assert details[8] == "the edge has a source that is not in the graph; add it first"
    assert details[9] == "the line has a field that is not known"
    assert details[11] == "the node is new and needs features"
    assert details[12] == "id is missing"
    assert details[13] == "the node.label is not a class of the graph"
    assert details[15].startswith("the node: column 'size' is beyond ")
    assert client.get("/v1/nodes/a").json()["label"] == "logic"
    assert sorted(client.get("/v1/nodes/a").json()["neighbors"]) == ["b", "node-1", "node-2", "node-4"]
    assert client.get("/v1/nodes/z").status_code == 200
    for id in "cdefghi":
        assert client.get(f"/v1/nodes/{id}").status_code == 404
    page = client.get("/metrics").text
    assert 'graphsage_ingested_lines_total{result="stored"} 4.0' in page
    assert 'graphsage_ingested_lines_total{result="refused"} 12.0' in page


def test_a_load_has_the_effect_of_single_changes(client: TestClient, service: Service) -> None:
    nodes = [{"id": f"n{row}", **NEW, "edges": [f"n{row - 1}"] if row else ["node-1"]} for row in range(200)]
    edges = [{"source": f"n{row}", "target": f"node-{row % 30}"} for row in range(0, 200, 3)]
    said = send(client, *nodes, *edges)
    assert (said["nodes"], said["edges"], said["refused"]) == (200, 67, 0)
    assert 7 <= said["graph"]["sequence"] <= 12, "slices"
    loaded = client.post("/v1/embed", json={"ids": ["n0", "n77", "node-3"]}).json()["results"]
    for node in nodes:
        client.delete(f"/v1/nodes/{node['id']}")
    for node in nodes:
        client.put("/v1/nodes", json={"nodes": [node]})
    for edge in edges:
        client.put("/v1/edges", json={"edges": [edge]})
    assert client.post("/v1/embed", json={"ids": ["n0", "n77", "node-3"]}).json()["results"] == loaded


@pytest.mark.parametrize("others", [True, False])
def test_a_load_gives_way_while_others_ask(
    client: TestClient, service: Service, monkeypatch: pytest.MonkeyPatch, others: bool
) -> None:
    sleep, pauses = asyncio.sleep, list[float]()

    async def noted(seconds: float) -> None:
        pauses.append(seconds)
        await sleep(0)

    monkeypatch.setattr(asyncio, "sleep", noted)
    monkeypatch.setattr(service.metrics, "recent", lambda window: (1.0 if others else 0.0, None))
    send(client, *({"id": f"n{row}", **NEW} for row in range(100)))
    assert len([pause for pause in pauses if pause]) == (4 if others else 0)
    assert all(pause <= LONGEST_PAUSE for pause in pauses)


def test_a_body_has_no_limit_but_a_line_has(client: TestClient) -> None:
    node = {"attributes": {"words": "x" * 100_000, "size": 1}}
    long = b'{"id": "long", "note": "' + b"y" * (1 << 20) + b'"}'
    said = send(client, *({"id": f"n{row}", **node} for row in range(15)), long, {"id": "last", **NEW})
    assert (said["nodes"], said["refused"]) == (16, 1)
    assert said["errors"] == [{"line": 16, "detail": "the line has more than 1,048,576 bytes"}]
    said = send(client, *[b"{"] * 150)
    assert (said["refused"], len(said["errors"])) == (150, 100)


def test_what_is_no_load_is_refused(client: TestClient) -> None:
    assert client.post("/v1/ingest", json={"id": "a"}).status_code == 415
    assert client.post("/v1/ingest", content=b"{}", headers={**TYPE, "If-Match": "*"}).status_code == 400
    assert send(client)["lines"] == 0


def test_a_full_disk_ends_a_load_with_the_line(client: TestClient, service: Service) -> None:
    def full(changes: object) -> None:
        raise OutputError("no space left")

    service.live._journal.append = full  # type: ignore[method-assign,assignment]
    answer = client.post("/v1/ingest", content=json.dumps({"id": "a", **NEW}), headers=TYPE)
    assert answer.status_code == 507
    assert answer.json()["detail"] == "line 1 could not be made durable; the lines before it are done"
    assert client.post("/v1/ingest", content=b"", headers=TYPE).status_code == 200, "the next load can run"


@given(st.lists(st.binary(max_size=12)), st.lists(st.integers(0, 40)), st.integers(1, 10))
def test_lines_do_not_depend_on_how_the_body_arrives(lines: list[bytes], cuts: list[int], longest: int) -> None:
    body = b"\n".join(lines)

    async def parts() -> AsyncIterator[bytes]:
        start = 0
        for cut in [*sorted(cuts), len(body)]:
            yield body[start:cut]
            start = max(start, cut)

    async def read() -> list[bytes | None]:
        return [line async for line in _lines(parts(), longest)]

    *whole, last = body.split(b"\n")
    expected = [*whole, *([last] if last else [])]
    assert asyncio.run(read()) == [line if len(line) <= longest else None for line in expected]


def test_during_a_load_others_are_answered_and_a_second_load_is_not(small: Small, tmp_path: Path) -> None:
    loads: list[Ingested] = []
    begun, go_on = threading.Event(), threading.Event()

    def lines() -> Iterator[Node]:
        for row in range(1000):
            if row == 900:
                begun.set()
                assert go_on.wait(60)
            yield Node(f"n{row}", **NEW)  # type: ignore[arg-type]

    with served(small.copy(tmp_path)) as (_, address):

        def load() -> None:
            with Client(address) as own:
                loads.append(own.ingest(lines()))

        thread = threading.Thread(target=load)
        thread.start()
        with Client(address, retries=0) as client:
            assert begun.wait(60)
            assert client.embed(ids=["node-1"]).vectors.shape == (1, 8)
            assert client.put_edges([("node-1", "node-2")]).sequence > 0
            with pytest.raises(ServiceError, match="429: another bulk load is running"):
                client.ingest([])
            eventually(lambda: next(client.nodes("n5"), None) is not None)  # before the last are sent
            assert "n900" not in {node.id for node in client.nodes("n90")}
            go_on.set()
            thread.join(60)
            assert (loads[0].nodes, loads[0].refused) == (1000, 0)
            assert client.ingest([("n1", "n2")]).edges == 1, "after it, another can run"

"""Damage on disk stops serving from the damaged part, with a clear answer; the rest is served."""

import os
from pathlib import Path

import numpy as np
import pytest
from starlette.testclient import TestClient

from graphsage.graph.build import from_edges
from graphsage.live.node_features import fingerprint
from graphsage.live.store import create_store
from graphsage.serving.app import make_app
from graphsage.serving.service import Service
from small_service import NEW, eventually, small_model


def flip_last_byte(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


@pytest.fixture
def client(service: Service) -> TestClient:
    service.scrubber.close()  # a test says when to look
    eventually(service.updater.caught_up)
    return TestClient(make_app(service), raise_server_exceptions=False)


def test_damaged_attributes_are_not_served_and_the_rest_is(
    service: Service, client: TestClient, caplog: pytest.LogCaptureFixture
) -> None:
    assert client.get("/v1/nodes/node-3").status_code == 200
    flip_last_byte(service.live.folder / "generation-000001" / "attributes_text.npy")
    service.scrubber._stop.clear()
    service.scrubber.once()
    assert "attributes_text.npy is damaged between bytes" in caplog.text
    answer = client.get("/v1/nodes/node-3")
    assert (answer.status_code, answer.headers["content-type"]) == (503, "application/problem+json")
    assert "damaged on disk" in answer.json()["detail"]
    assert client.patch("/v1/nodes/node-3", json={"attributes": {"words": "new", "size": 1}}).status_code == 503
    assert client.post("/v1/embed", json={"ids": ["node-3"], "nodes": [NEW]}).status_code == 200
    assert "trouble" in client.get("/readyz").json()
    page = client.get("/metrics").text
    assert "graphsage_damaged_parts 1.0" in page
    assert f"graphsage_scrub_passes {float(service.scrubber.passes)}" in page
    values = dict(line.split() for line in page.splitlines() if not line.startswith("#"))
    assert float(values["graphsage_scrub_bytes"]) == float(values["graphsage_scrub_total_bytes"]) > 1000


def test_damage_to_what_every_read_uses_stops_all_reads(service: Service, client: TestClient) -> None:
    flip_last_byte(service.live.folder / "generation-000001" / "keys.npy")
    service.scrubber._stop.clear()
    service.scrubber.once()
    for answer in (
        client.post("/v1/embed", json={"ids": ["node-3"]}),
        client.get("/v1/nodes/node-3"),
        client.put("/v1/edges", json={"edges": [{"source": "node-1", "target": "node-2"}]}),
        client.post("/v1/admin/compact"),
        client.post("/v1/admin/backup", json={"name": "copy"}),
    ):
        assert (answer.status_code, "damaged on disk" in answer.json()["detail"]) == (503, True)
    assert client.get("/").status_code == client.get("/healthz").status_code == 200


def test_a_file_cut_under_the_service_is_an_answer_and_a_log_line(
    service: Service, client: TestClient, caplog: pytest.LogCaptureFixture
) -> None:
    os.truncate(service.live.folder / "generation-000001" / "graph" / "features.npy", 100)
    assert client.post("/v1/embed", json={"ids": ["node-3"]}).status_code == 503
    assert "features.npy has 100 bytes" in caplog.text


def test_a_service_starts_beside_a_damaged_block_and_serves_the_rest(tmp_path: Path) -> None:
    model, _ = small_model()
    model.save(tmp_path / "run")
    n, width = 20_000, model.encoder.in_dim
    graph = from_edges([(0, 1)], n, features=np.ones((n, width), np.float32), ids=[f"node-{i}" for i in range(n)])
    create_store(tmp_path / "graph", graph, None, fingerprint(model))
    flip_last_byte(tmp_path / "graph" / "generation-000001" / "graph" / "features.npy")
    service = Service(tmp_path / "run", tmp_path / "graph")
    client = TestClient(make_app(service), raise_server_exceptions=False)
    assert client.post("/v1/embed", json={"ids": ["node-1"]}).status_code == 200
    assert client.post("/v1/embed", json={"ids": [f"node-{n - 1}"]}).status_code == 503
    service.close()

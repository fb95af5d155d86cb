"""What operators see of requests and of the process."""

import re

from prometheus_client.parser import text_string_to_metric_families
from starlette.testclient import TestClient

from graphsage.serving.app import make_app
from graphsage.serving.keys import ApiKeys
from graphsage.serving.service import Service
from small_service import NEW, api_key


def samples(client: TestClient, **headers: str) -> dict[tuple[str, ...], float]:
    """Each sample of /metrics by its name and its labels' values."""
    page = client.get("/metrics", headers=headers).text
    return {
        (each.name, *each.labels.values()): each.value
        for family in text_string_to_metric_families(page)
        for each in family.samples
    }


def test_requests_are_counted_by_route_and_status(client: TestClient) -> None:
    for id in ("node-1", "node-2", "nobody", "a/b"):
        client.get(f"/v1/nodes/{id}")
    client.put("/v1/nodes/new", json=NEW)
    client.post("/v1/embed", json={"ids": []})
    client.post("/v1/embed", content=b"{", headers={"Content-Type": "application/json"})
    client.post("/v1/embed", content=b"{}")
    client.delete("/v1/model")
    client.head("/healthz")
    client.get("/static/style.css")
    for path in ("/nothing", "/v1/nothing", "/.env"):
        client.get(path)
    client.request("PROPFIND", "/")
    found = {key[1:]: count for key, count in samples(client).items() if key[0] == "graphsage_requests_total"}
    assert found == {
        ("GET", "/v1/nodes/{id}", "200"): 2,
        ("GET", "/v1/nodes/{id}", "404"): 2,
        ("PUT", "/v1/nodes/{id}", "200"): 1,
        ("POST", "/v1/embed", "422"): 1,
        ("POST", "/v1/embed", "400"): 1,
        ("POST", "/v1/embed", "415"): 1,
        ("DELETE", "/v1/model", "405"): 1,
        ("GET", "/healthz", "200"): 1,
        ("GET", "/static/{file}", "200"): 1,
        ("GET", "other", "404"): 3,
        ("other", "/", "405"): 1,
    }


def test_refused_and_failed_requests_are_counted_too(service: Service) -> None:
    client = TestClient(make_app(service, ApiKeys([api_key("r" * 20, "read")])), raise_server_exceptions=False)
    client.get("/v1/model")
    read = {"X-API-Key": "r" * 20}
    client.put("/v1/nodes/new", json=NEW, headers=read)
    object.__setattr__(service.settings, "max_waiting", 0)
    client.post("/v1/embed", json={"ids": ["node-1"]}, headers=read)
    object.__setattr__(service.settings, "max_waiting", 64)
    service.updater.map = 5  # type: ignore[assignment]
    assert client.get("/v1/map", headers=read).status_code == 500
    found = samples(client, **read)
    for labels in (
        ("GET", "/v1/model", "401"),
        ("PUT", "/v1/nodes/{id}", "403"),
        ("POST", "/v1/embed", "429"),
        ("GET", "/v1/map", "500"),
    ):
        assert found["graphsage_requests_total", *labels] == 1
        assert found["graphsage_request_seconds_count", *labels[:2]] == 1


def test_the_process_is_measured(client: TestClient) -> None:
    found = samples(client)
    assert found["process_resident_memory_bytes",] > 1e7
    assert found["process_cpu_seconds_total",] > 0
    assert 3 < found["process_open_fds",] < found["process_max_fds",]
    assert found["process_threads",] >= 4
    assert any(name[0] == "graphsage_info" and re.match(r"\d+\.", name[1]) for name in found)
    assert found["graphsage_background_failing",] == found["graphsage_keys_file_refused",] == 0

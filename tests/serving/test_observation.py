"""What operators see of requests and of the process."""

import json
import logging
import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from starlette.testclient import TestClient

from graphsage.errors import ConfigError
from graphsage.serving.app import make_app
from graphsage.serving.client import Client
from graphsage.serving.keys import ApiKeys
from graphsage.serving.logs import JsonLog
from graphsage.serving.service import Service
from small_service import NEW, Small, api_key, eventually, served

READ, WRITE, ADMIN = "r" * 20, "w" * 20, "a" * 20


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


class Logged:
    """A service with keys and logs."""

    def __init__(self, service: Service, folder: Path) -> None:
        self.logs = [JsonLog(folder / f"{name}.jsonl", name, lambda lines: None) for name in ("access", "audit")]
        keys = ApiKeys([api_key(READ, "read"), api_key(WRITE, "read", "write"), api_key(ADMIN, "admin")])
        app = make_app(service, keys, None, *self.logs)
        self.client, self._folder = TestClient(app, raise_server_exceptions=False), folder

    def close(self) -> None:
        while self.logs:
            self.logs.pop().close()

    def audited(self) -> list[dict[str, Any]]:
        """At once: a line is there before the answer."""
        return [json.loads(line) for line in (self._folder / "audit.jsonl").read_text().splitlines()]

    def accessed(self) -> list[dict[str, Any]]:
        self.close()
        return [json.loads(line) for line in (self._folder / "access.jsonl").read_text().splitlines()]


@pytest.fixture
def logged(service: Service, tmp_path: Path) -> Iterator[Logged]:
    made = Logged(service, tmp_path)
    yield made
    made.close()


@pytest.mark.parametrize(
    ("given", "taken"),
    [("a-1", True), ("A/b:c@d=e+f_g.9", True), ("x" * 128, True), ("", False), ("x" * 129, False), ('"q"', False)],
)
def test_every_answer_has_the_id_of_its_request(client: TestClient, given: str, taken: bool) -> None:
    ids = set()
    for path in ("/healthz", "/", "/v1/model", "/v1/nodes/nobody", "/nothing"):
        found = client.get(path, headers={"X-Request-ID": given}).headers.get_list("x-request-id")
        assert len(found) == 1
        assert (found[0] == given) is taken
        ids.add(found[0])
    assert taken or len(ids) == 5


def test_a_request_is_a_line_with_its_key_and_never_its_content(logged: Logged) -> None:
    secret = "zebra-4711"
    head = {"X-API-Key": READ, "X-Request-ID": "given"}
    logged.client.get("/v1/nodes/node-1?neighbors=3", headers=head)
    logged.client.get("/v1/nodes/a%0Ab%E2%80%A8c", headers={"X-API-Key": READ})
    logged.client.get("/v1/model", headers={"X-API-Key": secret})
    logged.client.put("/v1/nodes/new", json={**NEW, "label": secret}, headers={"X-API-Key": WRITE})
    logged.client.get("/healthz")
    lines = logged.accessed()
    assert len(lines) == 5
    first = lines[0]
    assert first.pop("ms") > 0
    assert first.pop("bytes") > 100
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", first.pop("time"))
    assert first == {
        "log": "access",
        "request_id": "given",
        "key": "read",
        "client": "testclient",
        "method": "GET",
        "path": "/v1/nodes/node-1",
        "query": "neighbors=3",
        "route": "/v1/nodes/{id}",
        "status": 200,
    }
    assert lines[1]["path"] == "/v1/nodes/a\nb\u2028c"
    assert (lines[1]["status"], lines[1]["problem"]) == (404, "the node is not in the graph")
    assert (lines[2]["status"], "key" in lines[2]) == (401, False)
    assert (lines[3]["status"], lines[3]["problem"]) == (422, "the node.label is not a class of the graph")
    assert not {READ, WRITE, secret} & {*re.split(r"[^\w-]+", json.dumps(lines))}


def test_changes_and_admin_requests_are_audited_and_reads_are_not(logged: Logged, service: Service) -> None:
    client, write, admin = logged.client, {"X-API-Key": WRITE}, {"X-API-Key": ADMIN}
    client.post("/v1/embed", json={"ids": ["node-1"]}, headers=write)
    assert logged.audited() == []
    made = [
        client.put("/v1/nodes", json={"nodes": [{"id": "a", **NEW}, {"id": "b", **NEW}]}, headers=write),
        client.patch("/v1/nodes/a", json={"label": "logic"}, headers={**write, "If-Match": "*"}),
        client.put("/v1/edges", json={"edges": [{"source": "a", "target": "b"}]}, headers=write),
        client.delete("/v1/edges", params={"source": "a", "target": "b"}, headers=write),
        client.delete("/v1/nodes/b", headers=write),
        client.post("/v1/admin/compact", headers=admin),
        client.post("/v1/admin/backup", json={"name": "monday"}, headers=admin),
        client.post("/v1/admin/reload", headers=admin),
        client.put("/v1/nodes/c", json=NEW, headers={"X-API-Key": READ}),
        client.put("/v1/nodes/a", json=NEW, headers={**write, "If-None-Match": "*"}),
        client.delete("/v1/nodes/b"),
        client.put("/nothing", headers=write),  # no route, no line
    ][:-1]
    lines = logged.audited()
    assert [line["status"] for line in lines] == [answer.status_code for answer in made] == [200] * 8 + [403, 412, 401]
    assert [line["request_id"] for line in lines] == [answer.headers["x-request-id"] for answer in made]
    assert [line.get("key") for line in lines] == ["read-write"] * 5 + ["admin"] * 3 + ["read", "read-write", None]
    put, patch, edges, cut, gone, compact, backup, reload, *_ = lines
    assert (put["nodes"], put["edges"], put["sequence"]) == (["a", "b"], 4, 1)
    assert (patch["nodes"], patch["path"], patch["sequence"]) == (["a"], "/v1/nodes/a", 2)
    assert (edges["edges"], cut["removed_edges"], gone["removed_nodes"]) == (1, [["a", "b"]], ["b"])
    assert (compact["generation"], backup["backup"], reload["model"]) == (2, "monday", service.model.version)
    assert lines[8]["problem"] == "this needs a key with the scope write"
    assert "sequence" not in lines[9]


def test_a_log_that_was_moved_away_is_created_again(tmp_path: Path) -> None:
    path, log = tmp_path / "a.jsonl", JsonLog(tmp_path / "a.jsonl", "access")
    log.write({"n": 1}, now=True)
    path.rename(tmp_path / "a.jsonl.1")
    log.write({"n": 2})
    eventually(lambda: path.exists() and path.read_text() != "")
    log.close()
    assert [json.loads((tmp_path / name).read_text())["n"] for name in ("a.jsonl.1", "a.jsonl")] == [1, 2]


def test_lines_that_cannot_be_written_are_counted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path, lost = tmp_path / "a.jsonl", list[int]()
    log = JsonLog(path, "audit", lost.append)
    path.unlink()
    path.mkdir()
    for _ in range(3):
        log.write({}, now=True)
    path.rmdir()
    log.write({"n": 4}, now=True)
    log.close()
    assert sum(lost) == 3
    assert json.loads(path.read_text())["n"] == 4
    assert caplog.text.count("the audit log cannot be written") == 1


def test_a_line_that_was_cut_short_does_not_spoil_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, lost = tmp_path / "a.jsonl", list[int]()
    log = JsonLog(path, "audit", lost.append)
    write, full = os.write, [True]

    def short(file: int, data: memoryview) -> int:
        if not full.pop():
            raise OSError(28, "No space left on device")
        full.append(False)
        return write(file, data[:5])

    monkeypatch.setattr(os, "write", short)
    log.write({"n": 1}, now=True)
    monkeypatch.setattr(os, "write", write)
    log.write({"n": 2}, now=True)
    log.close()
    assert lost == [1]
    assert [json.loads(line)["n"] for line in path.read_text().splitlines()[1:]] == [2]


@pytest.mark.parametrize("name", ["missing/a.jsonl", ".", "pipe"])
def test_a_log_that_cannot_be_a_file_is_refused_at_the_start(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ConfigError, match="cannot be written"):
        JsonLog(tmp_path / name, "access")


def test_a_failed_request_is_named_in_the_service_s_log(
    client: TestClient, service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR, "graphsage")
    service.updater.map = 5  # type: ignore[assignment]
    answer = client.get("/v1/map")
    assert answer.status_code == 500
    assert answer.headers["x-request-id"] in caplog.text


def test_a_service_that_ends_has_written_its_logs(small: Small, tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("access.jsonl", "audit.jsonl")]
    options = ("--access-log", str(paths[0]), "--audit-log", str(paths[1]))
    with served(small.copy(tmp_path), *options) as (process, address), Client(address) as client:
        for _ in range(20):
            client.embed(ids=["node-1"])
        client.delete_node("node-2")
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    assert [len(path.read_text().splitlines()) for path in paths] == [21, 1]
    assert json.loads(paths[1].read_text())["removed_nodes"] == ["node-2"]

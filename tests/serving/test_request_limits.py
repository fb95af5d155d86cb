"""What the gate turns away, and problems that never repeat what was sent."""

import base64
import json
import logging
import random
import threading
import time
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from graphsage.errors import ConfigError
from graphsage.serving.app import make_app
from graphsage.serving.keys import ApiKeys
from graphsage.serving.request_limits import local_names
from graphsage.serving.run import check_address
from graphsage.serving.service import Service
from graphsage.serving.settings import Settings
from small_service import NEW, Small, api_key, eventually

SECRET = "zebra-4711"
READ, WRITE, ADMIN, EXPIRED = "r" * 20, "w" * 20, "a" * 20, "e" * 20
KEYS = [
    api_key(READ, "read"),
    api_key(WRITE, "write"),
    api_key(ADMIN, "admin"),
    api_key(EXPIRED, "read", "write", "admin", expires=date(2020, 1, 1)),
]
ROUTES = [
    ("POST", "/v1/embed"),
    ("POST", "/v1/predict"),
    ("POST", "/v1/search"),
    ("POST", "/v1/recommend"),
    ("POST", "/v1/score"),
    ("GET", "/v1/nodes/node-1"),
    ("GET", "/v1/model"),
    ("GET", "/v1/stats"),
    ("GET", "/v1/map"),
    ("GET", "/v1/map/changes"),
    ("GET", "/metrics"),
    ("GET", "/"),
    ("GET", "/docs"),
    ("GET", "/static/app.js"),
    ("GET", "/openapi.json"),
    ("GET", "/nothing"),
]
WRITES = [
    ("PUT", "/v1/nodes"),
    ("PUT", "/v1/edges"),
    ("DELETE", "/v1/nodes/node-1"),
    ("DELETE", "/v1/edges"),
    ("POST", "/v1/admin/reload"),
    ("POST", "/v1/admin/compact"),
    ("POST", "/v1/admin/backup"),
]


@pytest.fixture
def guarded(service: Service) -> TestClient:
    return TestClient(make_app(service, ApiKeys(KEYS)), raise_server_exceptions=False)


@pytest.mark.parametrize(("method", "path"), [*ROUTES, *WRITES])
def test_without_a_key_every_route_but_health_is_closed(guarded: TestClient, method: str, path: str) -> None:
    for headers in ({}, {"Authorization": "Bearer wrong"}, {"X-API-Key": READ[:-1]}, {"Authorization": "Basic !!"}):
        answer = guarded.request(method, path, headers=headers)
        assert answer.status_code == 401
        assert answer.headers["content-type"] == "application/problem+json"
    assert guarded.get("/healthz").json() == {"status": "ok"}
    assert guarded.get("/readyz").status_code in (200, 503)


@pytest.mark.parametrize(("method", "path"), [*ROUTES, *WRITES])
def test_a_key_opens_the_routes_of_its_scopes_only(guarded: TestClient, method: str, path: str) -> None:
    needed = "admin" if "admin" in path else "write" if (method, path) in WRITES else "read"
    for secret, scope in ((READ, "read"), (WRITE, "write"), (ADMIN, "admin")):
        answer = guarded.request(method, path, headers={"Authorization": f"Bearer {secret}"})
        if scope == needed:
            assert answer.status_code not in (401, 403), answer.text
        else:
            assert answer.status_code == 403
            assert answer.json()["detail"] == f"this needs a key with the scope {needed}"


def test_an_expired_key_is_refused_by_that_name(guarded: TestClient) -> None:
    answer = guarded.get("/v1/model", headers={"X-API-Key": EXPIRED})
    assert (answer.status_code, answer.json()["detail"]) == (401, "the key has expired")


@pytest.mark.parametrize(("method", "path"), WRITES)
def test_a_page_of_another_site_cannot_change_anything(client: TestClient, method: str, path: str) -> None:
    for site in ("cross-site", "same-site"):
        answer = client.request(method, path, headers={"Sec-Fetch-Site": site})
        assert answer.status_code == 403, answer.text


@pytest.mark.parametrize(
    ("origin", "host", "allowed"),
    [
        ("http://localhost:8000", "localhost:8000", True),
        ("https://Graph.example.org", "graph.example.org", True),
        ("https://graph.example.org", "graph.example.org:443", True),
        ("http://localhost:8001", "localhost:8000", False),
        ("http://evil.example", "localhost:8000", False),
        ("http://localhost:8000.evil.example", "localhost:8000", False),
        ("null", "localhost:8000", False),
        ("", "localhost:8000", False),
    ],
)
def test_where_a_browser_names_only_the_origin_it_must_be_the_service_itself(
    client: TestClient, origin: str, host: str, allowed: bool
) -> None:
    """Browsers send Sec-Fetch-Site to https and localhost only."""
    headers = {"Origin": origin, "Host": host}
    for method, path in WRITES:
        assert (client.request(method, path, headers=headers).status_code != 403) is allowed
    assert client.get("/v1/model", headers=headers).status_code == 200, "a read changes nothing"
    sure = {**headers, "Sec-Fetch-Site": "same-origin"}  # a browser says so even where a proxy changes the host
    assert client.put("/v1/edges", json={}, headers=sure).status_code == 422


def test_keys_open_what_they_should(guarded: TestClient) -> None:
    basic = base64.b64encode(f"anyone:{READ}".encode()).decode()
    for headers in ({"Authorization": f"Bearer {READ}"}, {"X-API-Key": READ}, {"Authorization": f"Basic {basic}"}):
        assert guarded.post("/v1/embed", json={"ids": ["node-1"]}, headers=headers).status_code == 200
    put = {"nodes": [{"id": "new", **NEW}]}
    assert guarded.put("/v1/nodes", json=put, headers={"X-API-Key": WRITE}).status_code == 200


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "example.org"])
def test_a_public_address_needs_keys(host: str) -> None:
    with pytest.raises(ConfigError, match="can be reached from other machines; give keys"):
        check_address(host, ApiKeys())
    check_address(host, ApiKeys(KEYS))


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost", "127.3.2.1"])
def test_this_machine_needs_none(host: str) -> None:
    check_address(host, ApiKeys())


@pytest.mark.parametrize(
    ("bound", "host", "known"),
    [
        ("127.0.0.1", "localhost", True),
        ("127.0.0.1", "localhost:8000", True),
        ("127.0.0.1", "LocalHost:", True),
        ("127.0.0.1", "127.0.0.1:9", True),
        ("127.0.0.1", "[::1]", True),
        ("127.0.0.1", "[::1]:8000", True),
        ("127.3.2.1", "127.3.2.1:8000", True),
        ("127.0.0.1", "127.3.2.1", False),
        ("::1", "[::1]:8000", True),
        ("127.0.0.1", "evil.example", False),
        ("127.0.0.1", "evil.example:8000", False),
        ("127.0.0.1", "", False),
        ("127.0.0.1", "localhost.evil.example", False),
        ("127.0.0.1", "evil.example:localhost", False),
        ("127.0.0.1", ":8000", False),
    ],
)
def test_without_keys_the_service_answers_to_names_of_this_machine_only(
    service: Service, bound: str, host: str, known: bool
) -> None:
    client = TestClient(make_app(service, names=local_names(bound)), raise_server_exceptions=False)
    answers = [client.get(path, headers={"Host": host}) for path in ("/", "/v1/model", "/metrics", "/openapi.json")]
    answers.append(client.post("/v1/embed", json={"ids": ["node-1"]}, headers={"Host": host}))
    for answer in answers:
        assert answer.status_code == (200 if known else 403)
        if not known:
            assert answer.headers["content-type"] == "application/problem+json"
            assert "evil" not in answer.text
    assert client.get("/healthz", headers={"Host": host}).status_code == 200


def test_names_can_be_allowed(service: Service) -> None:
    app = make_app(service, names=local_names("127.0.0.1", ["Graph.example.org"]))
    client = TestClient(app, raise_server_exceptions=False)
    for host, status in (("graph.example.org", 200), ("GRAPH.example.org:443", 200), ("evil.example", 403)):
        assert client.get("/v1/model", headers={"Host": host}).status_code == status
    for wrong in ("https://graph.example.org", "graph.example.org:443", "", "a b"):
        with pytest.raises(ConfigError, match="must be a host name without scheme and port"):
            check_address("127.0.0.1", ApiKeys(), [wrong])


def test_bodies_and_counts_have_limits(client: TestClient) -> None:
    assert client.post("/v1/embed", content=b" " * ((1 << 20) + 1)).status_code == 413

    def chunks() -> Iterator[bytes]:
        for _ in range(20):
            yield b" " * (1 << 16)

    assert client.post("/v1/embed", content=chunks()).status_code == 413
    assert client.post("/v1/embed", json={"ids": ["node-1"] * 256}).status_code == 200
    assert client.post("/v1/embed", json={"ids": ["node-1"] * 257}).status_code == 422
    assert client.post("/v1/embed", json={"ids": ["node-1"] * 200, "nodes": [NEW] * 57}).status_code == 422
    many = {**NEW, "edges": ["node-1"] * 1000}
    assert client.post("/v1/embed", json={"nodes": [many]}).status_code == 200
    assert client.post("/v1/embed", json={"nodes": [{**many, "edges": ["node-1"] * 1001}]}).status_code == 422
    assert client.post("/v1/embed", json={}).status_code == 422


def test_a_full_service_turns_away_before_the_body_and_stays_healthy(small: Small, tmp_path: Path) -> None:
    copied = small.copy(tmp_path)
    service = Service(copied.run, copied.graph, Settings(max_waiting=2, deadline=60.0))  # however busy the machine is
    try:
        client = TestClient(make_app(service), raise_server_exceptions=False)
        statuses = []
        with service.live.reading():  # whoever is let in has to wait now
            threads = [
                threading.Thread(
                    target=lambda: statuses.append(client.post("/v1/embed", json={"ids": ["node-1"]}).status_code)
                )
                for _ in range(2)
            ]
            for thread in threads:
                thread.start()
            while client.app.waiting < 2:  # type: ignore[attr-defined]
                time.sleep(0.01)

            refused = client.post("/v1/embed", json={"ids": ["node-1"]})
            assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")
            assert refused.headers["content-type"] == "application/problem+json"
            for _ in range(5):
                assert client.get("/healthz").status_code == 200
        for thread in threads:
            thread.join()
        assert statuses == [200, 200]
        assert client.post("/v1/embed", json={"ids": ["node-1"]}).status_code == 200
        assert "graphsage_rejected_total 1.0" in client.get("/metrics").text
    finally:
        service.close()


def test_one_of_several_keys_has_at_most_half_of_the_places(small: Small, tmp_path: Path) -> None:
    copied = small.copy(tmp_path)
    service = Service(copied.run, copied.graph, Settings(max_waiting=4))
    try:
        client = TestClient(make_app(service, ApiKeys(KEYS)), raise_server_exceptions=False)

        def status(key: str) -> int:
            headers = {"x-api-key": key}
            body = {"ids": ["node-1"]} if key == READ else {"nodes": [{"id": "new", **NEW}]}
            call = client.post if key == READ else client.put
            return call("/v1/embed" if key == READ else "/v1/nodes", json=body, headers=headers).status_code

        statuses = []
        with service.live.reading():  # whoever is let in has to wait now
            threads = [threading.Thread(target=lambda: statuses.append(status(READ))) for _ in range(2)]
            for thread in threads:
                thread.start()
            eventually(lambda: client.app.waiting == 2)  # type: ignore[attr-defined]
            assert status(READ) == 429
            threads.append(threading.Thread(target=lambda: statuses.append(status(WRITE))))
            threads[-1].start()
            eventually(lambda: client.app.waiting == 3)  # type: ignore[attr-defined]
        for thread in threads:
            thread.join()
        assert statuses == [200, 200, 200]
        assert status(READ) == 200
    finally:
        service.close()


def test_a_request_that_waits_too_long_is_given_up(small: Small, tmp_path: Path) -> None:
    copied = small.copy(tmp_path)
    service = Service(copied.run, copied.graph, Settings(deadline=0.2))
    try:
        client = TestClient(make_app(service), raise_server_exceptions=False)
        with service.live.reading():
            answer = client.post("/v1/embed", json={"ids": ["node-1"]})
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
    finally:
        service.close()


def test_another_kind_of_body_than_json_is_refused(client: TestClient) -> None:
    """A page of another site may send these without asking first."""
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""):
        for method, path in (("POST", "/v1/embed"), ("PUT", "/v1/nodes"), ("POST", "/v1/admin/backup")):
            answer = client.request(method, path, content=b'{"ids": ["node-1"]}', headers={"Content-Type": kind})
            assert answer.status_code == 415, answer.text
    good = {"Content-Type": "Application/JSON; charset=utf-8"}
    assert client.post("/v1/embed", content=b'{"ids": ["node-1"]}', headers=good).status_code == 200


def malformed() -> list[tuple[str, str, bytes]]:
    """More than 200 bodies with something wrong in them, most of it carrying a secret."""
    wrong = [
        SECRET,
        [SECRET],
        {SECRET: 1},
        None,
        1.5,
        True,
        [[SECRET]],
        [None],
        [{"id": SECRET}],
        {"id": [SECRET]},
        -1,
        [1e308 * 10],
        "x" * 600,
    ]
    found: list[tuple[str, str, bytes]] = []
    fields = {
        "/v1/embed": ("ids", "nodes", "encoding", SECRET),
        "/v1/predict": ("ids", "nodes", SECRET),
        "/v1/search": ("id", "node", "k", SECRET),
        "/v1/recommend": ("id", "node", "k", SECRET),
        "/v1/score": ("pairs", SECRET),
    }
    for path, names in fields.items():
        found += [("POST", path, json.dumps({name: bad}).encode()) for name in names for bad in wrong]
    inner = ("id", "attributes", "features", "edges", "label", SECRET)
    for name in inner:
        found += [("PUT", "/v1/nodes", json.dumps({"nodes": [{"id": "x", name: bad}]}).encode()) for bad in wrong]
    found += [("PUT", "/v1/edges", json.dumps({"edges": [bad]}).encode()) for bad in wrong]
    raw = [
        b"",
        b"{",
        b"[]",
        b"null",
        b"\xff\xfe" + SECRET.encode(),
        b'{"ids": [NaN]}',
        b'{"nodes": [{"features": [Infinity]}]}',
        b"[" * 5000,
        b'{"ids":' + b"[" * 100_000,
        b'{"a":' * 2000,
        b'"' + b"\\ud800" * 10 + b'"',
        b'{"ids": ["\\ud800' + SECRET.encode() + b'"]}',
        b'{"ids": [1e999]}',
        b'{"nodes": [{"attributes": {"words": "' + SECRET.encode() + b'", "size": "' + SECRET.encode() + b'"}}]}',
        b'{"nodes": [{"attributes": {"words": ["' + SECRET.encode() + b'"], "size": 1}}]}',
        b'{"nodes": [{"attributes": {"words": "", "size": 1e999}}]}',
        b'{"nodes": [{"attributes": {"words": {"a": 1}, "size": [1]}}]}',
        b'{"nodes": [{"id": "x", "attributes": {"words": "a", "size": 1, "note": NaN}}]}',
        b'{"nodes": [{"id": "x", "attributes": {"words": "a", "size": 1, "note": [{"b": -Infinity}]}}]}',
        b'{"nodes": [{"id": "x", "attributes": {"words": "a", "size": 1, "note": "\\ud800"}}]}',
        b'{"nodes": [{"id": "x", "attributes": {"words": "a", "size": 1, "\\udfff": 1}}]}',
        b'{"nodes": [{"id": "\\ud800", "attributes": {"words": "a", "size": 1}}]}',
        b'{"nodes": [{"features": [1e39, 0, 0, 0, 0, 0]}]}',
    ]
    found += [
        (method, path, body)
        for body in raw
        for method, path in (("POST", "/v1/embed"), ("POST", "/v1/search"), ("PUT", "/v1/nodes"))
    ]
    draw = random.Random(0)
    good = json.dumps({"nodes": [{"id": SECRET, **NEW}]}).encode()
    for _ in range(60):
        body = bytearray(good)
        for _ in range(draw.randrange(1, 4)):
            body[draw.randrange(len(body))] = draw.randrange(256)
        found.append(("POST", "/v1/embed", bytes(body[: draw.randrange(1, len(body) + 1)])))
    return found


def test_malformed_bodies_are_refused_without_repeating_them(
    client: TestClient, service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    eventually(service.updater.caught_up)
    cases = malformed()
    assert len(cases) >= 200
    caplog.set_level(logging.DEBUG, "graphsage")
    refused = 0
    for method, path, body in cases:
        answer = client.request(method, path, content=body, headers={"Content-Type": "application/json"})
        assert answer.status_code < 500, (method, path, body[:80], answer.text)
        if answer.status_code != 200:
            refused += 1
            assert answer.headers["content-type"] == "application/problem+json"
            assert {*answer.json()} == {"type", "title", "status", "detail"}
            assert SECRET not in answer.text
    assert refused > 200
    assert SECRET not in caplog.text
    for path in (f"/v1/nodes/{SECRET}", f"/v1/{SECRET}", f"/v1/map/changes?since={SECRET}"):
        answer = client.get(path)
        assert answer.status_code in (404, 422)
        assert SECRET not in answer.text

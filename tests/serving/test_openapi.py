"""The OpenAPI description is valid, and requests and answers are as it says."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from jsonschema import Draft202012Validator
from starlette.testclient import TestClient

from graphsage.serving.app import make_app
from graphsage.serving.keys import ApiKeys
from graphsage.serving.openapi import EXAMPLES
from graphsage.serving.service import Service
from small_service import NEW, api_key, eventually

NODE = "/v1/nodes/{id}"


@pytest.fixture
def description(client: TestClient) -> dict[str, Any]:
    said: dict[str, Any] = client.get("/openapi.json").json()
    return said


def valid(said: dict[str, Any], schema: dict[str, Any], content: Any) -> None:
    Draft202012Validator({**schema, "components": said["components"]}).validate(content)


def test_it_is_valid_openapi(description: dict[str, Any], service: Service) -> None:
    schemathesis.openapi.from_dict(description).validate()
    keyed = TestClient(make_app(service, ApiKeys([api_key("r" * 20, "read")])))
    said = keyed.get("/openapi.json", headers={"X-API-Key": "r" * 20}).json()
    schemathesis.openapi.from_dict(said).validate()
    assert description["security"] == [*said["security"], {}], "without keys all is open"
    assert {*said["components"]["securitySchemes"]} == {name for each in said["security"] for name in each}
    assert "401" in said["paths"]["/v1/embed"]["post"]["responses"]
    assert "401" not in description["paths"]["/v1/embed"]["post"]["responses"]


def test_all_routes_and_references_are_there(description: dict[str, Any], client: TestClient) -> None:
    def references(part: Any) -> Iterator[str]:
        if isinstance(part, dict):
            yield from (value for name, value in part.items() if name == "$ref")
            for value in part.values():
                yield from references(value)
        elif isinstance(part, list):
            for value in part:
                yield from references(value)

    for reference in references(description):
        part: Any = description
        for name in reference.removeprefix("#/").split("/"):
            part = part[name]
    operations = [each for methods in description["paths"].values() for each in methods.values()]
    ids = [each["operationId"] for each in operations]
    assert len(ids) == len(set(ids)) == 28
    assert {"embed", "predict", "search", "ingest", "list_nodes", "changes"} <= {*ids}
    scopes = {path: {m: each.get("x-scope") for m, each in ms.items()} for path, ms in description["paths"].items()}
    assert scopes[NODE] == {"get": "read", "put": "write", "patch": "write", "delete": "write"}
    assert scopes["/v1/admin/reload"] == {"post": "admin"}
    assert scopes["/healthz"] == {"get": None}
    assert description["paths"]["/healthz"]["get"]["security"] == []
    assert {each["name"] for each in description["paths"][NODE]["delete"]["parameters"]} == {
        "id",
        "If-Match",
        "If-None-Match",
    }


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_are_as_their_schemas_say(description: dict[str, Any], name: str) -> None:
    schema = description["components"]["schemas"][name]
    assert schema["examples"] == [EXAMPLES[name]]
    valid(description, {"$ref": f"#/components/schemas/{name}"}, EXAMPLES[name])


def test_answers_are_as_described(client: TestClient, service: Service, description: dict[str, Any]) -> None:
    eventually(service.updater.caught_up)
    edges = {"edges": [{"source": "node-1", "target": "node-2"}]}
    lines = {"content": b'{"source": "node-1", "target": "node-3"}\n{}', "headers": {"Content-Type": NDJSON}}
    tag = client.get("/v1/nodes/node-1").headers["etag"]
    wrong = {"If-Match": '"x"'}
    asked: list[tuple[str, str, str, dict[str, Any]]] = [
        ("get", "/healthz", "", {}),
        ("get", "/readyz", "", {}),
        ("get", "/metrics", "", {}),
        ("get", "/v1/model", "", {}),
        ("get", "/v1/stats", "", {}),
        ("get", "/v1/map", "", {}),
        ("get", "/v1/map/changes", "", {"params": {"since": "x"}}),
        ("post", "/v1/embed", "", {"json": {"ids": ["node-1"], "nodes": [NEW]}}),
        ("post", "/v1/embed", "", {"json": {"ids": ["node-1"], "encoding": "base64"}}),
        ("post", "/v1/embed", "", {"json": {"ids": ["nobody"]}}),
        ("post", "/v1/embed", "", {"json": {"ids": [""]}}),
        ("post", "/v1/embed", "", {"content": b"{", "headers": {"Content-Type": "application/json"}}),
        ("post", "/v1/embed", "", {"content": b"{}"}),
        ("post", "/v1/embed", "", {"content": b" " * 2_000_000}),
        ("post", "/v1/embed", "", {"json": {"nodes": [{"id": "node-1", **NEW}]}}),
        ("post", "/v1/embed", "", {"json": {"ids": ["node-1"]}, "headers": {"Sec-Fetch-Site": "cross-site"}}),
        ("post", "/v1/predict", "", {"json": {"ids": ["node-1"], "nodes": [NEW]}}),
        ("post", "/v1/search", "", {"json": {"id": "node-1"}}),
        ("post", "/v1/recommend", "", {"json": {"id": "node-1"}}),
        ("post", "/v1/score", "", {"json": {"pairs": [{"source": "node-1", "target": "node-2"}]}}),
        ("get", NODE, "node-1", {}),
        ("get", NODE, "node-1", {"headers": {"If-None-Match": tag}}),
        ("get", NODE, "nobody", {}),
        ("get", NODE, "node-1", {"headers": {"If-None-Match": "x"}}),
        ("get", NODE, "node-1", {"params": {"neighbors": -1}}),
        ("get", "/v1/nodes", "", {"params": {"attributes": True}}),
        ("get", "/v1/nodes", "", {"params": {"cursor": "!"}}),
        ("put", NODE, "new", {"json": {**NEW, "label": "logic"}}),
        ("put", NODE, "new", {"json": {}, "headers": wrong}),
        ("patch", NODE, "nobody", {"json": {}}),
        ("put", "/v1/nodes", "", {"json": {"nodes": [{"id": "a", **NEW}]}}),
        ("put", "/v1/nodes", "", {"json": {"nodes": [{"id": "b", **NEW, "edges": ["nobody"]}]}}),
        ("put", "/v1/edges", "", {"json": edges}),
        ("put", "/v1/edges", "", {"json": edges, "headers": wrong}),
        ("delete", "/v1/edges", "", {"params": {"source": "node-1", "target": "node-2"}}),
        ("delete", "/v1/edges", "", {"params": {"source": "node-1", "target": "nobody"}}),
        ("delete", NODE, "a", {"headers": wrong}),
        ("delete", NODE, "a", {}),
        ("post", "/v1/ingest", "", lines),
        ("post", "/v1/ingest", "", {"json": {}}),
        ("get", "/v1/changes", "", {"params": {"since": 0}}),
        ("get", "/v1/changes", "", {"params": {"since": 99}}),
        ("post", "/v1/admin/compact", "", {}),
        ("post", "/v1/admin/backup", "", {"json": {"name": "monday"}}),
        ("post", "/v1/admin/backup", "", {"json": {"name": "monday"}}),
        ("post", "/v1/admin/reload", "", {}),
        ("get", "/v1/map/changes", "", {}),
        ("get", "/v1/map/attributes", "", {}),
        ("get", "/v1/map/values", "", {"params": {"attribute": "size"}}),
        ("get", "/v1/map/values", "", {"params": {"attribute": "nothing"}}),
        ("get", "/v1/map/find", "", {"params": {"text": "logic"}}),
    ]
    for method, path, id, options in asked:
        answer = client.request(method.upper(), path.replace("{id}", id), **options)
        described = description["paths"][path][method]["responses"]
        assert str(answer.status_code) in described, f"{method} {path}: {answer.status_code} is not described"
        each = described[str(answer.status_code)]
        if "$ref" in each:
            each = description["components"]["responses"][each["$ref"].rpartition("/")[2]]
        for header in each["headers"]:
            assert header in answer.headers or header == "Retry-After" or (header == "ETag" and method != "get")
        if answer.status_code == 304:
            continue
        kind = answer.headers["content-type"].partition(";")[0]
        assert list(each["content"]) == [kind], f"{method} {path} {answer.status_code}"
        if kind == NDJSON:
            for line in answer.text.splitlines():
                valid(description, each["content"][kind]["schema"], json.loads(line))
        elif kind.endswith("json"):
            valid(description, each["content"][kind]["schema"], answer.json())
            assert (answer.status_code >= 400) == (kind == "application/problem+json")
    assert {(method, path) for method, path, *_ in asked} == {
        (method, path) for path, methods in description["paths"].items() for method in methods
    }, "each operation is tried"


NDJSON = "application/x-ndjson"

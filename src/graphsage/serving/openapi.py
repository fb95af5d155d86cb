"""The OpenAPI description: what FastAPI derives from routes and schemas, and what it cannot know.

That is: keys and their scopes, problem+json, conditions in headers, bodies that are not JSON, examples.
"""

from typing import Any

from fastapi import FastAPI

from graphsage.serving import schemas
from graphsage.serving.answers import NDJSON, TITLES
from graphsage.serving.request_limits import HEALTH, INGEST, needed_scope

Operation = dict[str, Any]

_SCHEMES = {
    "bearer": {"type": "http", "scheme": "bearer", "description": "Authorization: Bearer KEY"},
    "key": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
    "basic": {"type": "http", "scheme": "basic", "description": "Any user; the key is the password."},
}
_NODE = "/v1/nodes/{id}"
_BODY = {400, 408, 413, 415, 422}
_MORE: dict[tuple[str, str], set[int]] = {
    ("post", "/v1/embed"): {404, 409},
    ("post", "/v1/predict"): {404, 409},
    ("post", "/v1/search"): {404, 409},
    ("post", "/v1/recommend"): {404, 409},
    ("post", "/v1/score"): {404, 409},
    ("put", "/v1/nodes"): {404, 507},
    ("put", "/v1/edges"): {404, 507},
    ("delete", "/v1/edges"): {400, 404, 507},
    ("get", _NODE): {400},
    ("put", _NODE): {404, 412, 507},
    ("patch", _NODE): {404, 412, 507},
    ("delete", _NODE): {400, 412, 507},
    ("get", "/v1/changes"): {410},
    ("get", "/v1/map/values"): {404},
    ("post", INGEST): {400, 408, 415, 507},
    ("post", "/v1/admin/reload"): {409},
    ("post", "/v1/admin/backup"): {409, 507},
    ("post", "/v1/admin/compact"): {507},
}
_CONDITIONS = {
    "If-Match": "Only if the node is in the state of one of these tags; `*`: only if it exists.",
    "If-None-Match": "`*`: only if the node does not exist.",
}
_HEADERS = {
    "X-Request-ID": "The id of the request: that which was sent, or a new one.",
    "ETag": "The node's state. Answers to changes have it if the change had a condition.",
    "Retry-After": "Seconds to wait.",
    "X-Graph-Sequence": "Number of the graph's last change.",
    "X-Map-Epoch": "The map's version.",
}
_VERSION = {"model": "3f9c2b7a10de", "graph": {"generation": 1, "sequence": 8}}
_NEW = {"attributes": {"comment": "The sum of two even numbers is even."}, "edges": ["pythag", "zaddcl"]}
_CLASSES = {"algebra": 0.9, "logic": 0.1}
_LISTED = {"id": "pythag", "label": "algebra", "degree": 12}
EXAMPLES: dict[str, Any] = {
    "EmbedRequest": {"ids": ["pythag"], "nodes": [_NEW], "encoding": "list"},
    "Embeddings": {**_VERSION, "dim": 2, "results": [{"id": "pythag", "embedding": [0.6, 0.8]}]},
    "PredictRequest": {"ids": ["pythag"], "nodes": [_NEW]},
    "Predictions": {
        **_VERSION,
        "results": [{"id": "pythag", "class": "algebra", "probability": 0.9, "probabilities": _CLASSES}],
    },
    "SearchRequest": {"id": "pythag", "k": 3},
    "SearchAnswer": {**_VERSION, "recall": 1.0, "results": [{"id": "zaddcl", "cosine": 0.97}]},
    "RecommendRequest": {"id": "pythag", "k": 3},
    "Recommendations": {**_VERSION, "recall": 1.0, "results": [{"id": "zaddcl", "score": 6.9}]},
    "ScoreRequest": {"pairs": [{"source": "pythag", "target": "zaddcl"}]},
    "Scores": {**_VERSION, "results": [{"source": "pythag", "target": "zaddcl", "score": 6.9}]},
    "NodeBody": {**_NEW, "label": "algebra"},
    "PutNodes": {"nodes": [{"id": "my-theorem", **_NEW, "label": "algebra"}]},
    "PutEdges": {"edges": [{"source": "my-theorem", "target": "zaddcl"}]},
    "BackupRequest": {"name": "monday"},
    "Changed": _VERSION,
    "NodeAnswer": {
        **_VERSION,
        "id": "pythag",
        "attributes": {"comment": "The Pythagorean theorem."},
        "label": "algebra",
        "targets": None,
        "degree": 12,
        "neighbors": ["zaddcl"],
        "prediction": {"class": "algebra", "probability": 0.9, "probabilities": _CLASSES},
    },
    "NodeList": {**_VERSION, "nodes": [_LISTED], "next": "cHl0aGFn"},
    "GraphChange": {"sequence": 8, "nodes": [{"id": "my-theorem", "label": "algebra"}], "edges": [["a", "my-theorem"]]},
    "Ingested": {
        **_VERSION,
        "lines": 3,
        "nodes": 1,
        "edges": 1,
        "refused": 1,
        "errors": [{"line": 2, "detail": "the line is not a JSON object"}],
    },
    "ProblemAnswer": {
        "type": "about:blank",
        "title": TITLES[404],
        "status": 404,
        "detail": "ids[0] is not in the graph",
    },
}


def describe(app: FastAPI, keys: bool) -> dict[str, Any]:
    """The description of a service that asks for keys, or of one that is open."""
    said = type(app).openapi(app)
    components = said["components"]
    shown = components["schemas"]
    for name in ("HTTPValidationError", "ValidationError"):
        shown.pop(name, None)
    for model in (schemas.ProblemAnswer, schemas.GraphChange):
        made = model.model_json_schema(ref_template="#/components/schemas/{model}")
        shown |= {**made.pop("$defs", {}), model.__name__: made}
    for name, example in EXAMPLES.items():
        shown[name]["examples"] = [example]
    components["securitySchemes"] = _SCHEMES
    components["responses"] = {f"Problem{status}": _problem(status) for status in TITLES}
    components["headers"] = {
        name: {"description": text, "schema": {"type": "string"}} for name, text in _HEADERS.items()
    }
    said["security"] = [*({name: []} for name in _SCHEMES), *([] if keys else [{}])]
    for path, methods in said["paths"].items():
        for method, operation in methods.items():
            _complete(path, method, operation, keys)
    return said


def _complete(path: str, method: str, operation: Operation, keys: bool) -> None:
    scope = needed_scope(method.upper(), path)
    if path in HEALTH:
        operation["security"] = []
    else:
        operation["description"] = f"{operation.get('description', '')}\n\nScope of the key: `{scope}`.".strip()
        operation["x-scope"] = scope
    if path == _NODE:
        _add_conditions(method, operation)
    if path == INGEST:
        line = {"oneOf": [_ref("schemas", "StoredNode"), _ref("schemas", "Edge")], "description": "A line."}
        operation["requestBody"] = {"required": True, "content": {NDJSON: {"schema": line}}}
    answers = {status: each for status, each in operation["responses"].items() if status != "422"}
    for each in answers.values():
        each.setdefault("headers", {})["X-Request-ID"] = _ref("headers", "X-Request-ID")
    for status in _statuses(path, method, operation, keys):
        answers[str(status)] = _ref("responses", f"Problem{status}")
    operation["responses"] = dict(sorted(answers.items()))


def _statuses(path: str, method: str, operation: Operation, keys: bool) -> set[int]:
    """Statuses of the errors that an operation may answer with."""
    if path in HEALTH:
        return set()
    found = {403, *({401} if keys else ()), *_MORE.get((method, path), ())}
    if path.startswith("/v1/"):
        found |= {422, 429, 503}
    if "requestBody" in operation and path != INGEST:
        found |= _BODY
    if "{id}" in path:
        found.add(404)
    return found


def _add_conditions(method: str, operation: Operation) -> None:
    answer = operation["responses"]["200"]
    if method != "delete":
        answer.setdefault("headers", {})["ETag"] = _ref("headers", "ETag")
    known = {"If-None-Match": "Tags of answers that the client has."} if method == "get" else _CONDITIONS
    for name, text in known.items():
        header = {"name": name, "in": "header", "required": False, "description": text, "schema": {"type": "string"}}
        operation["parameters"].append(header)
    if method == "get":
        operation["responses"]["304"] = {"description": "The client has the answer.", "headers": answer["headers"]}


def _problem(status: int) -> dict[str, Any]:
    headers = {"X-Request-ID": _ref("headers", "X-Request-ID")}
    if status in (429, 503):
        headers["Retry-After"] = _ref("headers", "Retry-After")
    content = {"application/problem+json": {"schema": _ref("schemas", "ProblemAnswer")}}
    return {"description": TITLES[status], "headers": headers, "content": content}


def _ref(what: str, name: str) -> dict[str, str]:
    return {"$ref": f"#/components/{what}/{name}"}

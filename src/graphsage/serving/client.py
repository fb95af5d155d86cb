"""A client of the service with one connection and typed answers. It needs only the standard library and NumPy.

with Client("http://127.0.0.1:8000") as client:
    client.embed(ids=["pythag"]).vectors
"""

import base64
import http.client
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import numpy as np
import numpy.typing as npt

from graphsage.errors import ConfigError, GraphSageError


class ServiceError(GraphSageError):
    """The service refused a request; `status` is the HTTP status."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(f"the service answered {status}: {detail}")
        self.status, self.detail = status, detail


@dataclass(frozen=True)
class Version:
    generation: int
    sequence: int


@dataclass(frozen=True)
class Node:
    """A node to embed or to store: raw attributes or ready features, and the ids of its neighbors."""

    id: str | None = None
    attributes: Mapping[str, Any] | None = None
    features: Sequence[float] | None = None
    edges: Sequence[str] = ()
    label: str | Sequence[str] | None = None

    def as_json(self) -> dict[str, Any]:
        plain = {
            "id": self.id,
            "attributes": self.attributes,
            "edges": list(self.edges),
            "label": self.label,
            "features": None if self.features is None else [float(x) for x in self.features],
        }
        return {name: value for name, value in plain.items() if value is not None}


@dataclass(frozen=True, eq=False)
class Embeddings:
    """`vectors` (B, dim): rows of the ids, then rows of the nodes in the request."""

    vectors: npt.NDArray[np.float32]
    model: str
    graph: Version


@dataclass(frozen=True)
class Prediction:
    """`classes` holds the class, or all labels above the threshold; `probabilities` are in descending order."""

    classes: tuple[str, ...]
    probabilities: dict[str, float]


@dataclass(frozen=True)
class Neighbor:
    id: str
    cosine: float


@dataclass(frozen=True)
class NodeInfo:
    id: str
    attributes: dict[str, Any]
    label: str | list[str] | None
    degree: int
    neighbors: list[str]
    prediction: dict[str, Any] | None = field(default=None)


class Client:
    """Repeats a request up to `retries` times if the service is overloaded (429, 503)."""

    def __init__(self, address: str, key: str | None = None, *, timeout: float = 30.0, retries: int = 3) -> None:
        parts = urlsplit(address)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigError(f"the address must begin with http:// or https://; got {address!r}")
        connection = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        self._connection = connection(parts.hostname, parts.port, timeout=timeout)
        self._prefix, self._retries = parts.path.rstrip("/"), retries
        self._headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {key}"} if key else {})}

    def embed(self, ids: Sequence[str] = (), nodes: Sequence[Node] = ()) -> Embeddings:
        body = {"ids": list(ids), "nodes": [node.as_json() for node in nodes], "encoding": "base64"}
        answer = self._ask("POST", "/v1/embed", body)
        rows = [np.frombuffer(base64.b64decode(each["embedding"]), "<f4") for each in answer["results"]]
        return Embeddings(np.stack(rows).astype(np.float32), answer["model"], Version(**answer["graph"]))

    def predict(self, ids: Sequence[str] = (), nodes: Sequence[Node] = ()) -> list[Prediction]:
        answer = self._ask("POST", "/v1/predict", {"ids": list(ids), "nodes": [node.as_json() for node in nodes]})
        return [
            Prediction(tuple(each["labels"]) if "labels" in each else (each["class"],), each["probabilities"])
            for each in answer["results"]
        ]

    def search(self, id: str | None = None, node: Node | None = None, k: int = 10) -> list[Neighbor]:
        body = {"k": k, **({"id": id} if id is not None else {}), **({"node": node.as_json()} if node else {})}
        return [Neighbor(**each) for each in self._ask("POST", "/v1/search", body)["results"]]

    def node(self, id: str, neighbors: int = 50) -> NodeInfo:
        answer = self._ask("GET", f"/v1/nodes/{quote(id, safe='')}?neighbors={neighbors}")
        return NodeInfo(**{name: answer[name] for name in NodeInfo.__dataclass_fields__})

    def put_nodes(self, nodes: Sequence[Node]) -> Version:
        """Return when the nodes are durable."""
        return Version(**self._ask("PUT", "/v1/nodes", {"nodes": [node.as_json() for node in nodes]})["graph"])

    def put_edges(self, edges: Sequence[tuple[str, str]]) -> Version:
        body = [{"source": source, "target": target} for source, target in edges]
        return Version(**self._ask("PUT", "/v1/edges", {"edges": body})["graph"])

    def delete_node(self, id: str) -> Version:
        return Version(**self._ask("DELETE", f"/v1/nodes/{quote(id, safe='')}")["graph"])

    def delete_edge(self, source: str, target: str) -> Version:
        return Version(**self._ask("DELETE", f"/v1/edges?{urlencode({'source': source, 'target': target})}")["graph"])

    def model(self) -> dict[str, Any]:
        return self._ask("GET", "/v1/model")

    def reload(self) -> str:
        return str(self._ask("POST", "/v1/admin/reload")["model"])

    def _ask(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        content = None if body is None else json.dumps(body, allow_nan=False)
        for attempt in range(self._retries + 1):
            status, answer, wait = self._once(method, path, content, again=attempt < self._retries)
            if status == 200:
                decoded: dict[str, Any] = json.loads(answer)
                return decoded
            if status not in (429, 503) or attempt == self._retries:
                raise ServiceError(status, _detail(answer))
            time.sleep(wait * (1 + attempt) / 2)
        raise AssertionError("the last attempt returns or raises")

    def _once(self, method: str, path: str, content: str | None, again: bool) -> tuple[int, bytes, float]:
        try:
            self._connection.request(method, self._prefix + path, content, self._headers)
            response = self._connection.getresponse()
            answer = response.read()
        except (http.client.HTTPException, ConnectionError):
            self._connection.close()
            if again and method != "DELETE":  # repeated adding is safe; a repeated delete would find nothing
                return 503, b"", 0.1
            raise
        return response.status, answer, float(response.headers.get("Retry-After") or 0.1)

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _detail(answer: bytes) -> str:
    try:
        return str(json.loads(answer)["detail"])
    except (ValueError, KeyError, TypeError):
        return "no reason given"

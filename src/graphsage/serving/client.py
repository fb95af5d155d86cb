"""A client of the service with one connection and typed answers. It needs only the standard library and NumPy.

with Client("http://127.0.0.1:8000") as client:
    client.embed(ids=["pythag"]).vectors
"""

import base64
import http.client
import json
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar, overload
from urllib.parse import quote, urlencode, urlsplit

import numpy as np
import numpy.typing as npt

from graphsage.errors import ConfigError, GraphSageError
from graphsage.serving.settings import Settings

_LIMITS = Settings()
_ROOM = 256  # bytes of a body around its ids and nodes
_PLACE = re.compile(r"(^|; |body\.)(ids|nodes|edges|pairs)\[(\d+)\]")  # what a refusal names


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


T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Embeddings:
    """`vectors` (B, dim): rows of the ids, then rows of the nodes in the request."""

    vectors: npt.NDArray[np.float32]
    model: str
    graph: Version
    """The version that all rows have at least; rows of a large batch may be of a later one."""


@dataclass(frozen=True)
class Prediction:
    """`classes` holds the class, or all labels above their thresholds; `probabilities` are in descending order. A
    regression predicts `values` by target instead."""

    classes: tuple[str, ...] = ()
    probabilities: dict[str, float] = field(default_factory=dict)
    values: dict[str, float] = field(default_factory=dict)


def _prediction(found: dict[str, Any]) -> Prediction:
    if "values" in found:
        return Prediction(values=found["values"])
    return Prediction(tuple(found["labels"]) if "labels" in found else (found["class"],), found["probabilities"])


@dataclass(frozen=True)
class Neighbor:
    id: str
    cosine: float


@dataclass(frozen=True)
class Suggestion:
    id: str
    score: float


@dataclass(frozen=True)
class Results(Sequence[T]):
    """Results in the order of the request, with the versions that gave them."""

    results: tuple[T, ...]
    model: str
    graph: Version
    """The version that all results have at least; those of a large batch may be of a later one."""
    recall: float | None = None
    """Of a search: the measured share of true neighbors that the index finds."""

    @overload
    def __getitem__(self, at: int) -> T: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[T, ...]: ...
    def __getitem__(self, at: int | slice) -> T | tuple[T, ...]:
        return self.results[at]

    def __len__(self) -> int:
        return len(self.results)


@dataclass(frozen=True)
class ListedNode:
    id: str
    label: str | list[str] | None
    degree: int
    attributes: dict[str, Any] | None = None


@dataclass(frozen=True)
class Ingested:
    """Counts of a bulk load. `errors` names the first 100 refused lines by number and reason."""

    lines: int
    nodes: int
    edges: int
    refused: int
    errors: list[dict[str, Any]]
    graph: Version


@dataclass(frozen=True)
class NodeInfo:
    id: str
    attributes: dict[str, Any]
    label: str | list[str] | None
    degree: int
    neighbors: list[str]
    prediction: dict[str, Any] | None = field(default=None)
    targets: dict[str, float | None] | None = None


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
        """Large batches are several requests."""
        results, model, graph = self._ask_parts("/v1/embed", ids, nodes, {"encoding": "base64"})
        rows = [np.frombuffer(base64.b64decode(each["embedding"]), "<f4") for each in results]
        return Embeddings(np.stack(rows).astype(np.float32), model, graph)

    def predict(self, ids: Sequence[str] = (), nodes: Sequence[Node] = ()) -> Results[Prediction]:
        """Large batches are several requests."""
        results, model, graph = self._ask_parts("/v1/predict", ids, nodes, {})
        return Results(tuple(map(_prediction, results)), model, graph)

    def search(self, id: str | None = None, node: Node | None = None, k: int = 10) -> Results[Neighbor]:
        body = {"k": k, **({"id": id} if id is not None else {}), **({"node": node.as_json()} if node else {})}
        answer = self._ask("POST", "/v1/search", body)
        found = tuple(Neighbor(**each) for each in answer["results"])
        return Results(found, answer["model"], Version(**answer["graph"]), answer["recall"])

    def recommend(self, id: str | None = None, node: Node | None = None, k: int = 10) -> Results[Suggestion]:
        """The nodes that a node is most likely linked to, without those that it is linked to."""
        body = {"k": k, **({"id": id} if id is not None else {}), **({"node": node.as_json()} if node else {})}
        answer = self._ask("POST", "/v1/recommend", body)
        found = tuple(Suggestion(**each) for each in answer["results"])
        return Results(found, answer["model"], Version(**answer["graph"]), answer["recall"])

    def score(self, pairs: Sequence[tuple[str, str]]) -> Results[float]:
        """Scores of links between stored nodes, each as if it were not linked. More than fit in one request are
        several."""
        scores: list[float] = []
        answer: dict[str, Any] = {}
        for start in range(0, max(len(pairs), 1), _LIMITS.max_nodes):
            part = [{"source": a, "target": b} for a, b in pairs[start : start + _LIMITS.max_nodes]]
            answer = self._ask("POST", "/v1/score", {"pairs": part}, {"pairs": start})
            scores += [each["score"] for each in answer["results"]]
        return Results(tuple(scores), answer["model"], Version(**answer["graph"]))

    def nodes(self, prefix: str = "", attributes: bool = False) -> Iterator[ListedNode]:
        """All nodes, or those whose id begins with `prefix`."""
        asked = {"prefix": prefix, "attributes": str(attributes).lower(), "limit": 1000, "cursor": ""}
        while True:
            page = self._ask("GET", f"/v1/nodes?{urlencode(asked)}")
            yield from (ListedNode(**each) for each in page["nodes"])
            if page["next"] is None:
                return
            asked["cursor"] = page["next"]

    def changes(self, since: int, features: bool = False) -> Iterator[dict[str, Any]]:
        """Changes after number `since`, oldest first, up to the present one."""
        while True:
            asked = urlencode({"since": since, "features": str(features).lower()})
            page = self._fetch("GET", f"/v1/changes?{asked}").splitlines()
            if not page:
                return
            for line in page:
                change = json.loads(line)
                since = change["sequence"]
                yield change

    def node(self, id: str, neighbors: int = 50) -> NodeInfo:
        answer = self._ask("GET", f"/v1/nodes/{quote(id, safe='')}?neighbors={neighbors}")
        return NodeInfo(**{name: answer[name] for name in NodeInfo.__dataclass_fields__})

    def put_nodes(self, nodes: Sequence[Node]) -> Version:
        """Return when the nodes are durable. A batch that fits in one request is stored wholly or not at all; a larger
        one is several requests, and edges to nodes of later requests are added at the end."""
        parts = list(_parts((), nodes)) or [_Part()]
        part_of = {nodes[place].id: number for number, part in enumerate(parts) for place in part.nodes}
        late: list[tuple[str, str]] = []
        done, version = 0, None
        for number, part in enumerate(parts):
            sent = []
            for node in (nodes[place] for place in part.nodes):
                later = {other for other in node.edges if part_of.get(other, 0) > number}
                late += [(other, str(node.id)) for other in node.edges if other in later]
                sent.append(replace(node, edges=[other for other in node.edges if other not in later]).as_json())
            answer = self._ask("PUT", "/v1/nodes", {"nodes": sent}, {"nodes": done}, stored=done)
            version, done = Version(**answer["graph"]), done + len(sent)
        assert version is not None
        return self.put_edges(late) if late else version

    def put_edges(self, edges: Sequence[tuple[str, str]]) -> Version:
        """Return when the edges are durable. More than fit in one request are several."""
        answer: dict[str, Any] = {}
        most = _LIMITS.max_nodes
        for start in range(0, max(len(edges), 1), most):
            body = [{"source": source, "target": target} for source, target in edges[start : start + most]]
            answer = self._ask("PUT", "/v1/edges", {"edges": body}, {"edges": start}, stored=start)
        return Version(**answer["graph"])

    def ingest(self, lines: Iterable[Node | tuple[str, str]]) -> Ingested:
        """Store any number of nodes and edges by one request, while others are answered. A faulty line is refused
        alone."""
        headers = {**self._headers, "Content-Type": "application/x-ndjson"}
        try:
            self._connection.request("POST", self._prefix + "/v1/ingest", _blocks(lines), headers)
            response = self._connection.getresponse()
            answer = response.read()
        except BaseException:  # also one of `lines`
            self._connection.close()
            raise
        if response.status != 200:
            self._connection.close()  # the rest of the body may be under way
            raise ServiceError(response.status, _detail(answer))
        said = json.loads(answer)
        counts = {name: said[name] for name in ("lines", "nodes", "edges", "refused", "errors")}
        return Ingested(**counts, graph=Version(**said["graph"]))

    def delete_node(self, id: str) -> Version:
        return Version(**self._ask("DELETE", f"/v1/nodes/{quote(id, safe='')}")["graph"])

    def delete_edge(self, source: str, target: str) -> Version:
        return Version(**self._ask("DELETE", f"/v1/edges?{urlencode({'source': source, 'target': target})}")["graph"])

    def model(self) -> dict[str, Any]:
        return self._ask("GET", "/v1/model")

    def reload(self) -> str:
        return str(self._ask("POST", "/v1/admin/reload")["model"])

    def _ask_parts(
        self, path: str, ids: Sequence[str], nodes: Sequence[Node], more: Mapping[str, Any]
    ) -> tuple[list[Any], str, Version]:
        """Results of all parts of a batch, by one model."""
        parts = list(_parts(ids, nodes)) or [_Part()]
        for _ in range(self._retries + 1):
            answers: list[dict[str, Any]] = []
            for part in parts:
                body = {"ids": part.ids, "nodes": [nodes[place].as_json() for place in part.nodes], **more}
                places = {"ids": part.first_id, "nodes": part.nodes.start}
                answers.append(self._ask("POST", path, body, places))
            if len({answer["model"] for answer in answers}) == 1:
                results = [each for answer in answers for each in answer["results"]]
                return results, answers[0]["model"], Version(**answers[0]["graph"])
        raise ServiceError(503, "the model was replaced during the batch")

    def _ask(
        self, method: str, path: str, body: Any = None, places: Mapping[str, int] | None = None, stored: int = 0
    ) -> dict[str, Any]:
        try:
            decoded: dict[str, Any] = json.loads(self._fetch(method, path, body))
            return decoded
        except ServiceError as error:
            detail = _PLACE.sub(lambda at: f"{at[1]}{at[2]}[{int(at[3]) + (places or {}).get(at[2], 0)}]", error.detail)
            if stored:
                detail += f"; the first {stored:,} of the batch are stored"
            raise ServiceError(error.status, detail) from None

    def _fetch(self, method: str, path: str, body: Any = None) -> bytes:
        content = None if body is None else _json(body)
        for attempt in range(self._retries + 1):
            status, answer, wait = self._once(method, path, content, again=attempt < self._retries)
            if status == 200:
                return answer
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


def _json(content: Any) -> str:
    try:
        return json.dumps(content, allow_nan=False)
    except ValueError:
        raise ConfigError("a number of the request is NaN or infinite; send null for an unknown value") from None


def _detail(answer: bytes) -> str:
    try:
        return str(json.loads(answer)["detail"])
    except (ValueError, KeyError, TypeError):
        return "no reason given"


@dataclass
class _Part:
    """A part of a batch that fits in one request: some ids and a range of nodes."""

    ids: list[str] = field(default_factory=list)
    first_id: int = 0
    nodes: range = range(0)


def _parts(ids: Sequence[str], nodes: Sequence[Node]) -> Iterator[_Part]:
    part, count, size, edges = _Part(), 0, 0, 0
    for name, given in (("ids", ids), ("nodes", nodes)):
        if isinstance(given, str | Node):
            raise ConfigError(f"{name} must be a list, not one {type(given).__name__}")
    items: list[str | Node] = [*ids, *nodes]
    for place, item in enumerate(items):
        more = len(item.edges) if isinstance(item, Node) else 0
        length = len(json.dumps(item.as_json() if isinstance(item, Node) else item)) + 2
        over = size + length > _LIMITS.max_body - _ROOM or edges + more > _LIMITS.max_edges
        if count and (count == _LIMITS.max_nodes or over):
            yield part
            part, count, size, edges = _Part(first_id=place), 0, 0, 0
        if isinstance(item, Node):
            number = place - len(ids)
            part.nodes = range(part.nodes.start if part.nodes else number, number + 1)
        else:
            part.ids.append(item)
        count, size, edges = count + 1, size + length, edges + more
    if count:
        yield part


def _blocks(lines: Iterable[Node | tuple[str, str]]) -> Iterator[bytes]:
    """JSON lines in blocks for chunked transfer."""
    block = bytearray()
    for number, line in enumerate(lines, 1):
        if not isinstance(line, Node) and (isinstance(line, str) or len(line) != 2):
            raise ConfigError(f"line {number} must be a Node or an edge (source, target)")
        fields = line.as_json() if isinstance(line, Node) else {"source": line[0], "target": line[1]}
        block += _json(fields).encode() + b"\n"
        if len(block) >= 1 << 16:
            yield bytes(block)
            block.clear()
    if block:
        yield bytes(block)

"""What operators see of each request: an id, counts by route and status, a line of the access log, and of the audit
log if it changes the graph or administers the service."""

import re
import secrets
import time
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from graphsage.serving.logs import JsonLog
from graphsage.serving.metrics import Metrics

Message = MutableMapping[str, Any]
Send = Callable[[Message], Awaitable[None]]

OTHER = "other"  # a method or an address that the service does not have
_METHODS = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_REQUEST_ID = re.compile(rb"[A-Za-z0-9._:/@+=-]{1,128}")
_LONGEST = 4096  # characters of a path or query in a log
_SEEN = "graphsage.seen"


class RouteNames:
    """Names of routes as metrics and logs show them: their number is bounded, whatever clients send."""

    def __init__(self, paths: Iterable[str]) -> None:
        known = {path.replace(":node}", "}") for path in paths}
        self._exact = {path for path in known if "{" not in path}
        self._prefixes = {path.partition("{")[0]: path for path in known if "{" in path}

    def of(self, path: str) -> str:
        if path in self._exact:
            return path
        return next((name for prefix, name in self._prefixes.items() if path.startswith(prefix)), OTHER)


@dataclass(slots=True)
class Seen:
    """A request, from its first line to the end of its answer."""

    id: str
    method: str
    path: str
    query: str
    route: str
    client: str | None
    began: float = field(default_factory=time.perf_counter)
    key: str | None = None
    status: int = 500  # unless an answer begins
    size: int = 0  # bytes of the answer's body
    problem: str | None = None
    facts: dict[str, Any] = field(default_factory=dict)  # what was done, for the audit log

    def line(self) -> dict[str, Any]:
        fields = {
            "request_id": self.id,
            "key": self.key,
            "client": self.client,
            "method": self.method,
            "path": self.path[:_LONGEST],
            "query": self.query[:_LONGEST] or None,
            "route": self.route,
            "status": self.status,
            "ms": round((time.perf_counter() - self.began) * 1000, 3),
            "problem": self.problem,
        }
        return {name: value for name, value in fields.items() if value is not None}


class Observer:
    def __init__(
        self, metrics: Metrics, routes: RouteNames, access: JsonLog | None = None, audit: JsonLog | None = None
    ) -> None:
        self._metrics, self._routes, self._access, self._audit = metrics, routes, access, audit
        self._process, self._numbers = secrets.token_hex(6), count(1)

    def begin(self, scope: MutableMapping[str, Any], given: bytes) -> Seen:
        """`given` is the request's id if the client or a proxy sent one."""
        method, client = scope["method"], scope.get("client")
        seen = Seen(
            given.decode() if _REQUEST_ID.fullmatch(given) else f"{self._process}-{next(self._numbers):x}",
            method if method in _METHODS else OTHER,
            scope["path"],
            scope["query_string"].decode("ascii", "replace"),
            self._routes.of(scope["path"]),
            client[0] if client else None,
        )
        scope[_SEEN] = seen
        return seen

    def watch(self, seen: Seen, send: Send, audited: bool) -> Send:
        async def watched(message: Message) -> None:
            if message["type"] == "http.response.start":
                seen.status = message["status"]
                message["headers"] = [*message.get("headers", ()), (b"x-request-id", seen.id.encode())]
                if audited and self._audit is not None and seen.route != OTHER:
                    self._audit.write(seen.line() | seen.facts, now=True)  # before the client knows
            else:
                seen.size += len(message.get("body", b""))
            await send(message)

        return watched

    def finish(self, seen: Seen) -> None:
        self._metrics.finished(seen.method, seen.route, seen.status, time.perf_counter() - seen.began)
        if self._access is not None:
            self._access.write({**seen.line(), "bytes": seen.size})


def seen_of(scope: MutableMapping[str, Any]) -> Seen:
    seen: Seen = scope[_SEEN]
    return seen

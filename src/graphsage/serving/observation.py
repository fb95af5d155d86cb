"""What operators see of each request: counts by route and status."""

import time
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from dataclasses import dataclass, field
from typing import Any

from graphsage.serving.metrics import Metrics

Message = MutableMapping[str, Any]
Send = Callable[[Message], Awaitable[None]]

_METHODS = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
OTHER = "other"  # a method or an address that the service does not have


class RouteNames:
    """Names of routes as metrics and logs show them: their number is bounded, whatever clients send."""

    def __init__(self, paths: Iterable[str]) -> None:
        known = {path.replace(":path}", "}") for path in paths}
        self._exact = {path for path in known if "{" not in path}
        self._prefixes = {path.partition("{")[0]: path for path in known if "{" in path}

    def of(self, path: str) -> str:
        if path in self._exact:
            return path
        return next((name for prefix, name in self._prefixes.items() if path.startswith(prefix)), OTHER)


@dataclass(slots=True)
class Seen:
    """A request, from its first line to the end of its answer."""

    method: str
    path: str
    route: str
    began: float = field(default_factory=time.perf_counter)
    status: int = 500  # unless an answer begins
    size: int = 0  # bytes of the answer's body

    def watch(self, send: Send) -> Send:
        async def watched(message: Message) -> None:
            if message["type"] == "http.response.start":
                self.status = message["status"]
            else:
                self.size += len(message.get("body", b""))
            await send(message)

        return watched


class Observer:
    def __init__(self, metrics: Metrics, routes: RouteNames) -> None:
        self._metrics, self._routes = metrics, routes

    def begin(self, scope: MutableMapping[str, Any]) -> Seen:
        method = scope["method"] if scope["method"] in _METHODS else OTHER
        return Seen(method, scope["path"], self._routes.of(scope["path"]))

    def finish(self, seen: Seen) -> None:
        self._metrics.finished(seen.method, seen.route, seen.status, time.perf_counter() - seen.began)

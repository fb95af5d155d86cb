"""The gate before the application checks host name, keys, site, load and body size, in this order.

A refused request costs almost no time: its body is not read. Health checks are never refused.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, MutableMapping
from contextlib import contextmanager
from random import uniform
from typing import Any

from graphsage.serving.answers import AT_THE_LIMIT, Problem, problem_body
from graphsage.serving.keys import ADMIN, READ, WRITE, ApiKeys
from graphsage.serving.metrics import Metrics
from graphsage.serving.observation import Observer, Seen, seen_of
from graphsage.serving.settings import Settings

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Headers = dict[bytes, bytes]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

_log = logging.getLogger("graphsage.serving")
HEALTH = ("/healthz", "/readyz")
INGEST = "/v1/ingest"  # its body is streamed
_CROWDED = (0.2, 0.6)  # seconds, at random, until a key that has all of its places gets 429
_PAUSE = 30.0  # seconds between two parts of a streamed body
_READS = ("/v1/embed", "/v1/predict", "/v1/search", "/v1/recommend", "/v1/score")  # POST without changes
_SAFE = ("GET", "HEAD", "OPTIONS")


class Gate:
    def __init__(
        self,
        app: App,
        settings: Settings,
        keys: ApiKeys,
        metrics: Metrics,
        observer: Observer,
        names: frozenset[bytes] | None = None,
    ) -> None:
        """`names` are the accepted Host names; None accepts all."""
        self._app, self._settings, self.keys, self._metrics, self._names = app, settings, keys, metrics, names
        self._observer = observer
        self.waiting = 0
        self._working: Counter[str] = Counter()  # requests in work by key
        self._arriving: dict[str, dict[asyncio.Timeout, None]] = {}  # bodies that arrive, oldest first

    @property
    def full(self) -> bool:
        return self.waiting >= self._settings.max_waiting

    def turned_away(self) -> None:
        self._metrics.rejected.inc()

    def closed_early(self) -> None:
        self._metrics.closed.inc()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if scope["method"] == "HEAD":
            scope = {**scope, "method": "GET"}  # uvicorn omits the body
        headers = dict(scope["headers"])
        seen = self._observer.begin(scope, headers.get(b"x-request-id", b""))
        needed = needed_scope(scope["method"], scope["path"])
        try:
            await self._let_in(scope, headers, needed, receive, self._observer.watch(seen, send, needed != READ))
        except Exception:
            _log.error("request %s failed", seen.id)
            raise
        finally:
            self._observer.finish(seen)

    async def _let_in(self, scope: Scope, headers: Headers, needed: str, receive: Receive, send: Send) -> None:
        if scope["path"] in HEALTH:
            await self._app(scope, receive, send)
            return
        try:
            self._check_name(headers)
            self._authorize(scope, headers, needed)
            _check_site(scope, headers)
            if not scope["path"].startswith("/v1/"):
                await self._app(scope, receive, send)
                return
            if self.full:
                self.turned_away()
                raise AT_THE_LIMIT
            sender = seen_of(scope).key or ""
            if scope["path"] == INGEST:
                with self._place(INGEST, self._settings.max_waiting // 8):  # they take long
                    await self._app(scope, _in_time(receive), send)
                return
            self._check_length(scope)
            most = (self._settings.max_waiting + 1) // 2 if self.keys.several else None
            if most is not None and self._working[sender] >= most:
                self.turned_away()
                await asyncio.sleep(uniform(*_CROWDED))  # else it would ask again at once, and keep the parser busy
                raise AT_THE_LIMIT
            body = await self._arrived(sender, receive)
            with self._place(sender, most):
                await self._app(scope, _replay(body, receive), send)
        except Problem as problem:
            await _answer(send, problem, seen_of(scope))

    @contextmanager
    def _place(self, sender: str, most: int | None) -> Iterator[None]:
        """A place among the requests in work, of which a sender may have `most`."""
        if self.full or (most is not None and self._working[sender] >= max(1, most)):
            self.turned_away()
            raise AT_THE_LIMIT
        self.waiting += 1
        self._working[sender] += 1
        try:
            yield
        finally:
            self.waiting -= 1
            self._working[sender] -= 1
            if not self._working[sender]:
                del self._working[sender]

    async def _arrived(self, sender: str, receive: Receive) -> bytes:
        """The body. It takes no place while it arrives; of too many from one sender, the oldest makes room."""
        arriving = self._arriving.setdefault(sender, {})
        try:
            async with asyncio.timeout(self._settings.deadline) as limit:
                if len(arriving) >= self._settings.max_waiting:
                    oldest = next(iter(arriving))
                    del arriving[oldest]
                    oldest.reschedule(0)
                arriving[limit] = None
                return await self._body(receive)
        except TimeoutError:
            raise Problem(408, "the body did not arrive before the deadline") from None
        finally:
            arriving.pop(limit, None)
            if not arriving:
                self._arriving.pop(sender, None)

    def _check_name(self, headers: Headers) -> None:
        """Refuse DNS rebinding: a web page may point its own name at this machine, and the browser sends that name."""
        if self._names is not None and _without_port(headers.get(b"host", b"")) not in self._names:
            raise Problem(403, "the service does not answer to this host name; see Keys in docs/serving.md")

    def _authorize(self, scope: Scope, headers: Headers, needed: str) -> None:
        if not self.keys.required:
            return
        key = self.keys.find(headers.get(b"authorization", b""), headers.get(b"x-api-key", b""))
        if key is not None:
            seen_of(scope).key = key.name
        if key is None or key.expired:
            ask = 'Basic realm="graphsage"' if scope["path"] == "/" else "Bearer"
            said = "send a key: Authorization: Bearer KEY" if key is None else "the key has expired"
            raise Problem(401, said, {"WWW-Authenticate": ask})
        if needed not in key.scopes:
            raise Problem(403, f"this needs a key with the scope {needed}")

    def _check_length(self, scope: Scope) -> None:
        for name, value in scope["headers"]:
            if name == b"content-length" and value.isdigit() and int(value) > self._settings.max_body:
                raise self._too_large()

    async def _body(self, receive: Receive) -> bytes:
        parts, size = [], 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise Problem(400, "the client closed the connection")
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > self._settings.max_body:
                raise self._too_large()
            if not message.get("more_body"):
                return b"".join(parts)

    def _too_large(self) -> Problem:
        return Problem(413, f"a body may have at most {self._settings.max_body} bytes")


def needed_scope(method: str, path: str) -> str:
    """The scope that a key needs for a request."""
    if path.startswith("/v1/admin/"):
        return ADMIN
    return READ if method in _SAFE or (method == "POST" and path in _READS) else WRITE


def local_names(host: str, allowed: Iterable[str] = ()) -> frozenset[bytes]:
    """Host names of a service that is bound to `host` of this machine, and those `allowed` besides."""
    bound = f"[{host}]" if ":" in host else host.lower()
    return frozenset(
        {b"localhost", b"127.0.0.1", b"[::1]", bound.encode(), *(name.lower().encode() for name in allowed)}
    )


def _without_port(host: bytes) -> bytes:
    name, colon, port = host.rpartition(b":")
    return (name if colon and (port.isdigit() or not port) else host).lower()


def _check_site(scope: Scope, headers: Headers) -> None:
    """Refuse changes that a page of another site requests through a user's browser (CSRF).

    Browsers send Sec-Fetch-Site to https and localhost only, and Origin with every such request.
    """
    if scope["method"] in _SAFE:
        return
    site, origin = headers.get(b"sec-fetch-site"), headers.get(b"origin")
    if site is not None:
        foreign = site not in (b"same-origin", b"none")
    else:
        foreign = origin is not None and _authority(origin) != _authority(b"//" + headers.get(b"host", b""))
    if foreign:
        raise Problem(403, "a page of another site may not do this")


def _authority(address: bytes) -> bytes:
    """Host and port of an address. Ports 80 and 443 are left out: behind a proxy the scheme is unknown."""
    return address.partition(b"//")[2].lower().removesuffix(b":80").removesuffix(b":443")


def _in_time(receive: Receive) -> Receive:
    """The parts of a body, each of which must follow soon after the one before."""

    async def part() -> Message:
        try:
            async with asyncio.timeout(_PAUSE):
                return await receive()
        except TimeoutError:
            raise Problem(408, f"the body made a pause of more than {_PAUSE:g} seconds") from None

    return part


def _replay(body: bytes, receive: Receive) -> Receive:
    sent = False

    async def again() -> Message:
        nonlocal sent
        if sent:
            return await receive()
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


async def _answer(send: Send, problem: Problem, seen: Seen) -> None:
    seen.problem = problem.detail
    body = problem_body(problem.status, problem.detail)
    headers = {"Content-Type": "application/problem+json", "Content-Length": str(len(body)), **problem.headers}
    raw = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": problem.status, "headers": raw})
    await send({"type": "http.response.body", "body": body})

"""The application: routes, the gate before them, and error answers that never repeat input."""

import logging
import re
from functools import cache
from pathlib import Path

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.responses import FileResponse, Response
from starlette.staticfiles import StaticFiles

from graphsage.errors import (
    ChangesGoneError,
    DamageError,
    DataError,
    NodeStateError,
    OutputError,
    StoreError,
    UnknownNodeError,
)
from graphsage.serving.answers import Problem, problem_body
from graphsage.serving.ingest import ingest
from graphsage.serving.keys import ApiKeys
from graphsage.serving.link_routes import links
from graphsage.serving.listing_routes import listing
from graphsage.serving.logs import JsonLog
from graphsage.serving.observation import Observer, RouteNames, seen_of
from graphsage.serving.openapi import describe
from graphsage.serving.request_limits import Gate
from graphsage.serving.routes import admin, reads, writes
from graphsage.serving.service import Service
from graphsage.serving.validation import faults
from graphsage.version import __version__

STATIC = Path(__file__).parent / "static"
_log = logging.getLogger("graphsage.serving")
_OF_ONE_NODE = ("/v1/nodes/{id}", "/v1/search", "/v1/recommend")
_ONLY = re.compile(r"^(ids|nodes|removed_nodes)\[0\]")  # a list that a request for one node does not have
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
# regl compiles its drawing commands with the Function constructor.
_MAP_POLICY = _POLICY.replace("script-src 'self'", "script-src 'self' 'unsafe-eval'")


def make_app(
    service: Service,
    keys: ApiKeys | None = None,
    names: frozenset[bytes] | None = None,
    access_log: JsonLog | None = None,
    audit_log: JsonLog | None = None,
) -> Gate:
    """The ASGI application of a service; the caller closes the service and the logs."""
    app = FastAPI(
        title="graphsage",
        version=__version__,
        summary="Embeddings of nodes that were not there before.",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    app.state.service = service
    parts = (reads, links, listing, ingest, writes, admin)
    for part in parts:
        app.routes.extend(part.routes)  # `include_router` would match each request three times
    _page(app)
    _errors(app)
    paths = [route.path for part in parts for route in part.routes if isinstance(route, APIRoute)]
    routes = RouteNames([*paths, "/", "/docs", "/openapi.json", "/static/{file}"])
    keys = keys or ApiKeys()
    described = cache(lambda: describe(app, keys.required))
    app.openapi = described  # type: ignore[method-assign]
    observer = Observer(service.metrics, routes, access_log, audit_log)
    gate = Gate(app, service.settings, keys, service.metrics, observer, names)
    app.state.gate = gate
    return gate


def _page(app: FastAPI) -> None:
    @app.get("/", include_in_schema=False)
    async def page() -> Response:
        return FileResponse(STATIC / "index.html", headers={"Content-Security-Policy": _MAP_POLICY})

    @app.get("/docs", include_in_schema=False)
    async def docs() -> Response:
        return FileResponse(STATIC / "docs.html", headers={"Content-Security-Policy": _POLICY})

    app.mount("/static", StaticFiles(directory=STATIC))


def _errors(app: FastAPI) -> None:
    def answer(request: Request, status: int, detail: str, headers: dict[str, str] | None = None) -> Response:
        seen = seen_of(request.scope)
        if seen.route in _OF_ONE_NODE:
            detail = _ONLY.sub("the node", detail)
        seen.problem = detail
        return Response(problem_body(status, detail), status, headers, "application/problem+json")

    @app.exception_handler(Problem)
    async def problem(request: Request, error: Problem) -> Response:
        return answer(request, error.status, error.detail, error.headers)

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        found = error.errors()
        status = 400 if any(each["type"] == "json_invalid" for each in found) else 422
        return answer(request, status, faults(found))

    @app.exception_handler(HTTPException)
    async def http(request: Request, error: HTTPException) -> Response:
        sentences = {404: "there is nothing at this address", 405: "this address takes another method"}
        plain = sentences.get(error.status_code, "the request cannot be read")
        return answer(request, error.status_code, plain, dict(error.headers or {}))

    @app.exception_handler(UnknownNodeError)
    async def unknown(request: Request, error: UnknownNodeError) -> Response:
        return answer(request, 404, str(error))

    @app.exception_handler(NodeStateError)
    async def state(request: Request, error: NodeStateError) -> Response:
        return answer(request, 412, str(error))

    @app.exception_handler(ChangesGoneError)
    async def gone(request: Request, error: ChangesGoneError) -> Response:
        return answer(request, 410, f"{error}; list the nodes and go on from the sequence of the first page")

    @app.exception_handler(DataError)
    async def data(request: Request, error: DataError) -> Response:
        return answer(request, 422, str(error))

    @app.exception_handler(OutputError)
    async def output(request: Request, error: OutputError) -> Response:
        _log.error("cannot write: %s", error)
        return answer(request, 507, "the change could not be made durable and was not made")

    @app.exception_handler(DamageError)
    async def damage(request: Request, error: DamageError) -> Response:
        _log.error("the live graph: %s", error)
        return answer(request, 503, "this part of the live graph is damaged on disk and is not served; see the log")

    @app.exception_handler(StoreError)
    async def store(request: Request, error: StoreError) -> Response:
        _log.error("the live graph: %s", error)
        return answer(request, 503, "the live graph cannot be changed now")

    @app.exception_handler(Exception)
    async def other(request: Request, error: Exception) -> Response:
        return answer(request, 500, "internal error of the service; see its log")

"""Responses: JSON, problem+json (RFC 9457), and routes that parse a JSON body directly into its schema."""

import base64
import inspect
import json
from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel, ValidationError
from pydantic_core import to_json
from starlette.responses import Response
from torch import Tensor

from graphsage.live.store import Version

if TYPE_CHECKING:
    from graphsage.serving.batcher import Answer
from graphsage.serving.served_model import ServedModel

NDJSON = "application/x-ndjson"
TITLES = {
    400: "Bad request",
    401: "A key is needed",
    403: "Not allowed",
    404: "Not found",
    405: "Method not allowed",
    408: "The body came too slowly",
    409: "Conflict",
    410: "No longer available",
    412: "The node is not in the expected state",
    413: "The body is too large",
    415: "The body is of the wrong type",
    422: "The request cannot be carried out",
    429: "Too many requests",
    500: "Internal error",
    503: "Not available now",
    507: "The disk cannot be written",
}


class Problem(Exception):
    """An error answer. `detail` must not repeat input."""

    def __init__(self, status: int, detail: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status, self.detail, self.headers = status, detail, dict(headers or {})


def problem_body(status: int, detail: str) -> bytes:
    title = TITLES.get(status, "Error")
    return json.dumps({"type": "about:blank", "title": title, "status": status, "detail": detail}).encode()


def retry(status: int, detail: str) -> Problem:
    """A temporary problem."""
    return Problem(status, detail, {"Retry-After": "1"})


AT_THE_LIMIT = retry(429, "the service is at its limit; try again after a pause")


def json_response(content: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    # Results are checked before. A number that is not finite anywhere else is null, since JSON has no word for it.
    return Response(to_json(content, inf_nan_mode="null"), status, headers, media_type="application/json")


def graph_version(version: Version) -> dict[str, int]:
    return {"generation": version.generation, "sequence": version.sequence}


def stamp(answer: "Answer") -> dict[str, Any]:
    """The versions of model and graph that gave an answer."""
    return {"model": answer.model.version, "graph": graph_version(answer.version)}


def changed(model: ServedModel, version: Version, headers: Mapping[str, str] | None = None) -> Response:
    return json_response({"model": model.version, "graph": graph_version(version)}, headers=headers)


def vectors(z: Tensor, encoding: str) -> list[list[float]] | list[str]:
    """The rows of `z`."""
    if encoding == "base64":
        rows = z.numpy().astype(np.dtype("<f4"), copy=False)
        return [base64.b64encode(row.tobytes()).decode("ascii") for row in rows]
    numbers: list[list[float]] = z.tolist()
    return numbers


Endpoint = Callable[..., Awaitable[Response]]
Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class JsonRoute(APIRoute):
    """Parses the body of endpoints `(request, body, **path)`; FastAPI handles the others and describes all. Routes of
    the API refuse unknown parameters."""

    def __init__(self, path: str, endpoint: Endpoint, **options: Any) -> None:
        super().__init__(path, endpoint, **{**options, "operation_id": options.get("name") or endpoint.__name__})

    def get_route_handler(self) -> Handler:
        parameters = inspect.signature(self.endpoint).parameters
        schema = parameters.get("body")
        if schema is None:
            handle = super().get_route_handler()
        else:
            assert issubclass(schema.annotation, BaseModel)
            handle = _handler(self.endpoint, schema.annotation)
        return _strict(handle, {*parameters}) if self.path.startswith("/v1/") else handle


def _strict(handle: Handler, known: Collection[str]) -> Handler:
    async def checked(request: Request) -> Response:
        if request.scope["query_string"] and any(name not in known for name in request.query_params):
            shown = ", ".join(sorted({*known} - {"request", "body", "id"})) or "none"
            raise Problem(422, f"the query has a parameter that is not known; known: {shown}")
        return await handle(request)

    return checked


def _handler(endpoint: Endpoint, schema: type[BaseModel]) -> Handler:
    async def handle(request: Request) -> Response:
        content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if content_type != "application/json":  # browsers let other sites send some other types without preflight
            raise Problem(415, "send content-type: application/json")
        try:
            body = schema.model_validate_json(await request.body())
        except ValidationError as error:
            found = error.errors(include_url=False, include_context=False, include_input=False)
            raise RequestValidationError([{**each, "loc": ("body", *each["loc"])} for each in found]) from None
        return await endpoint(request, body, **request.path_params)

    return handle

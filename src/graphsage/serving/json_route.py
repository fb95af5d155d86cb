"""Routes with a JSON body, read straight into its schema: most of what FastAPI does is not needed here."""

import inspect
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel, ValidationError
from starlette.responses import Response

from graphsage.serving.problem import Problem

Endpoint = Callable[[Request, Any], Awaitable[Response]]


class LeanRoute(APIRoute):
    """For endpoints `(request, asked)` that answer with a Response; others are left to FastAPI.

    The description in /openapi.json is made from the signature all the same.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        schema = inspect.signature(self.endpoint).parameters.get("asked")
        if schema is None:
            return super().get_route_handler()
        assert issubclass(schema.annotation, BaseModel)
        return _handler(self.endpoint, schema.annotation)


def _handler(endpoint: Endpoint, schema: type[BaseModel]) -> Callable[[Request], Coroutine[Any, Any, Response]]:
    async def handle(request: Request) -> Response:
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json":  # a page of another site can send any other kind without being asked
            raise Problem(415, "send content-type: application/json")
        try:
            asked = schema.model_validate_json(await request.body())
        except ValidationError as error:
            found = error.errors(include_url=False, include_context=False, include_input=False)
            raise RequestValidationError([{**each, "loc": ("body", *each["loc"])} for each in found]) from None
        return await endpoint(request, asked)

    return handle

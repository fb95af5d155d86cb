"""Errors as problem+json (RFC 9457). They name places in a request, never its content."""

import json
from collections.abc import Mapping
from typing import Any

TITLES = {
    400: "Bad request",
    401: "A key is needed",
    403: "Not allowed",
    404: "Not found",
    405: "Method not allowed",
    408: "The body came too slowly",
    409: "Conflict",
    413: "The body is too large",
    415: "The body must be JSON",
    422: "The request cannot be carried out",
    429: "Too many requests",
    500: "Internal error",
    503: "Not available now",
    507: "The disk cannot be written",
}


class Problem(Exception):
    """An answer other than success. `detail` must not repeat what was sent."""

    def __init__(self, status: int, detail: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status, self.detail, self.headers = status, detail, dict(headers or {})


def problem_body(status: int, detail: str) -> bytes:
    said: dict[str, Any] = {"type": "about:blank", "title": TITLES.get(status, "Error"), "status": status}
    return json.dumps({**said, "detail": detail}).encode()


def retry(status: int, detail: str) -> Problem:
    """A problem that time may solve."""
    return Problem(status, detail, {"Retry-After": "1"})


AT_THE_LIMIT = retry(429, "the service is at its limit; try again after a pause")

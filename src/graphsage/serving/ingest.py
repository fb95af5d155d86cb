"""Bulk load: nodes and edges as JSON lines of one request, stored in slices so that other requests are answered."""

import asyncio
import logging
import re
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from fastapi import APIRouter, Request
from pydantic import ValidationError
from pydantic_core import from_json
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from graphsage.errors import DamageError, DataError, OutputError, StoreError
from graphsage.live.change import Change
from graphsage.live.store import Version
from graphsage.serving import schemas
from graphsage.serving.answers import NDJSON, JsonRoute, Problem, graph_version, json_response, retry
from graphsage.serving.observation import seen_of
from graphsage.serving.preconditions import refuse_conditions
from graphsage.serving.request_limits import INGEST
from graphsage.serving.routes import change_of, service_of
from graphsage.serving.service import Service
from graphsage.serving.validation import faults

_log = logging.getLogger("graphsage.serving")
SLICE = 32  # lines stored together
SLICE_EDGES, SLICE_BYTES = 500, 1 << 18
LONGEST_PAUSE = 0.25  # seconds that a load gives way after a slice
REPORTED = 100  # refused lines that the answer names
_WHAT = re.compile(r"^(node|edge)s\[0\]")  # a line is a change of its own when its fault is reported

ingest = APIRouter(tags=["write"], route_class=JsonRoute)
Line = schemas.StoredNode | schemas.Edge


@dataclass
class Load:
    """The state of a bulk load: lines that wait for the next slice, and counts."""

    service: Service
    waiting: list[tuple[int, Line]] = field(default_factory=list)
    size: int = 0
    read: int = 0
    nodes: int = 0
    edges: int = 0
    refused: int = 0
    errors: list[dict[str, Any]] = field(default_factory=list)
    version: Version | None = None

    def refuse(self, number: int, detail: str) -> None:
        self.refused += 1
        self.service.metrics.ingested.labels("refused").inc()
        if len(self.errors) < REPORTED:
            self.errors.append({"line": number, "detail": _WHAT.sub(r"the \1", detail)})

    async def add(self, text: bytes | None) -> None:
        """Take the next line; None is one that was too long."""
        self.read += 1
        if text is None:
            self.refuse(self.read, f"the line has more than {self.service.settings.max_body:,} bytes")
        elif text.strip():
            try:
                self.waiting.append((self.read, _parsed(text)))
            except ValidationError as error:
                self.refuse(self.read, faults(error.errors(include_url=False, include_context=False)))
            except ValueError:
                self.refuse(self.read, "the line is not a JSON object")
        self.size += len(text or b"")
        if len(self.waiting) >= SLICE or self.size >= SLICE_BYTES or self._num_edges() >= SLICE_EDGES:
            await self.store()

    def _num_edges(self) -> int:
        return sum(len(line.edges) if isinstance(line, schemas.StoredNode) else 1 for _, line in self.waiting)

    async def store(self) -> None:
        """Store the waiting lines as one change; if that is refused, each line on its own."""
        lines, self.waiting, self.size = self.waiting, [], 0
        if not lines:
            return
        began = time.monotonic()
        try:
            try:
                await self._store(lines)
            except (DataError, DamageError, Problem):
                for line in lines:
                    try:
                        await self._store([line])
                    except (DataError, Problem) as error:
                        self.refuse(line[0], str(error))
                    except DamageError as error:
                        _log.error("the live graph: %s", error)
                        self.refuse(line[0], "its part of the live graph is damaged on disk; see the service's log")
        except (OutputError, StoreError) as error:
            status = 507 if isinstance(error, OutputError) else 503
            said = f"line {lines[0][0]} could not be made durable; the lines before it are done"
            raise Problem(status, said) from error

        if self.service.metrics.recent(1.0)[0]:  # others send requests: leave them half of the time
            await asyncio.sleep(min(time.monotonic() - began, LONGEST_PAUSE))

    async def _store(self, lines: Sequence[tuple[int, Line]]) -> None:
        nodes = [line for _, line in lines if isinstance(line, schemas.StoredNode)]
        made = await change_of(self.service, nodes)
        own = tuple((line.source, line.target) for _, line in lines if isinstance(line, schemas.Edge))
        change = Change(made.nodes, (*made.edges, *own))
        self.version = await asyncio.wrap_future(self.service.live.submit(change))
        self.nodes += len(nodes)
        self.edges += len(lines) - len(nodes)
        self.service.metrics.ingested.labels("stored").inc(len(lines))

    def counts(self) -> dict[str, int]:
        return {"lines": self.read, "nodes": self.nodes, "edges": self.edges, "refused": self.refused}


@ingest.post(INGEST, response_model=schemas.Ingested, name="ingest")
async def load(request: Request) -> Response:
    """Add or change many nodes and edges, one JSON object per line: a node as in `PUT /v1/nodes`, or an edge
    `{"source": ..., "target": ...}`. Lines are stored in their order, in slices. A faulty line is refused alone,
    counted and named in the answer. One load runs at a time; the body may have any length."""
    service, state = service_of(request), request.app.state
    refuse_conditions(request)
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != NDJSON:
        raise Problem(415, f"send content-type: {NDJSON}")
    if getattr(state, "loading", False):
        raise retry(429, "another bulk load is running")
    made, facts = Load(service), seen_of(request.scope).facts
    state.loading = True
    try:
        async for line in _lines(request.stream(), service.settings.max_body):
            await made.add(line)
        await made.store()
    except ClientDisconnect:
        raise Problem(400, "the client closed the connection") from None
    finally:
        state.loading = False
        facts |= made.counts()
        if made.version is not None:
            facts |= graph_version(made.version)
    errors = sorted(made.errors, key=lambda error: int(error["line"]))
    version = graph_version(made.version or service.live.version)
    return json_response({"model": service.model.version, "graph": version, **made.counts(), "errors": errors})


def _parsed(text: bytes) -> Line:
    fields = from_json(text, allow_inf_nan=False)
    if not isinstance(fields, dict):
        raise ValueError
    return (schemas.Edge if "source" in fields else schemas.StoredNode).model_validate(fields)


async def _lines(stream: AsyncIterator[bytes], longest: int) -> AsyncIterator[bytes | None]:
    """The lines of a body; None in place of one that is longer than `longest`."""
    line, skipping = bytearray(), False
    async for chunk in stream:
        *whole, rest = chunk.split(b"\n")
        for part in whole:
            line += part
            yield None if skipping or len(line) > longest else bytes(line)
            line.clear()
            skipping = False
        line += rest
        if len(line) > longest:
            line.clear()
            skipping = True
    if line or skipping:
        yield None if skipping else bytes(line)

"""Routes that read the whole graph in pages: its nodes, and the feed of its changes."""

import base64
import binascii
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from pydantic_core import to_json
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from graphsage.live.change import LONGEST_ID, Change, attributes_size
from graphsage.live.listing import page_of
from graphsage.serving import schemas
from graphsage.serving.answers import NDJSON, JsonRoute, Problem, graph_version, json_response
from graphsage.serving.routes import label_names, service_of
from graphsage.serving.service import Service

LARGEST_PAGE = 1 << 20  # bytes of attributes in a page of nodes
listing = APIRouter(tags=["read"], route_class=JsonRoute)
_LINES: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Changes, one per line.",
        "content": {NDJSON: {"schema": {"$ref": "#/components/schemas/GraphChange"}}},
        "headers": {"X-Graph-Sequence": {"$ref": "#/components/headers/X-Graph-Sequence"}},
    }
}
Cursor = Annotated[str, Query(max_length=4 * LONGEST_ID, description="`next` of the page before.")]
Limit = Annotated[int, Query(ge=1, le=1000)]


@listing.get("/v1/nodes", response_model=schemas.NodeList)
async def list_nodes(
    request: Request,
    cursor: Cursor = "",
    limit: Limit = 100,
    prefix: Annotated[str, Query(max_length=LONGEST_ID, description="Only nodes whose id begins so.")] = "",
    attributes: bool = False,
) -> Response:
    """All nodes, in pages. Nodes that exist during the whole walk are listed exactly once. A page may have fewer nodes
    than `limit`, even none; the walk is over when `next` is null."""
    service = service_of(request)
    return json_response(await run_in_threadpool(_page, service, _decoded(cursor), limit, prefix, attributes))


def _page(service: Service, after: str | None, limit: int, prefix: str, attributes: bool) -> dict[str, Any]:
    model = service.model
    nodes: list[dict[str, Any]] = []
    with service.live.reading() as (overlay, version):
        names = overlay.base.graph.class_names or model.classes
        page = page_of(overlay, after, limit, prefix)
        last, size = page.last, 0
        for row in page.rows:
            node: dict[str, Any] = {
                "id": overlay.id_of(row),
                "label": label_names(overlay.label_of(row), names),
                "degree": len(overlay.adjacency.neighbors(row)),
            }
            if attributes:
                node["attributes"] = overlay.attributes_of(row)
                size += attributes_size(node["attributes"])
                if nodes and size > LARGEST_PAGE:
                    last = nodes[-1]["id"]
                    break
            nodes.append(node)
    return {
        "model": model.version,
        "graph": graph_version(version),
        "nodes": nodes,
        "next": None if last is None else base64.urlsafe_b64encode(last.encode()).decode("ascii"),
    }


def _decoded(cursor: str) -> str | None:
    try:
        return base64.b64decode(cursor, b"-_", validate=True).decode() if cursor else None
    except (binascii.Error, ValueError):
        raise Problem(422, "cursor must be the `next` of a page") from None


@listing.get("/v1/changes", response_class=Response, responses=_LINES)
async def changes(
    request: Request,
    since: Annotated[int, Query(ge=0, le=2**53, description="Number of the last change that is known.")],
    limit: Limit = 1000,
    features: bool = False,
) -> Response:
    """Changes after change number `since`, oldest first, a JSON line each. An empty answer means that there are none
    yet. `X-Graph-Sequence` is the number of the graph's last change."""
    service = service_of(request)
    last = service.live.version.sequence
    found = await run_in_threadpool(service.live.changes, since, limit)
    names, _ = service.live.classes
    body = b"".join(to_json(_shown(number, change, names, features)) + b"\n" for number, change in found)
    return Response(body, media_type=NDJSON, headers={"X-Graph-Sequence": str(max([last, *(n for n, _ in found)]))})


def _shown(number: int, change: Change, names: tuple[str, ...], features: bool) -> dict[str, Any]:
    nodes = []
    for node in change.nodes:
        fields = {"id": node.id, "attributes": node.attributes, "label": label_names(node.label, names)}
        if features and node.features is not None:
            fields["features"] = node.features.tolist()
        nodes.append({name: value for name, value in fields.items() if value is not None})
    shown = {
        "nodes": nodes,
        "edges": change.edges,
        "removed_edges": change.removed_edges,
        "removed_nodes": change.removed_nodes,
    }
    return {"sequence": number, **{name: value for name, value in shown.items() if value}}

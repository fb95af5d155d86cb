"""Routes that change the graph. What they answer is durable."""

import asyncio
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from graphsage.live.change import Change, NodeChange
from graphsage.live.node_features import RowError
from graphsage.serving import schemas
from graphsage.serving.answers import changed
from graphsage.serving.json_route import LeanRoute
from graphsage.serving.problem import Problem
from graphsage.serving.reads import service_of
from graphsage.serving.service import Service

router = APIRouter(tags=["write"], route_class=LeanRoute)
NodeId = Annotated[str, Path(min_length=1, max_length=512)]
End = Annotated[str, Query(min_length=1, max_length=512)]


async def make(service: Service, change: Change) -> Response:
    version = await asyncio.wrap_future(service.live.submit(change))
    ends = [end for pair in (*change.edges, *change.removed_edges) for end in pair]
    service.follower.touch([*(node.id for node in change.nodes), *ends, *change.removed_nodes])
    service.metrics.changes.inc()
    return changed(service.model, version)


@router.put("/v1/nodes", response_model=schemas.Changed)
async def put_nodes(request: Request, asked: schemas.PutNodes) -> Response:
    """Add nodes, or change those that are there; all or none. Their edges are added with them."""
    service = service_of(request)
    try:
        features = await run_in_threadpool(
            service.model.rows.features, [n.attributes for n in asked.nodes], [n.features for n in asked.nodes]
        )
    except RowError as error:
        raise Problem(422, f"nodes[{error.row}]: {error}") from None
    nodes = [
        NodeChange(n.id, x, n.attributes, _label(service, n.label, place))
        for place, (n, x) in enumerate(zip(asked.nodes, features, strict=True))
    ]
    edges = tuple((other, n.id) for n in asked.nodes for other in n.edges)
    return await make(service, Change(tuple(nodes), edges))


@router.put("/v1/edges", response_model=schemas.Changed)
async def put_edges(request: Request, asked: schemas.PutEdges) -> Response:
    """Join nodes that are there; an edge that is there already stays. All or none."""
    return await make(service_of(request), Change(edges=tuple((e.source, e.target) for e in asked.edges)))


@router.delete("/v1/edges", response_model=schemas.Changed)
async def delete_edge(request: Request, source: End, target: End) -> Response:
    """Take an edge away; one that is not there is no error."""
    return await make(service_of(request), Change(removed_edges=((source, target),)))


@router.delete("/v1/nodes/{id:path}", response_model=schemas.Changed)
async def delete_node(request: Request, id: NodeId) -> Response:
    """Delete a node and all its edges."""
    return await make(service_of(request), Change(removed_nodes=(id,)))


def _label(service: Service, label: str | list[str] | None, place: int) -> int | tuple[int, ...] | None:
    if label is None:
        return None
    names, many = service.live.classes
    try:
        numbers = tuple(names.index(name) for name in ([label] if isinstance(label, str) else label))
    except ValueError:
        raise Problem(422, f"nodes[{place}].label is not a class of the graph") from None
    return numbers if many else numbers[0] if len(numbers) == 1 else numbers

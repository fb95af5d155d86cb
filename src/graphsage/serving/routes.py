"""Routes that read (embed, predict, search, node), write, and administer the service."""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.convertors import PathConvertor, register_url_convertor
from starlette.responses import PlainTextResponse, Response

from graphsage.errors import GraphSageError, NodeStateError
from graphsage.inference.nearest import Vectors
from graphsage.live.change import LONGEST_ID, Change, NodeChange
from graphsage.live.node_features import RowError
from graphsage.live.node_state import Expected, node_state
from graphsage.live.overlay import Overlay
from graphsage.live.store import LiveGraph
from graphsage.serving import schemas
from graphsage.serving.answers import JsonRoute, Problem, changed, graph_version, json_response, retry, stamp, vectors
from graphsage.serving.batcher import Answer, Job, NewNode
from graphsage.serving.index import SearchIndex
from graphsage.serving.map_attributes import COLORED_NODES, containing, offered, values_of
from graphsage.serving.observation import seen_of
from graphsage.serving.preconditions import etag, expected_of, is_known, refuse_conditions
from graphsage.serving.served_model import ServedModel
from graphsage.serving.service import Service


class NodeIdConvertor(PathConvertor):
    regex = r"[\s\S]*"  # also line breaks, which the convertor `path` leaves out


register_url_convertor("node", NodeIdConvertor())
reads = APIRouter(tags=["read"], route_class=JsonRoute)
NodeId = Annotated[str, Path(min_length=1, max_length=512)]
writes = APIRouter(tags=["write"], route_class=JsonRoute)
End = Annotated[str, Query(min_length=1, max_length=512)]
admin = APIRouter(tags=["service"], route_class=JsonRoute)
_log = logging.getLogger("graphsage.serving")
_PACKED: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Packed points.",
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
        "headers": {"X-Map-Epoch": {"$ref": "#/components/headers/X-Map-Epoch"}},
    }
}


def service_of(request: Request) -> Service:
    service: Service = request.app.state.service
    return service


def sender_of(request: Request) -> str:
    """The name of the key of a request; empty without keys."""
    return seen_of(request.scope).key or ""


async def compute(
    service: Service,
    ids: Sequence[str],
    nodes: Sequence[schemas.NewNode],
    predict: bool = False,
    model: ServedModel | None = None,
    look: Callable[[Overlay, ServedModel], Any] | None = None,
    sender: str = "",
) -> Answer:
    """Embed nodes. `sender` is the name of the key that asks (`sender_of`), for a fair order."""
    total = len(ids) + len(nodes)
    if not total:
        raise Problem(422, "give ids, nodes or both")
    if total > service.settings.max_nodes:
        raise Problem(422, f"a request may have {service.settings.max_nodes} nodes")
    _check_edges(service, nodes)
    sent = [NewNode(n.id, n.attributes, n.features, n.edges) for n in nodes]
    deadline = time.monotonic() + service.settings.deadline
    future = asyncio.wrap_future(service.batcher.submit(Job(ids, sent, deadline, predict, model, sender, look)))
    try:
        async with asyncio.timeout(service.settings.deadline + 1):
            return await future
    except TimeoutError:
        raise retry(503, "the request took longer than its deadline") from None


def _check_edges(service: Service, nodes: Sequence[schemas.NodeFields]) -> None:
    """Refuse a request that would keep others waiting for long."""
    count, most = sum(len(node.edges) for node in nodes), service.settings.max_edges
    if count > most:
        raise Problem(422, f"the nodes of a request may have {most:,} edges together, not {count:,}; send fewer nodes")


@reads.post("/v1/embed", response_model=schemas.Embeddings)
async def embed(request: Request, body: schemas.EmbedRequest) -> Response:
    """Embeddings of stored nodes and of new nodes in the request."""
    answer = await compute(service_of(request), body.ids, body.nodes, sender=sender_of(request))
    names = [*body.ids, *(node.id for node in body.nodes)]
    rows = vectors(answer.z, body.encoding)
    results = [{"id": name, "embedding": row} for name, row in zip(names, rows, strict=True)]
    return json_response({**stamp(answer), "dim": answer.model.dim, "results": results})


@reads.post("/v1/predict", response_model=schemas.Predictions)
async def predict(request: Request, body: schemas.PredictRequest) -> Response:
    """Classes (or labels) with probabilities, or numbers, of stored nodes and of new nodes in the request."""
    service = service_of(request)
    if not service.model.predicts:
        raise Problem(409, "the model was trained without labels and predicts nothing")
    answer = await compute(service, body.ids, body.nodes, predict=True, sender=sender_of(request))
    if answer.outputs is None:
        raise retry(503, "the model was just replaced; try again")
    names = [*body.ids, *(node.id for node in body.nodes)]
    results = [{"id": name, **answer.model.prediction(p)} for name, p in zip(names, answer.outputs, strict=True)]
    return json_response({**stamp(answer), "results": results})


def searched(
    service: Service, body: schemas.SearchRequest | schemas.RecommendRequest
) -> tuple[SearchIndex, ServedModel]:
    """The search index and the model of its vectors, for a request about one stored or new node."""
    if (body.id is None) == (body.node is None):
        raise Problem(422, "give either id or node")
    index, model = service.updater.searched
    if index is None or model is None:
        raise retry(503, f"the search index {service.updater.missing}")
    return index, model


@reads.post("/v1/search", response_model=schemas.SearchAnswer)
async def search(request: Request, body: schemas.SearchRequest) -> Response:
    """The nodes whose embeddings are closest (cosine) to that of a node."""
    service = service_of(request)
    index, model = searched(service, body)
    nodes = [] if body.node is None else [body.node]
    ids = [] if body.id is None else [body.id]
    answer = await compute(service, ids, nodes, model=model, sender=sender_of(request))
    found = await run_in_threadpool(_search, service.live, index, answer.z[0].numpy(), body.k, body.id)
    results = [{"id": name, "cosine": cosine} for name, cosine in found]
    return json_response({**stamp(answer), "recall": index.recall, "results": results})


def _search(live: LiveGraph, index: SearchIndex, z: Vectors, k: int, without: str | None) -> list[tuple[str, float]]:
    """The `k` nearest nodes that exist now: the index learns of deletions a moment later."""
    asked = k
    while True:
        found = index.search(z, asked, without)
        with live.reading() as (overlay, _):
            living = [pair for pair in found if overlay.find(pair[0]) is not None]
        if len(living) >= k or len(found) < asked:
            return living[:k]
        asked *= 2


@reads.get("/v1/nodes/{id:node}", response_model=schemas.NodeAnswer)
async def node(request: Request, id: NodeId, neighbors: Annotated[int, Query(ge=0, le=1000)] = 50) -> Response:
    """Attributes, neighbors and prediction of a node."""
    service = service_of(request)
    look = partial(_described, id=id, neighbors=neighbors)
    answer = await compute(service, [id], [], service.model.predicts, look=look, sender=sender_of(request))
    state, described = answer.seen
    p = None if answer.outputs is None else answer.model.prediction(answer.outputs[0])
    content = {**stamp(answer), **described, "prediction": p}
    headers = {"ETag": etag(state, content), "Cache-Control": "no-cache"}
    if is_known(request, headers["ETag"]):
        return Response(None, 304, headers)
    return json_response(content, headers=headers)


def _described(overlay: Overlay, model: ServedModel, id: str, neighbors: int) -> tuple[str, dict[str, Any]]:
    """The state of a node and its description."""
    row, state = overlay.find(id), node_state(overlay, id)
    if row is None or state is None:
        raise Problem(404, "there is no such node")
    around = overlay.adjacency.neighbors(row)
    return state, {
        "id": id,
        "attributes": overlay.attributes_of(row),
        "label": label_names(overlay.label_of(row), overlay.base.graph.class_names or model.classes),
        "targets": overlay.targets_of(row),
        "degree": len(around),
        "neighbors": [overlay.id_of(other) for other in around[:neighbors].tolist()],
    }


def label_names(label: int | tuple[int, ...] | None, known: tuple[str, ...]) -> str | list[str] | None:
    if label is None:
        return None
    if isinstance(label, tuple):
        return [known[c] if c < len(known) else str(c) for c in label]
    return known[label] if label < len(known) else str(label)


async def make(request: Request, change: Change, expected: Expected | None = None) -> Response:
    service, facts = service_of(request), seen_of(request.scope).facts
    done = {"nodes": [node.id for node in change.nodes], "edges": len(change.edges)}
    gone = {"removed_nodes": change.removed_nodes, "removed_edges": change.removed_edges}
    facts |= {name: value for name, value in (done | gone).items() if value}
    version = await asyncio.wrap_future(service.live.submit(change, expected))
    facts |= graph_version(version)
    tag = None if expected is None or expected.state is None else {"ETag": etag(expected.state)}
    return changed(service.model, version, tag)


@writes.put("/v1/nodes", response_model=schemas.Changed)
async def put_nodes(request: Request, body: schemas.PutNodes) -> Response:
    """Add or change nodes and add their edges; all or none."""
    refuse_conditions(request)
    service = service_of(request)
    return await make(request, await change_of(service, body.nodes))


@writes.put("/v1/nodes/{id:node}", response_model=schemas.Changed)
async def put_node(request: Request, body: schemas.NodeBody, id: NodeId) -> Response:
    """Add a node, or change the given fields of a stored one and add edges."""
    service, expected = service_of(request), expected_of(request, id)
    change = await change_of(service, [_named(id, body)])
    return await make(request, change, expected)


@writes.patch("/v1/nodes/{id:node}", response_model=schemas.Changed)
async def patch_node(request: Request, body: schemas.NodeBody, id: NodeId) -> Response:
    """Change the given fields of a stored node and add edges; 404 if there is no such node."""
    service, expected = service_of(request), expected_of(request, id)
    change = await change_of(service, [_named(id, body)])
    try:
        return await make(request, change, expected or Expected(id, exists=True))
    except NodeStateError:
        if expected is None:
            raise Problem(404, "there is no such node") from None
        raise


def _named(id: str, body: schemas.NodeBody) -> schemas.StoredNode:
    if not 0 < len(id) <= LONGEST_ID:
        raise Problem(422, f"an id has 1 to {LONGEST_ID} characters")
    return schemas.StoredNode(id=id, **dict(body))


async def change_of(service: Service, stored: Sequence[schemas.StoredNode]) -> Change:
    """The change that stores nodes with their edges."""
    _check_edges(service, stored)
    try:
        features = await run_in_threadpool(
            service.model.rows.features, [n.attributes for n in stored], [n.features for n in stored]
        )
    except RowError as error:
        raise Problem(422, f"nodes[{error.row}]: {error}") from None
    nodes = [
        NodeChange(n.id, x, n.attributes, _label_numbers(service, n.label, place))
        for place, (n, x) in enumerate(zip(stored, features, strict=True))
    ]
    return Change(tuple(nodes), tuple((other, n.id) for n in stored for other in n.edges))


@writes.put("/v1/edges", response_model=schemas.Changed)
async def put_edges(request: Request, body: schemas.PutEdges) -> Response:
    """Add edges between stored nodes; existing edges stay. All or none."""
    refuse_conditions(request)
    return await make(request, Change(edges=tuple((e.source, e.target) for e in body.edges)))


@writes.delete("/v1/edges", response_model=schemas.Changed)
async def delete_edge(request: Request, source: End, target: End) -> Response:
    """Delete an edge; a missing edge is no error."""
    refuse_conditions(request)
    return await make(request, Change(removed_edges=((source, target),)))


@writes.delete("/v1/nodes/{id:node}", response_model=schemas.Changed)
async def delete_node(request: Request, id: NodeId) -> Response:
    """Delete a node and all its edges."""
    return await make(request, Change(removed_nodes=(id,)), expected_of(request, id))


def _label_numbers(service: Service, label: str | list[str] | None, place: int) -> int | tuple[int, ...] | None:
    if label is None:
        return None
    names, many = service.live.classes
    try:
        numbers = tuple(names.index(name) for name in ([label] if isinstance(label, str) else label))
    except ValueError:
        raise Problem(422, f"nodes[{place}].label is not a class of the graph") from None
    return numbers if many else numbers[0] if len(numbers) == 1 else numbers


@admin.get("/healthz", response_model=schemas.Health)
async def healthz() -> Response:
    """Whether the process answers."""
    return json_response({"status": "ok"})


@admin.get("/readyz", response_model=schemas.Health, responses={503: {"model": schemas.Health}})
async def readyz(request: Request) -> Response:
    """Whether the search index and the map are built."""
    service = service_of(request)
    ready = service.updater.index is not None
    status = {"status": "ready" if ready else f"the search index {service.updater.missing}"}
    if service.scrubber.damage:
        status["trouble"] = "files of the live graph are damaged; see the log"
    elif service.updater.trouble:
        status["trouble"] = "background work fails; see the log"
    return json_response(status, 200 if ready else 503)


@admin.get("/metrics", response_class=PlainTextResponse)
async def metrics(request: Request) -> Response:
    """Metrics in Prometheus format."""
    service = service_of(request)
    gate = request.app.state.gate
    service.metrics.waiting.set(gate.waiting)
    service.metrics.keys_refused.set(gate.keys.refused)
    await run_in_threadpool(service.refresh_gauges)
    return Response(service.metrics.page(), media_type="text/plain; version=0.0.4")


@admin.get("/v1/model", response_model=schemas.ModelAnswer)
async def model(request: Request) -> Response:
    """The model in service, the columns it reads and the classes it predicts."""
    service = service_of(request)
    loaded = service.model
    content = {
        "model": loaded.version,
        "graph": graph_version(service.live.version),
        **loaded.about,
        "columns": list(loaded.rows.columns),
        "features": loaded.rows.width,
        "classes": list(loaded.classes),
        "targets": list(loaded.targets),
        "multilabel": loaded.multilabel,
    }
    return json_response(content)


@admin.get("/v1/stats", response_model=schemas.Stats)
async def stats(request: Request) -> Response:
    """Counters for the map page."""
    service = service_of(request)
    rate, p99 = service.metrics.recent()
    index = service.updater.index
    content = {
        "nodes": service.live.num_nodes,
        "graph": graph_version(service.live.version),
        "requests_per_second": rate,
        "p99_ms": p99,
        "recall": None if index is None else index.recall,
        "model": service.model.version,
    }
    return json_response(content)


@admin.get("/v1/map", response_class=Response, responses=_PACKED)
async def map_points(request: Request) -> Response:
    """All points of the map, packed; see docs/serving.md for the layout."""
    updater = service_of(request).updater
    drawn = updater.map
    if drawn is None:
        raise retry(503, f"the map {updater.missing}")
    return Response(
        await run_in_threadpool(drawn.packed),
        media_type="application/octet-stream",
        headers={"X-Map-Epoch": str(drawn.epoch)},
    )


@admin.get("/v1/map/changes", response_model=schemas.MapChanges)
async def map_changes(request: Request, since: Annotated[int, Query(ge=0, le=2**53)] = 0) -> Response:
    """Points that were added, moved or deleted after change number `since`."""
    updater = service_of(request).updater
    drawn = updater.map
    if drawn is None:
        raise retry(503, f"the map {updater.missing}")
    facts = {"classes": list(drawn.classes), "method": drawn.method, "coming": drawn.coming}
    return json_response({**drawn.since(since), **facts})


@admin.get("/v1/map/attributes", response_model=schemas.MapAttributes)
async def map_attributes(request: Request) -> Response:
    """Attributes that the map's points can be colored by."""
    types = await run_in_threadpool(lambda: offered(service_of(request).live.frozen()[0]))
    shown = {name: "number" if type == "degree" else type for name, type in types.items()}
    return json_response({"attributes": [{"name": name, "type": type} for name, type in shown.items()]})


@admin.get("/v1/map/values", response_model=schemas.MapValues)
async def map_values(request: Request, attribute: Annotated[str, Query(max_length=512)]) -> Response:
    """One value per node of an attribute that points can be colored by."""
    live = service_of(request).live
    if live.num_nodes > COLORED_NODES:
        raise Problem(422, f"points are colored by attributes up to {COLORED_NODES:,} nodes")
    found = await run_in_threadpool(lambda: values_of(live.frozen()[0], attribute))
    if found is None:
        raise Problem(404, "points cannot be colored by this attribute")
    return json_response(found)


@admin.get("/v1/map/find", response_model=schemas.MapFound)
async def map_find(
    request: Request,
    text: Annotated[str, Query(min_length=1, max_length=200)],
    k: Annotated[int, Query(ge=1, le=100)] = 12,
) -> Response:
    """Nodes whose attributes contain a text."""
    live = service_of(request).live
    return json_response(await run_in_threadpool(lambda: containing(live.frozen()[0], text, k)))


@admin.post("/v1/admin/reload", response_model=schemas.Reloaded)
async def reload(request: Request) -> Response:
    """Load the run's folder again. A bad model is refused, and the present one stays in service."""
    try:
        fresh = await run_in_threadpool(service_of(request).reload)
    except (GraphSageError, OSError) as error:
        _log.warning("the model in the run's folder is refused: %s", error)
        raise Problem(409, f"the model in the run's folder is refused: {type(error).__name__}; see the log") from error
    seen_of(request.scope).facts["model"] = fresh.version
    return json_response({"model": fresh.version})


@admin.post("/v1/admin/compact", response_model=schemas.Changed)
async def compact(request: Request) -> Response:
    """Write the next generation of the live graph now."""
    service = service_of(request)
    version = await run_in_threadpool(service.live.compact)
    seen_of(request.scope).facts |= graph_version(version)
    return changed(service.model, version)


@admin.post("/v1/admin/backup", response_model=schemas.Changed)
async def backup(request: Request, body: schemas.BackupRequest) -> Response:
    """Copy the live graph as it is now into a folder next to it, without stopping the service."""
    service = service_of(request)
    target = service.backups / body.name
    if target.exists():
        raise Problem(409, "a backup of that name exists")
    facts = seen_of(request.scope).facts
    facts["backup"] = body.name
    version = await run_in_threadpool(service.live.backup, target)
    facts |= graph_version(version)
    return changed(service.model, version)

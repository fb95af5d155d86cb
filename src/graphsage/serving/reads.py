"""Routes that change nothing: embed, predict, search, look at a node."""

import asyncio
import time
from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from graphsage.live.store import LiveGraph
from graphsage.serving import schemas
from graphsage.serving.answers import json_response, stamp, vectors
from graphsage.serving.batcher import Answer, Job, NewNode
from graphsage.serving.json_route import LeanRoute
from graphsage.serving.problem import Problem, retry
from graphsage.serving.served_model import Loaded
from graphsage.serving.service import Service

router = APIRouter(tags=["read"], route_class=LeanRoute)
NodeId = Annotated[str, Path(min_length=1, max_length=512)]


def service_of(request: Request) -> Service:
    service: Service = request.app.state.service
    return service


async def compute(
    service: Service,
    ids: Sequence[str],
    nodes: Sequence[schemas.NewNode],
    predict: bool = False,
    model: Loaded | None = None,
) -> Answer:
    total = len(ids) + len(nodes)
    if not total:
        raise Problem(422, "give ids, nodes or both")
    if total > service.settings.max_nodes:
        raise Problem(422, f"a request may have {service.settings.max_nodes} nodes")
    sent = [NewNode(n.id, n.attributes, n.features, n.edges) for n in nodes]
    deadline = time.monotonic() + service.settings.deadline
    future = asyncio.wrap_future(service.batcher.submit(Job(ids, sent, deadline, predict, model)))
    try:
        async with asyncio.timeout(service.settings.deadline + 1):
            return await future
    except TimeoutError:
        raise retry(503, "the request took longer than its deadline") from None


@router.post("/v1/embed", response_model=schemas.Embeddings)
async def embed(request: Request, asked: schemas.EmbedRequest) -> Response:
    """Embeddings of known nodes and of nodes sent along."""
    answer = await compute(service_of(request), asked.ids, asked.nodes)
    names = [*asked.ids, *(node.id for node in asked.nodes)]
    rows = vectors(answer.z, asked.encoding)
    results = [{"id": name, "embedding": row} for name, row in zip(names, rows, strict=True)]
    return json_response({**stamp(answer), "dim": answer.model.dim, "results": results})


@router.post("/v1/predict", response_model=schemas.Predictions)
async def predict(request: Request, asked: schemas.PredictRequest) -> Response:
    """Classes (or labels) with probabilities, of known nodes and of nodes sent along."""
    service = service_of(request)
    if not service.model.classes:
        raise Problem(409, "the model was trained without labels and predicts nothing")
    answer = await compute(service, asked.ids, asked.nodes, predict=True)
    if answer.probabilities is None:
        raise retry(503, "the model was just exchanged; ask again")
    names = [*asked.ids, *(node.id for node in asked.nodes)]
    results = [{"id": name, **answer.model.prediction(p)} for name, p in zip(names, answer.probabilities, strict=True)]
    return json_response({**stamp(answer), "results": results})


@router.post("/v1/search", response_model=schemas.SearchAnswer)
async def search(request: Request, asked: schemas.SearchRequest) -> Response:
    """The nodes whose embeddings are closest (cosine) to that of a node."""
    service = service_of(request)
    if (asked.id is None) == (asked.node is None):
        raise Problem(422, "give either id or node")
    index, model = service.follower.index, service.follower.of
    if index is None or model is None:
        raise retry(503, "the search index is being built")
    nodes = [] if asked.node is None else [asked.node]
    answer = await compute(service, [] if asked.id is None else [asked.id], nodes, model=model)
    found = await run_in_threadpool(index.search, answer.z[0].numpy(), asked.k, asked.id)
    results = [{"id": name, "cosine": cosine} for name, cosine in found]
    return json_response({**stamp(answer), "recall": index.recall, "results": results})


@router.get("/v1/nodes/{id:path}", response_model=schemas.NodeAnswer)
async def node(request: Request, id: NodeId, neighbors: Annotated[int, Query(ge=0, le=1000)] = 50) -> Response:
    """Attributes, neighbors and prediction of a node."""
    service = service_of(request)
    answer = await compute(service, [id], [], predict=bool(service.model.classes))
    said = await run_in_threadpool(_described, service.live, id, neighbors, answer.model)
    p = None if answer.probabilities is None else answer.model.prediction(answer.probabilities[0])
    return json_response({**stamp(answer), **said, "prediction": p})


def _described(live: LiveGraph, id: str, neighbors: int, model: Loaded) -> dict[str, Any]:
    with live.reading() as (overlay, _):
        row = overlay.find(id)
        if row is None:
            raise Problem(404, "there is no such node")
        around = overlay.adjacency.neighbors(row)
        return {
            "id": id,
            "attributes": overlay.attributes_of(row),
            "label": _label(overlay.label_of(row), model, overlay.base.graph.class_names),
            "degree": len(around),
            "neighbors": [overlay.id_of(other) for other in around[:neighbors].tolist()],
        }


def _label(label: int | tuple[int, ...] | None, model: Loaded, names: tuple[str, ...] | None) -> str | list[str] | None:
    known = names or model.classes
    if label is None:
        return None
    if isinstance(label, tuple):
        return [known[c] if c < len(known) else str(c) for c in label]
    return known[label] if label < len(known) else str(label)

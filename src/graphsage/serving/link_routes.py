"""Routes of a model that was trained for links: the likeliest links of a node, and scores of pairs."""

from functools import partial
from typing import Any

import torch
from fastapi import APIRouter, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from graphsage.errors import setting
from graphsage.inference.embed import prepare
from graphsage.inference.links import WithoutEdge
from graphsage.inference.nearest import Vectors
from graphsage.kernels.rows import scaled_rows
from graphsage.live.overlay import Overlay
from graphsage.live.overlay_view import OverlayView, Target
from graphsage.live.store import LiveGraph
from graphsage.model.links import LinkHead
from graphsage.serving import schemas
from graphsage.serving.answers import JsonRoute, Problem, graph_version, json_response, stamp
from graphsage.serving.index import SearchIndex
from graphsage.serving.routes import compute, searched, sender_of, service_of
from graphsage.serving.served_model import ServedModel
from graphsage.serving.service import Service

links = APIRouter(tags=["read"], route_class=JsonRoute)


def _head(model: ServedModel) -> LinkHead:
    if model.links is None:
        raise Problem(409, f"the model was not trained for links ({setting('task', 'links')})")
    return model.links


@links.post("/v1/recommend", response_model=schemas.Recommendations)
async def recommend(request: Request, body: schemas.RecommendRequest) -> Response:
    """The nodes that a node is most likely linked to, without those that it is linked to already."""
    service = service_of(request)
    index, model = searched(service, body)
    head = _head(model)
    if not model.about["recommends"] or service.live.direction != "merged":
        raise Problem(
            409,
            f"the service recommends links without direction, by a model with {setting('decoder', 'dot')} or bilinear, "
            "normalized embeddings, no popularity, no network of features, no table of pairs; use graphsage recommend",
        )
    nodes = [] if body.node is None else [body.node]
    asked = [] if body.id is None else [body.id]
    look, sender = partial(_linked, id=body.id), sender_of(request)
    answer = await compute(service, asked, nodes, model=model, look=look, sender=sender)
    known = set(answer.seen if body.node is None else body.node.edges)
    query = _query(head, answer.z[:, : model.encoder.encoder.config.dim])
    found = await run_in_threadpool(_unlinked, service.live, index, query, body.k, body.id, known)
    results = [{"id": name, "score": score} for name, score in found]
    return json_response({**stamp(answer), "recall": index.recall, "results": results})


def _linked(overlay: Overlay, model: ServedModel, id: str | None) -> list[str]:
    row = None if id is None else overlay.find(id)
    return [] if row is None else [overlay.id_of(other) for other in overlay.adjacency.neighbors(row).tolist()]


@torch.no_grad()
def _query(head: LinkHead, z: torch.Tensor) -> Vectors:
    made: Vectors = head.queries(z)[0].numpy()
    return made


def _unlinked(
    live: LiveGraph, index: SearchIndex, query: Vectors, k: int, without: str | None, known: set[str]
) -> list[tuple[str, float]]:
    """The score is the product with a vector of length 1. The index learns of deletions a moment later."""
    asked, length = k + len(known), float((query**2).sum() ** 0.5)
    while True:
        found = index.search(query, asked, without)
        with live.reading() as (overlay, _):
            good = [(id, c * length) for id, c in found if id not in known and overlay.find(id) is not None]
        if len(good) >= k or len(found) < asked:
            return good[:k]
        asked *= 2


@links.post("/v1/score", response_model=schemas.Scores)
async def score(request: Request, body: schemas.ScoreRequest) -> Response:
    """Scores of links between stored nodes, the higher the more likely; all or none. A pair is scored as if it were not
    linked, in either direction."""
    service = service_of(request)
    model = service.model
    head = _head(model)
    if service.live.direction == "out" and head.popularity is not None:
        how = setting("direction", "out")
        raise Problem(409, f"a graph of {how} does not list the links to a node; use graphsage score")
    if model.of_table and head.popularity is not None:
        raise Problem(
            409, "the model counts the links of its table of pairs, which the service lacks; use graphsage score"
        )
    if model.encoder.inference != "exact":
        how = setting("inference", "sampled")
        raise Problem(409, f"pairs are scored by exact inference; serve without {how}")
    return json_response(await run_in_threadpool(_scores, service, model, body.pairs))


def _scores(service: Service, model: ServedModel, pairs: list[schemas.Edge]) -> dict[str, Any]:
    version, results = None, []
    for place, pair in enumerate(pairs):
        if pair.source == pair.target:
            raise Problem(422, f"pairs[{place}] joins a node with itself, which is no link")
        with service.live.reading() as (overlay, now):
            version = now if version is None else version
            rows = {end: overlay.find(getattr(pair, end)) for end in ("source", "target")}
            for end, row in rows.items():
                if row is None:
                    raise Problem(404, f"pairs[{place}].{end} is not in the graph")
            made = _read(model, overlay, int(rows["source"] or 0), int(rows["target"] or 0))
        results.append({"source": pair.source, "target": pair.target, "score": made()})
    assert version is not None
    return {"model": model.version, "graph": graph_version(version), "results": results}


@torch.no_grad()
def _read(model: ServedModel, overlay: Overlay, source: int, target: int) -> Any:
    """Read the inputs of a pair; what is returned computes its score."""
    live, head = model.encoder, _head(model)
    view = OverlayView([Target(overlay, row) for row in (source, target)], live.structure, live.by_key)
    a, b = view.targets.tolist()
    nodes = view.targets if head.tower is None else view.targets[1:]
    embed = prepare(live.fast, WithoutEdge(view, a, b), nodes, None, live.seed)
    known = overlay.adjacency.neighbors(target)
    count = torch.tensor([int(((known != source) & (known != target)).sum())])
    x = None
    if head.tower is not None:
        x = scaled_rows(*view.tables_of(view.targets[:1]), live.encoder.shift, live.encoder.scale)

    @torch.no_grad()
    def made() -> float:
        z = embed()
        u = z[:1] if x is None else head.sources(x)
        return float(head.paired(u, z[-1:], count))

    return made

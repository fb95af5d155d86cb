"""Routes about the service itself: health, metrics, the model, the map, and what an administrator does."""

import logging
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from graphsage.errors import GraphSageError
from graphsage.serving import schemas
from graphsage.serving.answers import changed, graph_version, json_response
from graphsage.serving.json_route import LeanRoute
from graphsage.serving.problem import Problem, retry
from graphsage.serving.reads import service_of

router = APIRouter(tags=["service"], route_class=LeanRoute)
_log = logging.getLogger("graphsage.serving")


@router.get("/healthz")
async def healthz() -> dict[str, str]:
    """The process answers."""
    return {"status": "ok"}


@router.get("/readyz")
async def readyz(request: Request) -> Response:
    """The search index and the map are built too."""
    service = service_of(request)
    ready = service.follower.index is not None
    said = {"status": "ready" if ready else "building the search index"}
    if service.follower.trouble:
        said["trouble"] = "background work fails; see the log"
    return json_response(said, 200 if ready else 503)


@router.get("/metrics")
async def metrics(request: Request) -> Response:
    """Prometheus."""
    service = service_of(request)
    service.metrics.waiting.set(request.app.state.gate.waiting)
    await run_in_threadpool(service.refresh_gauges)
    return Response(service.metrics.page(), media_type="text/plain; version=0.0.4")


@router.get("/v1/model")
async def model(request: Request) -> dict[str, Any]:
    """What model serves, what it reads and what it predicts."""
    service = service_of(request)
    loaded = service.model
    return {
        "model": loaded.version,
        "graph": graph_version(service.live.version),
        **loaded.about,
        "columns": list(loaded.rows.columns),
        "features": loaded.rows.width,
        "classes": list(loaded.classes),
        "multilabel": loaded.multilabel,
    }


@router.get("/v1/stats")
async def stats(request: Request) -> dict[str, Any]:
    """Counters for the map page."""
    service = service_of(request)
    rate, p99 = service.metrics.recent()
    index = service.follower.index
    return {
        "nodes": service.live.num_nodes,
        "graph": graph_version(service.live.version),
        "requests_per_second": rate,
        "p99_ms": p99,
        "recall": None if index is None else index.recall,
        "model": service.model.version,
    }


@router.get("/v1/map")
async def map_points(request: Request) -> Response:
    """All points of the map, packed; see docs/serving.md for the layout."""
    drawn = service_of(request).follower.map
    if drawn is None:
        raise retry(503, "the map is being drawn")
    return Response(
        await run_in_threadpool(drawn.packed),
        media_type="application/octet-stream",
        headers={"X-Map-Epoch": str(drawn.epoch)},
    )


@router.get("/v1/map/changes")
async def map_changes(request: Request, since: Annotated[int, Query(ge=0, le=2**53)] = 0) -> dict[str, Any]:
    """Points that came, moved or went after the change of that number."""
    drawn = service_of(request).follower.map
    if drawn is None:
        raise retry(503, "the map is being drawn")
    return {**drawn.since(since), "classes": list(drawn.classes), "method": drawn.method}


@router.post("/v1/admin/reload")
async def reload(request: Request) -> dict[str, str]:
    """Load the run's folder again. A bad model is refused, and the one in service stays."""
    try:
        fresh = await run_in_threadpool(service_of(request).reload)
    except (GraphSageError, OSError) as error:
        _log.warning("the model in the run's folder is refused: %s", error)
        raise Problem(409, f"the model in the run's folder is refused: {type(error).__name__}; see the log") from error
    return {"model": fresh.version}


@router.post("/v1/admin/compact", response_model=schemas.Changed)
async def compact(request: Request) -> Response:
    """Write the next generation now."""
    service = service_of(request)
    return changed(service.model, await run_in_threadpool(service.live.compact))


@router.post("/v1/admin/backup", response_model=schemas.Changed)
async def backup(request: Request, asked: schemas.BackupRequest) -> Response:
    """Copy the live graph as it is now into a folder beside it, while everything goes on."""
    service = service_of(request)
    folder = service.live.folder
    target = folder.parent / f"{folder.name}-backups" / asked.name
    if target.exists():
        raise Problem(409, "there is a backup of that name")
    return changed(service.model, await run_in_threadpool(service.live.backup, target))

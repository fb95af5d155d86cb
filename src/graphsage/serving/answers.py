"""Answers: made of results, written as JSON once."""

import base64
from typing import Any

import numpy as np
from pydantic_core import to_json
from starlette.responses import Response
from torch import Tensor

from graphsage.live.store import Version
from graphsage.serving.batcher import Answer
from graphsage.serving.served_model import Loaded


def json_response(content: Any, status: int = 200) -> Response:
    return Response(to_json(content), status, media_type="application/json")


def graph_version(version: Version) -> dict[str, int]:
    return {"generation": version.generation, "sequence": version.sequence}


def stamp(answer: Answer) -> dict[str, Any]:
    """Which model and graph an answer is about."""
    return {"model": answer.model.version, "graph": graph_version(answer.version)}


def changed(model: Loaded, version: Version) -> Response:
    return json_response({"model": model.version, "graph": graph_version(version)})


def vectors(z: Tensor, encoding: str) -> list[list[float]] | list[str]:
    """The rows of `z`."""
    if encoding == "base64":
        rows = z.numpy().astype(np.dtype("<f4"), copy=False)
        return [base64.b64encode(row.tobytes()).decode("ascii") for row in rows]
    numbers: list[list[float]] = z.tolist()
    return numbers

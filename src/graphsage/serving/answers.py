"""Answers: made of results, written as JSON once."""

import base64
from typing import Any

import numpy as np
from pydantic_core import to_json
from starlette.responses import Response
from torch import Tensor

from graphsage.live.store import Version
from graphsage.serving.batcher import Answer


def json_response(content: Any, status: int = 200) -> Response:
    return Response(to_json(content), status, media_type="application/json")


def graph_version(version: Version) -> dict[str, int]:
    return {"generation": version.generation, "sequence": version.sequence}


def stamp(answer: Answer) -> dict[str, Any]:
    """Which model and graph an answer is about."""
    return {"model": answer.model.version, "graph": graph_version(answer.version)}


def vector(z: Tensor, encoding: str) -> list[float] | str:
    if encoding == "base64":
        return base64.b64encode(z.numpy().astype(np.dtype("<f4"), copy=False).tobytes()).decode("ascii")
    numbers: list[float] = z.tolist()
    return numbers

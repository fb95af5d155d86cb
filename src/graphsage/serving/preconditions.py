"""ETags of nodes, and the headers If-Match and If-None-Match (RFC 9110).

A tag has two parts: the node's own state, and a digest of the answer without the graph's version, which also changes
with the model and with nodes nearby. If-None-Match of a read compares both, so an old prediction is never taken for
present. If-Match of a change compares the state, so changes of other nodes do not make it fail.
"""

import re
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

from fastapi import Request
from pydantic_core import to_json

from graphsage.live.node_state import Expected
from graphsage.serving.answers import Problem

_TAG = re.compile(r'(W/)?"([!#-~\x80-\xff]*)"')


def etag(state: str, answer: Mapping[str, Any] | None = None) -> str:
    """The tag of a node. Without `answer`, the tag is good for If-Match only: it is that of no read."""
    rest = {} if answer is None else {name: value for name, value in answer.items() if name != "graph"}
    return f'"{state}.{blake2b(to_json(rest), digest_size=8).hexdigest()}"'


def is_known(request: Request, tag: str) -> bool:
    """Whether the client of a read has the answer with `tag` already."""
    given = request.headers.get("if-none-match")
    return given is not None and (given.strip() == "*" or tag in {f'"{each}"' for _, each in _tags(given)})


def expected_of(request: Request, id: str) -> Expected | None:
    """What a change expects of a node by its headers; None if it has none."""
    match, none = _header(request, "if-match"), _header(request, "if-none-match")
    if match is not None and none is not None:
        raise Problem(400, "send If-Match or If-None-Match, not both")
    if none is not None:
        if none != "*":
            raise Problem(400, "If-None-Match of a change must be *")
        return Expected(id, exists=False)
    if match is None:
        return None
    if match == "*":
        return Expected(id, exists=True)
    return Expected(id, states=frozenset(tag.partition(".")[0] for weak, tag in _tags(match) if not weak))


def refuse_conditions(request: Request) -> None:
    """Refuse conditions where none are checked."""
    if {"if-match", "if-none-match"} & {*request.headers}:
        raise Problem(400, "If-Match and If-None-Match work for one node, at /v1/nodes/{id}")


def _header(request: Request, name: str) -> str | None:
    lines = request.headers.getlist(name)
    return ", ".join(lines).strip() if lines else None


def _tags(value: str) -> list[tuple[str, str]]:
    """Whether each tag of a header is weak, and its content."""
    rest = _TAG.sub("", value)
    if rest.strip(", \t") or not value.strip():
        raise Problem(400, 'If-Match and If-None-Match take * or a list of tags, "..."')
    return _TAG.findall(value)

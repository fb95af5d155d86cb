"""What the map page asks of the nodes' attributes: values to color by, and nodes whose text contains a word."""

import json
import math
import time
from collections.abc import Iterator, Sequence
from datetime import date
from typing import Any

import numpy as np

from graphsage.live.overlay import Overlay

DEGREE = "degree"  # offered beside the attributes
COLORED_NODES = 200_000  # above, no values are sent
SECONDS = 1.0  # that a search in the nodes' texts may take
_SAMPLE = 300  # nodes that decide which attributes are offered
_LONGEST = 60  # characters of a category
_BLOCK = 500  # nodes whose text is scanned without giving other threads a turn
_AROUND = 40  # characters of text before a match


def offered(overlay: Overlay) -> dict[str, str]:
    """Types of the attributes that, by a sample of nodes, are fit for coloring: category, number, date, degree."""
    rows = _present(overlay)
    sample = rows[np.unique(np.linspace(0, max(0, len(rows) - 1), min(_SAMPLE, len(rows))).astype(np.int64))]
    values: dict[str, list[Any]] = {}
    for row in sample.tolist():
        for name, value in overlay.attributes_of(row).items():
            if value is not None:
                values.setdefault(name, []).append(value)
    types = {name: type for name, each in values.items() if (type := _type(each))}
    return types if DEGREE in values else {**types, DEGREE: "degree"}


def _type(values: Sequence[Any]) -> str:
    if all(_number(value) is not None for value in values) and not all(isinstance(value, str) for value in values):
        return "number"
    if not all(isinstance(value, str | bool) and len(str(value)) <= _LONGEST for value in values):
        return ""
    if all(_day(value) is not None for value in values):
        return "date"
    return "category" if len(set(values)) <= max(12, len(values) // 2) else ""


def values_of(overlay: Overlay, name: str) -> dict[str, Any] | None:
    """The ids of all nodes and one value each, None where it is unknown; None for an attribute that is not offered.
    Values of a category are numbers of its `names`, dates are days since 1970."""
    type = offered(overlay).get(name)
    if type is None:
        return None
    rows = _present(overlay).tolist()
    answer: dict[str, Any] = {"attribute": name, "type": type, "ids": [overlay.id_of(row) for row in rows]}
    if type == "degree":
        return answer | {"type": "number", "values": [len(overlay.adjacency.neighbors(row)) for row in rows]}
    given = [overlay.attributes_of(row).get(name) for row in rows]
    if type == "number":
        return answer | {"values": [_number(v) for v in given]}
    if type == "date":
        return answer | {"values": [_day(v) for v in given]}
    texts = [str(v) if isinstance(v, str | bool) else None for v in given]
    names = sorted({text for text in texts if text is not None})
    number = {text: i for i, text in enumerate(names)}
    return answer | {"names": names, "values": [None if text is None else number[text] for text in texts]}


def _number(value: Any) -> float | None:
    """A number, also one that a form sent as text."""
    try:
        number = float(value) if isinstance(value, int | float | str) and not isinstance(value, bool) else math.nan
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _day(value: Any) -> int | None:
    try:
        return (date.fromisoformat(value) - date(1970, 1, 1)).days if isinstance(value, str) else None
    except ValueError:
        return None


def _present(overlay: Overlay) -> Any:
    rows = np.arange(overlay.num_rows)
    return rows[~np.isin(rows, list(overlay.gone))] if overlay.gone else rows


def containing(overlay: Overlay, text: str, most: int, seconds: float = SECONDS) -> dict[str, Any]:
    """Up to `most` nodes with `text` in one of their attributes, in any case, and the text around it; early matches
    first. `complete` is false if the time was over before all nodes were read."""
    wanted, end = text.lower(), time.monotonic() + seconds
    found: list[tuple[int, int, str]] = []
    complete = True
    for row in _candidates(overlay, wanted):
        if row is None:
            if time.monotonic() > end:
                complete = False
                break
            continue
        for value in overlay.attributes_of(row).values():
            at = value.lower().find(wanted) if isinstance(value, str) else -1
            if at >= 0:
                start = max(0, at - _AROUND)
                around = ("… " if start else "") + value[start : at + len(text) + 3 * _AROUND]
                found.append((at, row, around))
                break
    results = [{"id": overlay.id_of(row), "text": around} for _, row, around in sorted(found)[:most]]
    return {"results": results, "matches": len(found), "complete": complete}


def _candidates(overlay: Overlay, wanted: str) -> Iterator[int | None]:
    """Rows whose attributes may contain `wanted`: the changed ones, then those of the generation by their JSON text;
    None after each block of rows."""
    yield from overlay.attributes
    base = overlay.base
    needle = json.dumps(wanted)[1:-1].encode()
    plain = wanted.isascii()  # other letters are escaped in the stored text, where case cannot be ignored
    for start in range(0, base.num_nodes, _BLOCK):
        for row, stored in enumerate(base.attribute_texts(start, min(start + _BLOCK, base.num_nodes)), start):
            fits = stored and (not plain or needle in stored.lower())
            if fits and row not in overlay.gone and row not in overlay.attributes:
                yield row
        yield None

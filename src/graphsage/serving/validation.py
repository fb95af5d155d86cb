"""What is wrong with a request, said without repeating it."""

from collections.abc import Sequence
from typing import Any

from graphsage.live.change import LARGEST_ATTRIBUTES
from graphsage.serving import schemas

_FIELDS = {
    "body",
    "query",
    "path",
    "neighbors",
    "since",
    "limit",
    "cursor",
    "prefix",
    "attributes",
    "features",
    "attribute",
    "text",
    "k",
}.union(
    *(
        each.model_fields
        for each in vars(schemas).values()
        if isinstance(each, type) and issubclass(each, schemas.Strict)
    )
)
_RULES = {
    "missing": "is missing",
    "extra_forbidden": "has a field that is not known",
    "json_invalid": "is not JSON",
    "finite_number": "must be finite",
    "too_long": "is too long",
    "string_too_long": "is too long",
    "too_large": f"has more than {LARGEST_ATTRIBUTES:,} bytes as JSON",
    "too_short": "is too short",
    "string_too_short": "is too short",
}


def faults(errors: Sequence[Any]) -> str:
    """The first faults of a request."""
    return "; ".join(map(_fault, errors[:3]))


def _fault(error: Any) -> str:
    """The faulty field and the rule it breaks. Unknown field names are input, so they are left out."""
    known = [f"[{part}]" if isinstance(part, int) else part for part in error["loc"]]
    if error["type"] == "json_invalid" or (error["type"] == "extra_forbidden" and known[0] == "body"):
        known = known[:1]
    path = ".".join(part for part in known if part in _FIELDS or part.startswith("["))
    rule = _RULES.get(error["type"], "is of the wrong type or out of range")
    return f"{path.replace('.[', '[') or 'the line'} {rule}"

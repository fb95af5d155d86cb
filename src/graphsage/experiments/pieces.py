"""Results that are made in pieces: what an earlier piece wrote stays, where it belongs to the same table."""

import json
from collections.abc import Callable, Hashable
from typing import Any

Record = dict[str, Any]


def joined(earlier: Record | None, body: Record, part: str, key: Callable[[Record], Hashable]) -> Record:
    """`body` with those rows of `body[part]` that an earlier piece made and this one did not, told apart by `key`.

    Rows of another profile, of other settings or an older version of the code, or of other data under the same name
    are not put beside these.
    """
    if earlier is None or any(
        earlier.get(name) != _plain(body.get(name)) for name in ("profile", "version", "settings")
    ):
        return body
    data: Record = earlier["data"]
    same = {name for name in data if data[name]["digest"] == body["data"].get(name, data[name])["digest"]}
    made = {key(row) for row in body[part]}
    kept = [row for row in earlier[part] if row["data"] in same and key(row) not in made]
    machines = earlier["trials_on"] if kept else []
    return {**body, "data": {name: data[name] for name in data if name in same} | body["data"],
            part: kept + body[part], "trials_on": machines}  # fmt: skip


def _plain(value: Any) -> Any:
    """As it is read back: JSON has no tuples."""
    return json.loads(json.dumps(value))

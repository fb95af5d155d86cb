"""Pages of nodes in an order that writes, compaction and restarts do not change: by key, then by id.

A node that exists during the whole walk is listed exactly once. A node added or deleted meanwhile may be listed.
"""

from dataclasses import dataclass

from graphsage.graph.ids import node_key
from graphsage.live.overlay import Overlay

_SCANNED = 5_000  # nodes that a page with a prefix looks at


@dataclass(frozen=True)
class Page:
    """Rows of nodes. `last` is the id of the last node looked at, the next page begins after it; None at the end."""

    rows: list[int]
    last: str | None


def page_of(overlay: Overlay, after: str | None, limit: int, prefix: str = "") -> Page:
    """The first `limit` nodes after the node `after`, which need not exist any more. With `prefix`, a page looks at a
    bounded number of nodes and may be empty before the end."""
    start = None if after is None else (node_key(after), after)
    rows, more = _candidates(overlay, None if start is None else start[0], _SCANNED if prefix else limit + 8)
    found: list[int] = []
    last = after
    for key, id, row in rows:
        if start is not None and (key, id) <= start:
            continue
        last = id
        if row not in overlay.gone and id.startswith(prefix):
            found.append(row)
            if len(found) == limit:
                break
    else:
        return Page(found, last if more else None)
    return Page(found, last)


def _candidates(overlay: Overlay, key: int | None, most: int) -> tuple[list[tuple[int, str, int]], bool]:
    """Key, id and row of all nodes from `key` up to the key that about `most` nodes reach, and whether others follow.
    Deleted nodes of the generation are among them."""
    base = overlay.base
    start = 0 if key is None else int(base.sorted_keys.searchsorted(key))
    found = [(int(base.keys[row]), row) for row in base.order[start : start + most].tolist()]
    added = sorted(
        (overlay.keys[row], row)
        for row in overlay.rows.values()
        if row is not None and row >= base.num_nodes and (key is None or overlay.keys[row] >= key)
    )[:most]
    ends = [part[-1][0] for part in (found, added) if len(part) == most]
    end = min(ends, default=None)
    listed = [(key, overlay.id_of(row), row) for key, row in (*found, *added) if end is None or key < end]
    return sorted(listed), end is not None

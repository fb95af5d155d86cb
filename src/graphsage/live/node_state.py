"""The state of a node as a tag, for changes that are made only if the node has not changed meanwhile."""

import json
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np

from graphsage.errors import NodeStateError
from graphsage.live.overlay import Overlay


def node_state(overlay: Overlay, id: str) -> str | None:
    """A digest of a node's attributes, features, label and neighbors; None if the node does not exist.

    It does not depend on rows, so compaction and restarts keep it.
    """
    row = overlay.find(id)
    if row is None:
        return None
    digest = blake2b(id.encode("utf-8", "surrogatepass"), digest_size=16)
    own = [overlay.attributes_of(row), overlay.label_of(row)]
    digest.update(json.dumps(own, sort_keys=True).encode())
    digest.update(overlay.feature_rows(np.array([row])).numpy().tobytes())
    digest.update(np.sort(overlay.adjacency.keys_of(overlay.adjacency.neighbors(row))).tobytes())
    return digest.hexdigest()


@dataclass(eq=False)
class Expected:
    """What must be true of a node when a change is made: whether it exists, and which of `states` it is in; None if
    that does not matter. `state` becomes the node's state right after the change."""

    id: str
    exists: bool | None = None
    states: frozenset[str] | None = None
    state: str | None = None

    def check(self, overlay: Overlay) -> None:
        there = overlay.find(self.id) is not None
        if self.exists is not None and there != self.exists:
            raise NodeStateError("the node exists already" if there else "the node does not exist")
        if self.states is not None and node_state(overlay, self.id) not in self.states:
            raise NodeStateError("the node has changed; read it again")

    def note(self, overlay: Overlay) -> None:
        self.state = node_state(overlay, self.id)

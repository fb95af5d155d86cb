"""How a service behaves under load: limits, and what happens in the background."""

import math
from dataclasses import dataclass

from graphsage.errors import ConfigError, at_least, setting


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    max_body: int = 1 << 20
    """Bytes of a request's body."""
    max_nodes: int = 256
    """Nodes, or edges, of one request."""
    max_neighbors: int = 1000
    """Edges of one node that is sent along."""
    max_edges: int = 10_000
    """Edges of all nodes of one request."""
    max_waiting: int = 64
    """Maximum requests in work or in the queue. More are rejected with 429 before their body is read."""
    max_connections: int = 1000
    """Maximum connections. One more closes the one that has been idle longest."""
    head_timeout: float = 10.0
    """Seconds for the head of a request to arrive."""
    deadline: float = 2.0
    """Seconds a request may wait before it is answered with 503, and seconds for its body to arrive."""
    batch: int = 64
    """Nodes of a micro-batch."""
    compact_after: int = 10_000
    """Changes in the journal after which the next generation is written; 0 never writes one."""
    exact_up_to: int = 100_000
    """Nodes up to which the search is exact; above, an HNSW index answers."""
    scrub_rate: float = 4.0
    """Megabytes per second of the stored graph that are checked for damage in the background; 0 checks nothing."""

    def __post_init__(self) -> None:
        at_least(1, self, "max_body", "max_nodes", "max_neighbors", "max_edges")
        at_least(1, self, "max_waiting", "max_connections", "batch", "exact_up_to")
        at_least(0, self, "compact_after", "scrub_rate")
        for name in ("deadline", "head_timeout"):
            if not 0 < getattr(self, name) < math.inf:
                raise ConfigError(f"{setting(name)} must be above 0 seconds and finite; got {getattr(self, name)}")

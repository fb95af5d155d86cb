"""How a service behaves under load: limits, and what happens in the background."""

from dataclasses import dataclass

from graphsage.errors import ConfigError


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    max_body: int = 1 << 20
    """Bytes of a request's body."""
    max_nodes: int = 256
    """Nodes, or edges, of one request."""
    max_neighbors: int = 1000
    """Edges of one node that is sent along."""
    max_waiting: int = 64
    """Maximum requests in work or in the queue. More are rejected with 429 before their body is read."""
    deadline: float = 2.0
    """Seconds a request may wait before it is answered with 503."""
    batch: int = 64
    """Nodes of a micro-batch."""
    compact_after: int = 10_000
    """Changes in the journal after which the next generation is written; 0 never writes one."""
    exact_up_to: int = 100_000
    """Nodes up to which the search is exact; above, an HNSW index answers."""

    def __post_init__(self) -> None:
        for name in ("max_body", "max_nodes", "max_neighbors", "max_waiting", "batch", "exact_up_to"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} must be at least 1; got {getattr(self, name)}")
        if self.deadline <= 0:
            raise ConfigError(f"deadline must be more than 0 seconds; got {self.deadline}")
        if self.compact_after < 0:
            raise ConfigError(f"compact_after must be 0 or more; got {self.compact_after}")

"""Counters of the service, for Prometheus and for the map page."""

import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
_ROUTES = ("embed", "predict", "search", "nodes", "edges", "model", "map", "stats", "admin")


class Metrics:
    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Histogram(
            "graphsage_request_seconds",
            "Time of accepted requests.",
            ["route"],
            buckets=_BUCKETS,
            registry=self.registry,
        )
        self.rejected = Counter("graphsage_rejected", "Requests refused with 429.", registry=self.registry)
        self.embedded = Counter("graphsage_embedded_nodes", "Nodes embedded.", registry=self.registry)
        self.changes = Counter("graphsage_changes", "Changes made to the graph.", registry=self.registry)
        self.batch = Histogram(
            "graphsage_batch_nodes",
            "Nodes of a micro-batch.",
            registry=self.registry,
            buckets=(1, 2, 4, 8, 16, 32, 64, 128, 256),
        )
        self.nodes = Gauge("graphsage_nodes", "Nodes of the graph.", registry=self.registry)
        self.generation = Gauge("graphsage_generation", "Generation of the graph.", registry=self.registry)
        self.sequence = Gauge("graphsage_sequence", "Changes ever made.", registry=self.registry)
        self.journal = Gauge("graphsage_journal_changes", "Changes since the last compaction.", registry=self.registry)
        self.recall = Gauge("graphsage_search_recall", "Share of true neighbors found.", registry=self.registry)
        self.delta = Gauge("graphsage_search_delta", "Nodes searched outside the index.", registry=self.registry)
        self.waiting = Gauge("graphsage_waiting_requests", "Requests in work.", registry=self.registry)
        self._recent: deque[tuple[float, float]] = deque(maxlen=4096)

    @contextmanager
    def timed(self, path: str) -> Iterator[None]:
        began = time.perf_counter()
        try:
            yield
        finally:
            seconds = time.perf_counter() - began
            route = path.removeprefix("/v1/").partition("/")[0]
            self.requests.labels(route if route in _ROUTES else "other").observe(seconds)
            self._recent.append((began + seconds, seconds))

    def recent(self, window: float = 10.0) -> tuple[float, float | None]:
        """Requests per second and the 99th percentile (ms) of the last seconds."""
        now = time.perf_counter()
        times = sorted(seconds for ended, seconds in tuple(self._recent) if now - ended <= window)
        p99 = None if not times else times[min(len(times) - 1, int(0.99 * len(times)))] * 1000
        return len(times) / window, p99

    def page(self) -> bytes:
        return generate_latest(self.registry)

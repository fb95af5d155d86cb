"""Counters of the service, for Prometheus and for the map page."""

import threading
import time
from collections import deque
from pathlib import Path

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    Info,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)

from graphsage.version import __version__

disable_created_metrics()  # type: ignore[no-untyped-call]  # a second series per series, which nothing reads
_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)


class Metrics:
    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "graphsage_requests", "Answered requests.", ["method", "route", "status"], registry=self.registry
        )
        self.seconds = Histogram(
            "graphsage_request_seconds",
            "Time from a request's head to the end of its answer.",
            ["method", "route"],
            buckets=_BUCKETS,
            registry=self.registry,
        )
        self.rejected = Counter(
            "graphsage_rejected",
            "Requests refused at the limit (429), also those never parsed.",
            registry=self.registry,
        )
        self.closed = Counter(
            "graphsage_connections_closed", "Idle connections closed to make room for others.", registry=self.registry
        )
        self.embedded = Counter("graphsage_embedded_nodes", "Nodes embedded.", registry=self.registry)
        self.changes = Counter("graphsage_changes", "Changes made to the graph.", registry=self.registry)
        self.ingested = Counter("graphsage_ingested_lines", "Lines of bulk loads.", ["result"], registry=self.registry)
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
        self.scrubbed = Gauge("graphsage_scrub_bytes", "Bytes checked in this pass.", registry=self.registry)
        self.to_scrub = Gauge("graphsage_scrub_total_bytes", "Bytes of a pass.", registry=self.registry)
        self.scrubs = Gauge("graphsage_scrub_passes", "Passes since the start.", registry=self.registry)
        self.damaged = Gauge("graphsage_damaged_parts", "Damaged blocks and files found.", registry=self.registry)
        self.recall = Gauge("graphsage_search_recall", "Share of true neighbors found.", registry=self.registry)
        self.delta = Gauge("graphsage_search_delta", "Nodes searched outside the index.", registry=self.registry)
        self.waiting = Gauge("graphsage_waiting_requests", "Requests in work.", registry=self.registry)
        self.lost_lines = Counter(
            "graphsage_log_lines_lost", "Lines that a log could not take.", ["log"], registry=self.registry
        )
        self.failing = Gauge(
            "graphsage_background_failing", "1 while work in the background fails.", registry=self.registry
        )
        self.keys_refused = Gauge(
            "graphsage_keys_file_refused", "1 while a changed file of keys cannot be read.", registry=self.registry
        )
        Info("graphsage", "Version of the service.", registry=self.registry).info({"version": __version__})
        ProcessCollector(registry=self.registry)  # memory, processor time, open files; Linux only
        Gauge("process_threads", "Threads of the process.", registry=self.registry).set_function(_num_threads)
        self._series: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}
        self._recent: deque[tuple[float, float]] = deque(maxlen=4096)

    def finished(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count an answered request."""
        series = self._series.get((method, route, status))
        if series is None:  # finding a series by its labels takes longer than counting
            series = self.requests.labels(method, route, str(status)), self.seconds.labels(method, route)
            self._series[method, route, status] = series
        series[0].inc()
        series[1].observe(seconds)
        if route.startswith("/v1/") and status != 429:
            self._recent.append((time.perf_counter(), seconds))

    def recent(self, window: float = 10.0) -> tuple[float, float | None]:
        """Requests per second and the 99th percentile (ms) of the last seconds."""
        now = time.perf_counter()
        times = sorted(seconds for ended, seconds in tuple(self._recent) if now - ended <= window)
        p99 = None if not times else times[min(len(times) - 1, int(0.99 * len(times)))] * 1000
        return len(times) / window, p99

    def page(self) -> bytes:
        return generate_latest(self.registry)


def _num_threads() -> int:
    try:
        return sum(1 for _ in Path("/proc/self/task").iterdir())
    except OSError:  # no Linux: only Python's own threads are known
        return threading.active_count()

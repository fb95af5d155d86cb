"""Measures the planned model on this machine: training steps and exact inference over a small random graph.

A measurement takes a few seconds. It is cached per model, machine and version.
"""

import contextlib
import hashlib
import json
import mmap
import os
import platform
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import torch

from graphsage.atomic import atomic_file, caching
from graphsage.cache_folder import cache_folder
from graphsage.errors import DataError
from graphsage.execution.adam import Adam
from graphsage.execution.step import make_step
from graphsage.graph.external.csr import index_dtype
from graphsage.graph.graph import Graph
from graphsage.inference.embed import embed_exact
from graphsage.training.config import Config
from graphsage.training.train import set_up
from graphsage.version import __version__

MAX_NODES, MAX_FEATURE_BYTES = 1 << 18, 1 << 27  # of the random graph: features exceed the cache
BATCHES = (64, 512)  # two batch sizes separate the cost per step from the cost per target
DEGREES = (2, 32)  # and two degrees the cost per node from the cost per edge
INFERENCE_NODES, INFERENCE_SECONDS = 1024, 1.0  # inference is measured on as many nodes as take this long
FILE_BYTES = 1 << 26
CHUNK_BYTES = 1 << 22
POINTER = torch.int64.itemsize
clock = time.perf_counter  # of training and inference; benchmarks on a busy machine replace it by time.process_time


@dataclass(frozen=True)
class GraphSize:
    nodes: int
    edges: int
    """Stored edges: an undirected edge counts twice."""
    dim: int
    dtype: torch.dtype = torch.float32
    """Of the features."""
    classes: int = 50

    @property
    def row_bytes(self) -> int:
        return self.dim * self.dtype.itemsize

    @property
    def edge_bytes(self) -> int:
        return self.edges * index_dtype(self.nodes).itemsize

    @property
    def folder_bytes(self) -> int:
        """Features, edges, row pointers and labels."""
        return self.nodes * (self.row_bytes + 2 * POINTER) + self.edge_bytes


@dataclass(frozen=True)
class Rates:
    """Of one model on one machine with all its cores."""

    step_seconds: float
    """A training step takes step_seconds + batch size * target_seconds."""
    target_seconds: float
    node_seconds: float
    """Exact inference takes nodes * node_seconds + stored edges * edge_seconds."""
    edge_seconds: float
    disk_bytes: float
    """Bytes per second in sequence."""
    disk_reads: float
    """Reads of one page per second at random positions."""


def rates_of(config: Config, graph: GraphSize, *, again: bool = False) -> Rates:
    """Rates from the cache, or measured if there are none (or `again`)."""
    nodes = min(graph.nodes, MAX_NODES, max(1, MAX_FEATURE_BYTES // graph.row_bytes))
    sample = replace(graph, nodes=nodes, edges=nodes * DEGREES[1])
    model = {**asdict(config.encoder()), "sample_sizes": config.sample_sizes}
    key = {
        "graphsage": __version__,
        "torch": torch.__version__,
        "machine": machine(),
        "model": model,
        "graph": {**asdict(sample), "dtype": str(graph.dtype)},
    }
    digest = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()
    path = cache_folder() / "plan" / f"{digest[:24]}.json"
    if not again:
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):  # absent, or not as this version writes it
            return Rates(**json.loads(path.read_text(encoding="utf-8"))["rates"])
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)  # first: the disk is measured here
    try:
        rates = measure(config, sample)
    except (OSError, RuntimeError, MemoryError) as error:
        raise DataError(f"this machine cannot be measured: {error}") from error
    # Without a writable cache folder, the next plan measures again.
    with caching(path), atomic_file(path) as temporary:
        temporary.write_text(json.dumps({**key, "rates": asdict(rates)}, indent=1) + "\n", encoding="utf-8")
    return rates


def machine() -> dict[str, Any]:
    return {
        "name": platform.node(),
        "processor": platform.machine(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
    }


def measure(config: Config, sample: GraphSize) -> Rates:
    config, graph = replace(config.resolved(), max_degree=None), random_graph(sample, DEGREES[1])
    batches = [min(batch, sample.nodes) for batch in BATCHES]
    steps = [median_seconds(training_step(graph, replace(config, batch_size=batch))) for batch in batches]
    few = replace(sample, nodes=min(INFERENCE_NODES, sample.nodes))
    seconds = median_seconds(inference(random_graph(few, DEGREES[1]), config), 0.0, 1)
    many = replace(sample, nodes=min(sample.nodes, few.nodes * max(1, round(INFERENCE_SECONDS / seconds))))
    passes = [median_seconds(inference(random_graph(many, degree), config), least=2) for degree in DEGREES]
    return Rates(*_line(batches, steps), *_line(DEGREES, [taken / many.nodes for taken in passes]), *_disk_rates())


def random_graph(size: GraphSize, degree: int) -> Graph:
    """Every node has `degree` uniformly random in-neighbors."""
    nodes, generator = size.nodes, torch.Generator().manual_seed(0)
    indices = torch.randint(nodes, (nodes * degree,), generator=generator, dtype=torch.int32)
    rows = torch.randn(min(nodes, 1024), size.dim, generator=generator).to(size.dtype)
    features = rows.repeat(-(-nodes // len(rows)), 1)[:nodes]
    labels, names = torch.arange(nodes) % size.classes, tuple(map(str, range(size.classes)))
    indptr = torch.arange(nodes + 1) * degree
    return Graph(indptr, indices, features=features, labels=labels, class_names=names, direction="in")


def training_step(graph: Graph, config: Config) -> Callable[[], None]:
    run = set_up(graph, None, config, torch.device("cpu"), {})
    step, count = make_step(run.objective, run.module.train(), Adam(run.module, config.lr or 0.01)), iter(range(10**9))
    return lambda: step.run(next(count))


def inference(graph: Graph, config: Config) -> Callable[[], torch.Tensor]:
    encoder = set_up(graph, None, config, torch.device("cpu"), {}).model.encoder
    assert graph.features is not None
    tables = [graph.features]
    return lambda: embed_exact(encoder, graph, tables)


def median_seconds(call: Callable[[], object], seconds: float = 0.2, least: int = 3) -> float:
    """After a first call that does not count, at least `least` calls and as many as take `seconds`."""
    call()
    taken: list[float] = []
    while len(taken) < least or sum(taken) < seconds:
        begin = clock()
        call()
        taken.append(clock() - begin)
    return statistics.median(taken)


def _line(at: Sequence[int], seconds: Sequence[float]) -> tuple[float, float]:
    """Intercept and slope through two points, neither negative."""
    slope = max(0.0, seconds[1] - seconds[0]) / max(at[1] - at[0], 1)
    return max(0.0, seconds[0] - at[0] * slope), slope


def _disk_rates() -> tuple[float, float]:
    """Sequential bytes and random page reads per second, with pages dropped from the page cache before each."""
    folder = cache_folder() if os.access(cache_folder(), os.W_OK) else None
    with tempfile.TemporaryFile(dir=folder) as file:
        for _ in range(FILE_BYTES // CHUNK_BYTES):
            file.write(np.random.default_rng(0).bytes(CHUNK_BYTES))
        file.flush()
        os.fsync(file.fileno())
        _drop_pages(file.fileno())
        file.seek(0)
        begin = time.perf_counter()
        while file.read(CHUNK_BYTES):
            pass
        sequential = FILE_BYTES / (time.perf_counter() - begin)
        _drop_pages(file.fileno())
        with mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as mapped:
            mapped.madvise(mmap.MADV_RANDOM)
            begin, reads, seconds = time.perf_counter(), 0, 0.0
            for page in np.random.default_rng(0).permutation(FILE_BYTES // mmap.PAGESIZE).tolist():
                mapped[page * mmap.PAGESIZE]
                reads, seconds = reads + 1, time.perf_counter() - begin
                if seconds > 0.3:
                    break
    return sequential, reads / seconds


def _drop_pages(descriptor: int) -> None:
    if hasattr(os, "posix_fadvise"):  # not on macOS
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)

"""Estimates time, memory, disk and network of a training epoch and of exact whole-graph inference.

Times scale rates that `plan_rates` measures on one machine. Memory, disk and network follow from array sizes.
"""

import math
import mmap
from dataclasses import asdict, dataclass, field
from typing import Any

import torch

from graphsage.cluster.plan_rates import POINTER, GraphSize, Rates
from graphsage.errors import ConfigError
from graphsage.execution.rows_first import rows_first
from graphsage.graph.cap import CAP_EDGE_BYTES
from graphsage.graph.external.size import shown_size
from graphsage.graph.split import CUT_EDGE_BYTES
from graphsage.inference.out_of_core.edges import EDGE_BYTES
from graphsage.inference.out_of_core.plan import PROCESS_BYTES, ROW_BYTES, SOURCE_SHARE
from graphsage.model.encoder import Encoder
from graphsage.model.heads import ClassHead
from graphsage.model.layer import SageLayer
from graphsage.training.config import Config

ERROR_FACTOR = 2  # docs/scale.md compares estimates with measured times
ALL_REDUCE_SECONDS = 4e-4  # latency between two processes, measured on loopback
FLOAT = torch.float32.itemsize


@dataclass(frozen=True)
class Machines:
    """Equal machines, each as fast as the measured one. Processes on one machine share its cores and memory."""

    machines: int = 1
    workers: int = 1
    """Training processes per machine."""
    memory: float = 24e9
    disk: float | None = None
    network: float = 1.25e9
    """Bytes per second of each machine, in each direction."""

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if value is not None and not 0 < value < math.inf:
                raise ConfigError(f"{name} must be above 0; got {value}")


@dataclass(frozen=True)
class Estimate:
    """Time of the job, and memory and bytes per machine. `memory` excludes the page cache."""

    parts: dict[str, float]
    """Seconds per type of work. They add up: nothing overlaps."""
    memory: float
    disk_read: float = 0.0
    disk_written: float = 0.0
    network: float = 0.0
    problems: list[str] = field(default_factory=list)
    """Why the job does not fit; empty if it does."""
    notes: list[str] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        return sum(self.parts.values())

    def as_dict(self) -> dict[str, Any]:
        return {"seconds": self.seconds, "fits": not self.problems, **asdict(self)}


def num_steps(config: Config, targets: int) -> int:
    return -(-targets // min(config.batch_size, targets))


def num_weights(graph: GraphSize, config: Config) -> int:
    modules = Encoder(config.encoder(), graph.dim), ClassHead(config.dim, graph.classes)
    return sum(weight.numel() for module in modules for weight in module.parameters())


def training_epoch(graph: GraphSize, config: Config, on: Machines, rates: Rates, targets: int) -> Estimate:
    """One epoch over `targets` nodes. `config.batch_size` counts the targets of a step on all machines together."""
    ranks, steps = on.machines * on.workers, num_steps(config, targets)
    batch = -(-min(config.batch_size, targets) // ranks)
    weights = FLOAT * num_weights(graph, config)
    activations, sampled = _step_work(graph, config, batch)
    base = PROCESS_BYTES + 4 * weights  # with gradients and Adam's two moments
    edges = 2 * graph.edge_bytes + 3 * POINTER * graph.nodes  # the training graph, before and after the degree cap
    set_up = graph.edges * (CUT_EDGE_BYTES if config.max_degree is None else CAP_EDGE_BYTES)
    resident, peak = (on.workers * (base + edges + more) for more in (activations, max(activations, set_up)))
    cold = min(1.0, max(0.0, 1 - (on.memory - resident) / graph.folder_bytes))
    page_reads = cold * sampled * (1 + (graph.row_bytes - 1) / mmap.PAGESIZE) * steps * on.workers
    sent = 2 * (ranks - 1) / ranks * weights * steps * on.workers
    parts = {
        "starting operations": steps * rates.step_seconds,
        "computing": steps * on.workers * batch * rates.target_seconds,
        "network": sent / on.network + steps * ALL_REDUCE_SECONDS * math.log2(ranks),
        "disk": page_reads / rates.disk_reads,
    }
    problems = _too_large("the graph folder", graph.folder_bytes, "disk", on.disk)
    problems += _too_large("the edges of the training graph during set-up", peak, "memory", on.memory)
    folder = f"the graph folder ({shown_size(graph.folder_bytes)})"
    notes = [f"{folder} fits into memory" if not cold else f"{folder} exceeds memory: {cold:.0%} of reads go to disk"]
    outside = sent if on.machines > 1 else 0.0
    return Estimate(parts, peak, mmap.PAGESIZE * page_reads, 0.0, outside, problems, notes)


def whole_graph(graph: GraphSize, config: Config, on: Machines, rates: Rates) -> Estimate:
    """Exact inference: in memory if one machine has enough, otherwise in blocks over files."""
    layers = _layers(graph, config)
    output = FLOAT * graph.nodes * config.dim
    together = PROCESS_BYTES + graph.folder_bytes + 2 * output
    together += FLOAT * graph.nodes * max(_neighbor_width(layer) for layer in layers)
    in_memory = on.machines == 1 and together <= on.memory
    read, written = (graph.folder_bytes, 0) if in_memory else _block_traffic(graph, layers, output, on)
    network = 0.0 if on.machines == 1 else read + written
    parts = {
        "computing": (graph.nodes * rates.node_seconds + graph.edges * rates.edge_seconds) / on.machines,
        "network": network / on.network,
        "disk": (read + written) / rates.disk_bytes,
    }
    problems = _too_large("the graph folder and the layers", graph.folder_bytes + 3 * output, "disk", on.disk)
    notes = ["in memory" if in_memory else "in blocks, over files that all machines share"]
    return Estimate(parts, together if in_memory else on.memory, read, written, network, problems, notes)


def _layers(graph: GraphSize, config: Config) -> list[SageLayer]:
    encoder = Encoder(config.encoder(), graph.dim)
    return [encoder.layer(k) for k in range(1, len(config.sample_sizes) + 1)]


def _step_work(graph: GraphSize, config: Config, batch: int) -> tuple[float, float]:
    """Bytes of activations of one rank's step, and random reads of feature rows."""
    rows, total, sampled = float(batch), 0.0, 0.0
    for layer, size in zip(reversed(_layers(graph, config)), reversed(config.sample_sizes), strict=True):
        first, inner = rows_first(layer), layer.aggregator.out_dim
        sampled = rows * (size + 1)
        total += rows * (layer.in_dim + inner + 3 * config.dim)
        if first is None or first.required:  # it keeps messages or an LSTM's gates of every sampled neighbor
            total += sampled * (layer.in_dim + (8 if first is None else 2) * inner)
        rows = sampled  # the layer below computes each row and its neighbors
    return FLOAT * total, sampled


def _neighbor_width(layer: SageLayer) -> int:
    """Width of the rows that neighbors read in exact inference."""
    first = rows_first(layer)
    return layer.in_dim if first is None or not first.pays else first.width


def _block_traffic(graph: GraphSize, layers: list[SageLayer], output: int, on: Machines) -> tuple[float, float]:
    """Bytes that one machine reads and writes. Each layer reads its edges once, and its source rows once per block."""
    room = (1 - SOURCE_SHARE) * max(on.memory - PROCESS_BYTES, 1.0) * on.machines
    read = written = 0.0
    below = graph.nodes * graph.row_bytes
    for layer in layers:
        width = _neighbor_width(layer)
        if width != layer.in_dim:  # rows are transformed into a file of their own first
            read += below / on.machines
            below = FLOAT * graph.nodes * width
            written += below / on.machines
        held = graph.nodes * (FLOAT * width + ROW_BYTES) + graph.edges * EDGE_BYTES
        read += graph.edge_bytes / on.machines + max(1.0, held / room) * below
        written += output / on.machines
        below = output
    return read, written


def _too_large(name: str, needed: float, resource: str, available: float | None) -> list[str]:
    if available is None or needed <= available:
        return []
    return [
        f"{resource} per machine is too small for {name}: {shown_size(needed)} needed, {shown_size(available)} given"
    ]

"""A simulation: the time, memory, disk and network that a training epoch and whole-graph inference will take.

Work of the cost model, divided by the rates of a profile; kinds of work are added up, as nothing here overlaps them.
"""

import math
from dataclasses import asdict, dataclass, field
from typing import Any

from graphsage.cluster.plan.profile import Profile
from graphsage.cluster.plan.work import (
    FLOAT,
    Graph,
    Model,
    Work,
    distinct,
    inference,
    layer_rows,
    reduced_width,
    training_step,
)
from graphsage.errors import ConfigError
from graphsage.graph.external.size import shown_size
from graphsage.inference.out_of_core.edges import EDGE_BYTES
from graphsage.inference.out_of_core.plan import PROCESS_BYTES, ROW_BYTES, SOURCE_SHARE

PAGE = 4096
SETUP_EDGE_BYTES = {True: 45, False: 15}
"""Taken for each stored edge for a moment, while the training graph is cut: with a degree cap, and without."""


@dataclass(frozen=True)
class Cluster:
    """Equal machines. Ranks on one machine share its cores and its page cache."""

    machines: int = 1
    ranks: int | None = None
    memory: float = 24e9
    disk: float | None = None
    network: float = 1.25e9
    """Bytes a second, each way, of each machine."""

    def __post_init__(self) -> None:
        for name in ("machines", "ranks", "memory", "disk", "network"):
            value = getattr(self, name)
            if value is not None and not 0 < value < math.inf:
                raise ConfigError(f"{name} must be above 0; got {value}")
        if self.ranks is not None and self.ranks < self.machines:
            raise ConfigError(f"ranks must be at least the number of machines, {self.machines}; got {self.ranks}")

    @property
    def all_ranks(self) -> int:
        return self.ranks or self.machines

    @property
    def ranks_each(self) -> int:
        """Of the fullest machine."""
        return -(-self.all_ranks // self.machines)


@dataclass(frozen=True)
class Forecast:
    """Of the slowest machine. `memory` must be there; what the page cache could use comes on top."""

    seconds: float
    parts: dict[str, float]
    memory: float
    disk_read: float
    disk_written: float
    network: float
    fits: bool
    notes: list[str] = field(default_factory=list)
    counts: dict[str, float] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def training_epoch(graph: Graph, model: Model, cluster: Cluster, profile: Profile, *, targets: int,
                   batch_size: int = 512, capped: bool = True) -> Forecast:  # fmt: skip
    """Every target once. `batch_size` is that of all ranks together, as in `graphsage train`."""
    ranks, each = cluster.all_ranks, cluster.ranks_each
    batch_size = min(batch_size, targets)  # fewer targets than a batch has make one smaller batch
    steps, batch = -(-targets // batch_size), -(-batch_size // ranks)
    work = training_step(graph, model, batch)
    parts = {name: steps * each * seconds for name, seconds in profile.parts(work).items()}
    parts["starting operations"] += steps * profile.step_seconds[model.aggregator]
    weights = FLOAT * model.parameters(graph.dim)
    sent = 2 * (ranks - 1) / ranks * weights * steps
    bandwidth = cluster.network / each if cluster.machines > 1 else profile.reduce_bytes
    parts["network"] = 0.0 if ranks == 1 else sent / bandwidth + steps * profile.reduce_seconds * math.log2(ranks)
    resident, peak = (each * value for value in _training_memory(graph, model, batch, weights, capped))
    cold = _cold(graph.folder_bytes, cluster.memory - resident)
    rows = sum(gather.rows for gather in work.gathers if gather.table_bytes == graph.feature_bytes)
    reads = cold * rows * _pages(graph.row_bytes) * steps * each
    parts["disk"] = reads / profile.disk_reads
    fits = peak <= cluster.memory and (cluster.disk is None or graph.folder_bytes <= cluster.disk)
    notes = _folder_notes(graph, cluster, cold)
    if peak > cluster.memory:
        notes.append(f"each rank holds the edges of the training graph in memory: setting up takes {shown_size(peak)} "
                     f"on a machine, and it has {shown_size(cluster.memory)}")  # fmt: skip
    counts = {"steps": steps, "targets_a_rank": batch, "flops": steps * (work.products + work.recurrent),
              "bytes_gathered": steps * work.gathered, "resident_memory": resident}  # fmt: skip
    outside = sent * each if cluster.machines > 1 else 0.0
    return Forecast(sum(parts.values()), parts, peak, PAGE * reads, 0.0, outside, fits, notes, counts)


def whole_graph(graph: Graph, model: Model, cluster: Cluster, profile: Profile) -> Forecast:
    """Exact inference: in memory where one machine has the room, else in blocks of nodes over files."""
    works, widths = inference(graph, model), [graph.dim] + [model.width] * (len(model.sample_sizes) - 1)
    parts = {name: seconds / cluster.machines for name, seconds in profile.parts(sum(works, Work())).items()}
    tables = [FLOAT * graph.nodes * reduced_width(model, below) for below in widths]
    layer = FLOAT * graph.nodes * model.width
    together = PROCESS_BYTES + graph.folder_bytes + max(tables) + 2 * layer
    in_memory = cluster.machines == 1 and together <= cluster.memory
    read, written, memory = float(graph.folder_bytes), 0.0, float(together)
    if not in_memory:
        read, written, memory = _blockwise(graph, model, cluster, widths)
    moved = read + written
    parts["disk"] = moved / profile.disk_bytes
    network = moved if cluster.machines > 1 else 0.0
    parts["network"] = network / cluster.network
    notes = ["in memory" if in_memory else "in blocks, over files that every machine sees"]
    room = graph.folder_bytes + 3 * layer
    fits = cluster.disk is None or room <= cluster.disk
    if not fits:
        notes.append(
            f"the folder and the layers between take {shown_size(room)} of disk; "
            f"there are {shown_size(cluster.disk or 0)}"
        )
    flops = sum(work.products + work.recurrent for work in works)
    return Forecast(sum(parts.values()), parts, memory, read, written, network, fits, notes,
                    {"flops": flops, "bytes_gathered": sum(work.gathered for work in works)})  # fmt: skip


def _blockwise(graph: Graph, model: Model, cluster: Cluster, widths: list[int]) -> tuple[float, float, float]:
    """Bytes that one machine reads and writes, and its memory. A layer reads its edges once, and the rows below once
    for each block of nodes; blocks are as large as memory allows, and there are as many as machines at least."""
    budget = max(cluster.memory - PROCESS_BYTES, 1.0)
    read = written = 0.0
    value = graph.value_bytes
    for below in widths:
        width = below if model.recurrent else reduced_width(model, below)
        source = graph.nodes * below * value
        if not model.recurrent and width != below:  # rows are transformed into files of their own first
            read += source / cluster.machines
            source = graph.nodes * width * FLOAT
            written += source / cluster.machines
        held = graph.nodes * (FLOAT * width + ROW_BYTES) + graph.edges * EDGE_BYTES
        blocks = max(1.0, held / ((1 - SOURCE_SHARE) * budget) / cluster.machines)
        read += graph.edges * graph.index_bytes / cluster.machines + blocks * source
        written += FLOAT * graph.nodes * model.width / cluster.machines
        value = FLOAT
    return read, written, min(cluster.memory, PROCESS_BYTES + budget)


def _training_memory(graph: Graph, model: Model, batch: float, weights: float, capped: bool) -> tuple[float, float]:
    """Of one rank: while it trains, and at most, while it sets up. Features stay in the folder, mapped."""
    rows = layer_rows(batch, model.sample_sizes)
    fan, inner, size = model.fan_in(graph.dim), model.inner, model.sample_sizes[0]
    step = FLOAT * (rows[0] * (fan + inner) + 3 * model.width * sum(rows))
    if not model.averages:
        seen = distinct(rows[0] * (size + 1), graph.nodes)
        step += FLOAT * (
            rows[0] * size * (graph.dim + 8 * inner) if model.recurrent else seen * (graph.dim + 2 * inner)
        )
    base = PROCESS_BYTES + 4 * weights
    edges = graph.edges * graph.index_bytes * (2 if capped else 1) + 24 * graph.nodes
    return base + edges + step, base + edges + max(step, graph.edges * SETUP_EDGE_BYTES[capped])


def _cold(folder: float, room: float) -> float:
    """Share of uniformly random reads that the page cache does not have."""
    return min(1.0, max(0.0, 1 - max(room, 0.0) / folder)) if folder else 0.0


def _pages(row_bytes: float) -> float:
    """Pages that a row lies on, on average: it may begin anywhere in one."""
    return 1 + max(0.0, row_bytes - 1) / PAGE


def _folder_notes(graph: Graph, cluster: Cluster, cold: float) -> list[str]:
    folder = shown_size(graph.folder_bytes)
    if cluster.disk is not None and graph.folder_bytes > cluster.disk:
        return [
            f"a replicated folder ends here: it takes {folder}, and a machine has {shown_size(cluster.disk)} of disk"
        ]
    if cold:
        return [f"the folder ({folder}) does not fit into memory: {cold:.0%} of all reads go to disk"]
    return [f"the folder ({folder}) fits into the memory of each machine"]

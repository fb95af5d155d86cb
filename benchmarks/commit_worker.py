"""One commit's side of `benchmarks.two_commits`: sets up one row of the comparison and runs it when asked.

The driver starts this module twice, with PYTHONPATH pointing at a different `src` each time, so it must run on both
commits. Every name that a commit may have moved is looked up in HOMES; add a module there when a name moves. Names of
`graphsage` itself (Graph, Split, Config) are public and stay.

Standard input: a number N asks for N runs, `memory` for the peak memory. Each answer is one line of JSON.
"""

import contextlib
import gc
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib import import_module
from itertools import count, cycle
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from benchmarks.contenders.serve import load
from benchmarks.measured_process import answering, high_water

HOMES: dict[str, tuple[str, ...]] = {
    "set_up": ("graphsage.training.train",),
    "Adam": ("graphsage.training.adam", "graphsage.execution.adam"),
    "make_step": ("graphsage.training.step", "graphsage.execution.step"),
    "reuse": ("graphsage.kernels.scratch",),
    "create_store": ("graphsage.live.store",),
    "LiveGraph": ("graphsage.live.store",),
    "LiveEncoder": ("graphsage.live.embed",),
    "Cap": ("graphsage.live.cap", "graphsage.live.adjacency"),
    "Target": ("graphsage.live.reading", "graphsage.live.overlay_view"),
    "node_key": ("graphsage.live.keys", "graphsage.graph.ids"),
}
"""The modules that may define a name, old homes first."""


@dataclass(frozen=True)
class Row:
    """One measurement: a turn is `each` runs; a round has `swaps` times the turns old, new, new, old; `warm` runs come
    first."""

    name: str
    task: str
    each: int
    swaps: int
    warm: int
    settings: dict[str, Any] = field(default_factory=dict)


POOL, LSTM = {"aggregator": "pool", "hidden_dim": 512}, {"aggregator": "lstm", "hidden_dim": 128, "batch_size": 256}
VISITORS = 64  # new nodes that the live row embeds in turn
EDGES = 10  # of each new node
ROWS: dict[str, tuple[Row, ...]] = {
    "cpu": (
        Row("step mean", "step", 2, 2, 16),
        Row("step gcn", "step", 2, 2, 16, {"aggregator": "gcn"}),
        Row("step pool", "step", 1, 1, 3, POOL),
        Row("step lstm", "step", 1, 1, 2, LSTM),
        Row("step unsupervised mean", "step", 1, 2, 6, {"task": "unsupervised"}),
        Row("embed mean", "embed", 1, 1, 2),
        Row("embed pool", "embed", 1, 1, 2, POOL),
        Row("live one new node", "live", VISITORS, 1, VISITORS),
        *(
            Row(f"read {name}.{ending}", "read", 1, 1, 2, {"name": name, "ending": ending})
            for name in ("wide", "mixed", "edges")
            for ending in ("csv", "parquet")
        ),
    ),
    # 320 warm-up steps pass the end of the first epoch, whose smaller batch is captured on its own.
    "cuda": (
        Row("step mean, TF32", "step", 100, 1, 320),
        Row("step mean, bfloat16 features, TF32", "step", 100, 1, 320, {"feature_type": "bfloat16"}),
        Row("step pool, TF32", "step", 25, 1, 320, {"aggregator": "pool"}),
        Row("step lstm, TF32", "step", 15, 1, 320, {"aggregator": "lstm"}),
        Row("embed mean, TF32", "embed", 3, 1, 3),
        Row("embed pool, TF32", "embed", 3, 1, 3, {"aggregator": "pool"}),
    ),
}
Run = Callable[[], Any]
Check = Callable[[], float]
"""A number that depends on the results of the warm-up runs: commits that compute the same have the same."""


def find(name: str) -> Any:
    """`name` from the first of its HOMES that has it."""
    for home in HOMES[name]:
        with contextlib.suppress(ImportError, AttributeError):
            return getattr(import_module(home), name)
    raise LookupError(f"{name} is in none of {', '.join(HOMES[name])}; add its module to HOMES in {__name__}")


def buffers() -> contextlib.AbstractContextManager[Any]:
    """The block within which a CPU step reuses its buffers, on commits that have one."""
    try:
        block: contextlib.AbstractContextManager[Any] = find("reuse")()
    except LookupError:
        return contextlib.nullcontext()
    return block


def prepare(row: Row, folder: Path, device: str, cleanup: contextlib.ExitStack) -> tuple[Run, Check]:
    """Set up `row` on the graph in `folder`. `cleanup` closes whatever stays open during the runs."""
    from graphsage import Config, Graph, Split

    if row.task == "read":
        return _read(folder / "tables", **row.settings)
    arrays: dict[str, Any] = {name: torch.from_numpy(array) for name, array in load(folder).items()}
    part = torch.full((len(arrays["labels"]),), 2, dtype=torch.uint8)
    part[arrays.pop("train")] = 0
    how = {"direction": "in"} if hasattr(Graph, "direction") else {"directed": True}  # older commits
    graph = Graph(arrays.pop("indptr"), arrays.pop("indices"), **arrays, **how)
    live = {"form": "paper", "cap": "row", "max_degree": 128}  # defaults of the cap differ between commits
    cap: dict[str, Any] = live if row.task == "live" else {"max_degree": None}
    config = Config(**cap, **row.settings).resolved()
    run = find("set_up")(graph, Split(part), config, torch.device(device), {})
    if row.task == "step":
        return _step(run, config, cleanup)
    if row.task == "embed":
        return _embed(run.model, graph, cleanup)
    return _live(run.model, graph, cleanup)


def _read(folder: Path, name: str, ending: str) -> tuple[Run, Check]:
    """Read the tables of `workload.write_tables` into a graph in memory."""
    from graphsage import TableSpec, open_tables

    tables = {part: str(folder / f"{part}.{ending}") for part in ("wide", "mixed", "links", "edges", "wide_edges")}
    spec = {
        "wide": lambda: TableSpec(
            nodes=tables["wide"],
            edges=tables["wide_edges"],
            label="class",
            numeric=tuple(f"f{i}" for i in range(300)),
        ),
        "mixed": lambda: TableSpec(
            nodes=tables["mixed"],
            edges=tables["links"],
            label="class",
            numeric=tuple(f"f{i}" for i in range(8)),
            log_numeric=("count0", "count1"),
            categorical=("group0", "group1", "group2"),
            text=("title",),
            dates=("born",),
        ),
        "edges": lambda: TableSpec(edges=tables["edges"]),
    }[name]()
    last: list[Any] = []

    def run() -> None:
        last[:] = []
        last[:] = [open_tables(spec)]

    return run, lambda: float(last[0].graph.num_stored_edges + last[0].graph.indices.double().mean())


def _step(run: Any, config: Any, cleanup: contextlib.ExitStack) -> tuple[Run, Check]:
    """A training step, as the training loop runs it."""
    run.module.train()
    optimizer = find("Adam")(run.module, config.lr, weight_decay=config.weight_decay, clip=config.clip)
    step, numbers = find("make_step")(run.objective, run.module, optimizer), count()
    cleanup.enter_context(buffers())
    return lambda: step.run(next(numbers)), lambda: float(step.take_loss())


def _embed(model: Any, graph: Any, cleanup: contextlib.ExitStack) -> tuple[Run, Check]:
    """Exact inference over the whole graph. On a GPU the embeddings stay there: the copy to the host takes several
    times as long as the computation."""
    if model.device.type == "cuda":
        cleanup.enter_context(_matrices_stay_on_gpu())
    last: list[Tensor] = []

    def run() -> None:
        last[:] = []
        last[:] = [model.embed(graph)]

    def check() -> float:
        if last[0].device.type != model.device.type:
            raise RuntimeError("Model.embed no longer copies its result with Tensor.cpu; adapt _matrices_stay_on_gpu")
        return float(last[0].abs().mean())

    return run, check


@contextlib.contextmanager
def _matrices_stay_on_gpu() -> Iterator[None]:
    """`Tensor.cpu` returns matrices as they are."""
    before = Tensor.cpu

    def copy(self: Tensor, *options: Any, **named: Any) -> Tensor:
        return self if self.dim() == 2 else before(self, *options, **named)

    Tensor.cpu = copy  # type: ignore[assignment, method-assign]
    try:
        yield
    finally:
        Tensor.cpu = before  # type: ignore[method-assign]


def _live(model: Any, graph: Any, cleanup: contextlib.ExitStack) -> tuple[Run, Check]:
    """Embed one new node with EDGES edges, with the thread count and the calls of the service's micro-batch."""
    cleanup.callback(torch.set_num_threads, torch.get_num_threads())
    torch.set_num_threads(1)
    store = Path(cleanup.enter_context(tempfile.TemporaryDirectory())) / "store"
    find("create_store")(store, graph)
    live = cleanup.enter_context(
        contextlib.closing(find("LiveGraph")(store, find("Cap").of(model.sampling, model.seed)))
    )
    encoder, target, last = find("LiveEncoder").of(model), find("Target"), list[Tensor]()
    draw = np.random.default_rng(0)
    visitors = cycle(
        [
            (
                find("node_key")(f"visitor {i}"),
                draw.normal(size=graph.num_features).astype(np.float32),
                draw.integers(0, graph.num_nodes, EDGES).tolist(),
            )
            for i in range(VISITORS)
        ]
    )

    def run() -> None:
        with live.reading() as (overlay, _):
            compute = encoder.read([target(*overlay.visitor(*next(visitors)))])
        last[:] = [compute()]

    return run, lambda: float(last[0].abs().mean())


class Memory:
    """Peak memory of set-up and of the runs after it, in bytes."""

    def __init__(self, device: str) -> None:
        self._cuda, self._set_up = device == "cuda", {"peak": 0}

    def end_of_set_up(self) -> None:
        gc.collect()
        self._set_up = self._peak()
        if self._cuda:
            torch.cuda.reset_peak_memory_stats()
        else:
            Path("/proc/self/clear_refs").write_text("5")  # the kernel's high-water mark starts again

    def found(self) -> dict[str, dict[str, int]]:
        return {"set_up": self._set_up, "runs": self._peak()}

    def _peak(self) -> dict[str, int]:
        if self._cuda:
            return {"peak": torch.cuda.max_memory_allocated(), "reserved": torch.cuda.max_memory_reserved()}
        return {"peak": high_water(os.getpid())}


def timed(run: Run, runs: int, device: str) -> dict[str, float]:
    """Seconds per run, on the clock and summed over all threads of this process."""
    if device == "cuda":
        torch.cuda.synchronize()
    begin, processor = time.perf_counter(), time.process_time()
    for _ in range(runs):
        run()
    if device == "cuda":
        torch.cuda.synchronize()
    return {"wall": (time.perf_counter() - begin) / runs, "processor": (time.process_time() - processor) / runs}


def main() -> None:
    asked = json.loads(sys.argv[1])
    device = asked["device"]
    answer = answering()
    row = next(row for row in ROWS[device] if row.name == asked["row"])
    if device == "cuda":
        torch.set_float32_matmul_precision("high")
    try:
        with contextlib.ExitStack() as cleanup:
            import graphsage

            memory = Memory(device)
            run, check = prepare(row, Path(asked["folder"]), device, cleanup)
            memory.end_of_set_up()
            timed(run, row.warm, device)
            answer(source=str(graphsage.__file__), check=check(), threads=torch.get_num_threads())
            for line in sys.stdin:
                if line.strip() == "memory":
                    answer(**memory.found())
                else:
                    answer(**timed(run, int(line), device))
    except Exception as error:
        answer(error=f"{type(error).__name__}: {error}"[:500])
        raise


if __name__ == "__main__":
    main()

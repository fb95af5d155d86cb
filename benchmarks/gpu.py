"""Training step, inference and sampling on one GPU: `python -m benchmarks.gpu`, from a source tree (PYTHONPATH=src).

Needs torch with Triton and NumPy. Writes results/bench/gpu.json, and exits 1 when a target of TARGETS is missed.
"""

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from benchmarks.ours import Ours
from benchmarks.workload import PPI, REDDIT, make
from graphsage.experiments.record import write_result
from graphsage.inference import feature_placement
from graphsage.inference.embed import embed_exact
from graphsage.kernels.random import Stream
from graphsage.sampling.minibatch import sample_minibatch
from graphsage.training.config import Config
from graphsage.training.loop import matmul_precision

OVER_THE_BUS = "mean, float32 features in the host's memory, TF32"
TARGETS = {
    "mean, float32 features, TF32": 220.0,
    "mean, bfloat16 features, TF32": 180.0,
    "gcn, float32 features, TF32": 1000.0,
    "pool, bfloat16 features, TF32": 1000.0,
    "lstm, float32 features, TF32": 5000.0,
    "unsupervised mean, float32 features, TF32": 1000.0,
    "epoch of 298 steps, mean, TF32": 70_000.0,
    "exact inference, all nodes, TF32": 50_000.0,
}
"""Microseconds, at most."""


def timed(call: Callable[[], object], runs: int = 5, each: int = 100, warm: int = 20) -> float:
    """Median microseconds of one call, over `runs` groups of `each`."""
    for _ in range(warm):
        call()
    torch.cuda.synchronize()
    times = []
    for _ in range(runs):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        for _ in range(each):
            call()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) * 1e3 / each)
    return statistics.median(times)


def bandwidth() -> float:
    """Bytes a second that a copy reads and writes."""
    source = torch.empty(2**30, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    return 2 * 2**30 / (timed(lambda: target.copy_(source), each=10) * 1e-6)


def bus() -> float:
    """Bytes a second that a copy from pinned host memory brings to the GPU."""
    source = torch.empty(2**28, dtype=torch.uint8).pin_memory()
    target = torch.empty_like(source, device="cuda")
    return 2**28 / (timed(lambda: target.copy_(source, non_blocking=True), each=10) * 1e-6)


@contextmanager
def in_host_memory() -> Iterator[None]:
    """Features are placed as if they did not fit on the GPU."""
    share, feature_placement.SHARE = feature_placement.SHARE, 0.0
    try:
        yield
    finally:
        feature_placement.SHARE = share


def products(tf32: bool) -> float:
    """Microseconds of the matrix products of one step, mean, alone: layer 1, layer 2, head; forward and backward."""
    x, w = torch.randn(5632, 1204, device="cuda"), torch.randn(1204, 256, device="cuda")
    g = torch.randn(5632, 256, device="cuda")
    x2, w2, g2 = (torch.randn(*s, device="cuda") for s in ((512, 512), (512, 256), (512, 256)))
    w3, g3 = torch.randn(256, 41, device="cuda"), torch.randn(512, 41, device="cuda")

    def run() -> None:
        x @ w, g.t() @ x
        x2 @ w2, g2.t() @ x2, g2 @ w2.t()
        g2 @ w3, g3.t() @ g2, g3 @ w3.t()

    with matmul_precision("high" if tf32 else "highest"):
        graph = torch.cuda.CUDAGraph()
        run()
        torch.cuda.synchronize()
        with torch.cuda.graph(graph):
            run()
        return timed(graph.replay)


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--out", default="results/bench/gpu.json")
    options.add_argument("--only", default="", help="run only what has this in its name")
    options.add_argument("--profile", action="store_true", help="print the kernels of one step")
    asked = options.parse_args()
    graph, split = make(REDDIT)
    nodes = split.nodes("train")
    found: dict[str, Any] = {}

    def record(name: str, call: Callable[[], float]) -> None:
        if asked.only and asked.only not in name:
            return
        begin = time.monotonic()
        try:
            found[name] = round(call(), 2)
        except Exception as error:
            found[name] = f"{type(error).__name__}: {str(error).splitlines()[0]}"
        torch.cuda.empty_cache()
        print(f"{name}: {found[name]}  ({time.monotonic() - begin:.0f} s)", flush=True)

    per_second = bandwidth()
    rows = (512 + 5120) * 26
    floors = {
        "copy TB/s": per_second / 1e12,
        "reading, float32 us": rows * 602 * 4 / per_second * 1e6,
        "reading, bfloat16 us": rows * 602 * 2 / per_second * 1e6,
        "bus GB/s": (by_bus := bus()) / 1e9,
        "reading over the bus, float32 us": rows * 602 * 4 / by_bus * 1e6,
        "products, float32 us": products(False),
        "products, TF32 us": products(True),
    }
    print(json.dumps(floors), flush=True)

    def step(shape_graph: Any, seeds: torch.Tensor, each: int = 100, eager: bool = False, **settings: Any) -> float:
        os.environ["GRAPHSAGE_CAPTURE"] = "0" if eager else "1"
        config = Config(max_degree=None, **settings)
        with matmul_precision("high" if config.tf32 else "highest"):
            ours = Ours(shape_graph, seeds, config, "cuda")
            taken = timed(ours.run, each=each)
            loss = float(ours.step.take_loss()) / ours.done
            assert loss == loss, "the loss is not a number"
            if asked.profile:
                profile(ours.run)
        return taken

    def epoch() -> float:
        ours = Ours(graph, nodes, Config(max_degree=None, tf32=True), "cuda")
        with matmul_precision("high"):
            return timed(lambda: [ours.run() for _ in range(298)], each=1, warm=2)

    def inference(**settings: Any) -> float:
        with matmul_precision("high" if settings.get("tf32") else "highest"):
            ours = Ours(graph, nodes, Config(max_degree=None, **settings), "cuda")
            return timed(lambda: embed_exact(ours.encoder, ours.graph, ours.tables), each=3, warm=2)

    def peer(name: str, each: int) -> float:
        from benchmarks import gpu_pyg

        with matmul_precision("high"):
            return timed(getattr(gpu_pyg, name)(graph, nodes), runs=3, each=each, warm=10)

    def sampling() -> float:
        here = graph.replace(features=None, labels=None).to("cuda")
        seeds = nodes[:512].cuda()
        keys = Stream(0, "bench").keys(seeds)
        return timed(lambda: sample_minibatch(here, seeds, (25, 10), keys))

    record("mean, float32 features, TF32", lambda: step(graph, nodes, tf32=True))
    record("mean, bfloat16 features, TF32", lambda: step(graph, nodes, tf32=True, feature_type="bfloat16"))
    record("mean, float32 features, float32", lambda: step(graph, nodes))
    record("mean, float32 features, TF32, not captured", lambda: step(graph, nodes, eager=True, tf32=True))
    record("mean, reference form, TF32", lambda: step(graph, nodes, tf32=True, form="reference", cap="off"))
    record("gcn, float32 features, TF32", lambda: step(graph, nodes, tf32=True, aggregator="gcn"))
    with in_host_memory():
        record(OVER_THE_BUS, lambda: step(graph, nodes, tf32=True))
    record("pool, float32 features, TF32", lambda: step(graph, nodes, tf32=True, aggregator="pool"))
    record(
        "pool, bfloat16 features, TF32",
        lambda: step(graph, nodes, tf32=True, aggregator="pool", feature_type="bfloat16"),
    )
    record("lstm, float32 features, TF32", lambda: step(graph, nodes, 20, tf32=True, aggregator="lstm"))
    record("unsupervised mean, float32 features, TF32", lambda: step(graph, nodes, tf32=True, task="unsupervised"))
    record("epoch of 298 steps, mean, TF32", epoch)
    record("exact inference, all nodes, TF32", lambda: inference(tf32=True))
    record("exact inference, all nodes, float32", inference)
    record("exact inference, all nodes, pool, TF32", lambda: inference(tf32=True, aggregator="pool"))
    record("sampling alone, 512 seeds, not captured", sampling)
    record("PyG, neighbors given", lambda: peer("step_given", each=20))
    record("PyG, NeighborLoader with 16 workers", lambda: peer("step_with_loader", each=40))
    if not asked.only or "PPI" in asked.only:
        small, small_split = make(PPI)
        record("PPI-shaped step, mean, TF32", lambda: step(small, small_split.nodes("train"), tf32=True))
    missed = [
        n for n, limit in TARGETS.items() if n in found and not (isinstance(found[n], float) and found[n] <= limit)
    ]
    body = {"floors": floors, "measured": found, "targets": TARGETS, "missed": missed}
    write_result(
        Path(asked.out),
        "Microseconds on one GPU, Reddit-shaped unless it says otherwise",
        "python -m benchmarks.gpu",
        body,
    )
    for name, limit in TARGETS.items():
        if name in found:
            print(f"{'missed' if name in missed else 'ok':7}{name}: {found[name]} (at most {limit})")
    return 1 if missed else 0


def profile(call: Callable[[], object]) -> None:
    from torch.profiler import ProfilerActivity
    from torch.profiler import profile as profiler

    with profiler(activities=[ProfilerActivity.CUDA]) as found:
        for _ in range(20):
            call()
        torch.cuda.synchronize()
    print(found.key_averages().table(sort_by="cuda_time_total", row_limit=45, max_name_column_width=70))


if __name__ == "__main__":
    sys.exit(main())

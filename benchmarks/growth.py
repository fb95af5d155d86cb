"""How a training step grows, on a CPU: with the graph, the sample, the depth, the features and the batch.

    python -m benchmarks.growth --out results/bench/growth.json --figure docs/growth.png

A step must not grow with the graph, apart from what no longer fits a cache.
"""

import argparse
import os
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import torch

from benchmarks.measured_process import high_water
from benchmarks.ours import Ours
from graphsage.experiments.record import write_result
from graphsage.graph.graph import Graph
from graphsage.training.config import Config

BASE: dict[str, Any] = {"edges": 10_000_000, "dim": 128, "sample_sizes": (25, 10), "batch_size": 512}
AXES: dict[str, list[dict[str, Any]]] = {
    "edges": [{"edges": 10**power} for power in (5, 6, 7, 8)],
    "S1 x S2": [{"sample_sizes": sizes} for sizes in ((5, 5), (10, 10), (25, 10), (25, 25))],
    "depth K": [{"sample_sizes": sizes} for sizes in ((10,), (10, 10), (10, 10, 10))],
    "features D": [{"dim": dim} for dim in (32, 128, 512)],
    "batch": [{"batch_size": size} for size in (128, 512, 2048)],
}
DEGREE = 50


def made(edges: int, dim: int) -> Graph:
    """A graph of DEGREE random neighbors a node."""
    nodes = edges // DEGREE
    generator = torch.Generator().manual_seed(0)
    indptr = torch.arange(nodes + 1) * DEGREE
    indices = torch.randint(nodes, (nodes * DEGREE,), generator=generator, dtype=torch.int32)
    features = torch.randn(nodes, dim, generator=generator)
    labels = torch.randint(10, (nodes,), generator=generator)
    return Graph(indptr, indices, features=features, labels=labels, direction="in")


def measure(setting: dict[str, Any], steps: int) -> dict[str, Any]:
    Path("/proc/self/clear_refs").write_text("5")  # the high-water mark begins anew
    graph = made(setting["edges"], setting["dim"])
    config = Config(max_degree=None, sample_sizes=setting["sample_sizes"], batch_size=setting["batch_size"])
    ours = Ours(graph, torch.arange(graph.num_nodes), config, "cpu")
    for _ in range(3):
        ours.run()
    seconds = []
    for _ in range(steps):
        begin = time.perf_counter()
        ours.run()
        seconds.append(time.perf_counter() - begin)
    size = sum(
        t.numel() * t.element_size()
        for t in (graph.indptr, graph.indices, graph.features, graph.labels)
        if t is not None
    )
    return {
        **setting,
        "seconds": statistics.median(seconds),
        "fastest": min(seconds),
        "graph_bytes": size,
        "peak_bytes": high_water(os.getpid()),
    }


def draw(report: dict[str, Any], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(AXES), figsize=(3.2 * len(AXES), 3.0))
    for axis, (name, rows) in zip(axes, report["axes"].items(), strict=True):
        labels = [_label(name, row) for row in rows]
        axis.bar(labels, [row["seconds"] * 1e3 for row in rows], color="#4878a8")
        axis.set_title(name, fontsize=10)
        axis.tick_params(labelsize=8)
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("milliseconds a step")
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)


def _label(name: str, row: dict[str, Any]) -> str:
    if name == "edges":
        return f"$10^{len(str(row['edges'])) - 1}$"
    if name in ("S1 x S2", "depth K"):
        return "x".join(map(str, row["sample_sizes"]))
    return str(row["dim"] if name == "features D" else row["batch_size"])


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--out", type=Path, default=Path("results/bench/growth.json"))
    options.add_argument("--figure", type=Path, default=Path("docs/growth.png"))
    options.add_argument("--steps", type=int, default=12)
    asked = options.parse_args()
    report: dict[str, Any] = {"base": BASE, "axes": {}}
    torch.set_num_threads(2)
    for name, settings in AXES.items():
        report["axes"][name] = []
        for setting in settings:
            row = measure({**BASE, **setting}, asked.steps)
            report["axes"][name].append(row)
            print(f"{name:12} {_label(name, row):10} {row['seconds'] * 1e3:8.1f} ms", flush=True)
    write_result(asked.out, "seconds a training step, mean, CPU, 2 threads", "python -m benchmarks.growth", report)
    draw(report, asked.figure)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""The planner beside the clock: its predictions for steps and inference that it was not calibrated on, and their times.

    make results-plan           (on an idle machine; about two minutes)
    make results-plan BUSY=1    (while other work runs: one thread, its processor time)

The profile is measured first, from gathers, products, draws and steps of almost nothing; none of the rows below is
among them. A row's ratio is predicted / measured; within 2 x means between 0.5 and 2.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from graphsage.cluster.plan.calibrate import calibrate
from graphsage.cluster.plan.forecast import Cluster, training_epoch, whole_graph
from graphsage.cluster.plan.profile import Profile
from graphsage.cluster.plan.steps import CLASSES, TrainingSteps, random_graph
from graphsage.cluster.plan.work import Graph, Model
from graphsage.experiments.record import write_result
from graphsage.training.config import Config

ROOM = Cluster(memory=1e12)  # every graph below is in memory


@dataclass(frozen=True)
class Case:
    label: str
    nodes: int
    degree: int
    dim: int
    settings: dict[str, Any] = field(default_factory=dict)
    dtype: torch.dtype = torch.float32

    def config(self) -> Config:
        return Config(max_degree=None, **self.settings)

    def sizes(self) -> tuple[Graph, Model]:
        config = self.config()
        model = Model(config.aggregator, config.sample_sizes, config.dim, config.hidden_dim, CLASSES)
        return Graph(self.nodes, self.nodes * self.degree, self.dim, self.dtype.itemsize), model


STEPS = (
    Case("mean, a small graph in cache", 20_000, 20, 64, {"sample_sizes": (10, 10), "dim": 128, "batch_size": 256}),
    Case("mean, the paper's sizes", 500_000, 20, 256),
    Case("mean, a large batch", 1_000_000, 20, 64, {"sample_sizes": (15, 10), "batch_size": 2048, "dim": 128}),
    Case("mean, three layers", 300_000, 20, 128, {"sample_sizes": (10, 10, 5), "batch_size": 128, "dim": 128}),
    Case("mean, float16 features", 500_000, 20, 128, {}, torch.float16),
    Case("gcn, Reddit's width", 200_000, 20, 602, {"aggregator": "gcn"}),
    Case("pool", 200_000, 20, 128, {"aggregator": "pool", "sample_sizes": (10, 10), "batch_size": 256}),
    Case("LSTM", 100_000, 20, 128, {"aggregator": "lstm", "sample_sizes": (10, 5), "batch_size": 128, "dim": 128}),
)
WHOLE = (
    Case("mean, 128 features", 300_000, 20, 128, {"dim": 256}),
    Case("mean, 512 features made narrow", 150_000, 20, 512, {"dim": 128}),
    Case("gcn, 256 features", 200_000, 30, 256, {"aggregator": "gcn", "dim": 128}),
    Case("pool", 60_000, 15, 64, {"aggregator": "pool", "hidden_dim": 256, "dim": 128}),
    Case("LSTM", 20_000, 10, 64, {"aggregator": "lstm", "hidden_dim": 64, "dim": 64}),
)


def timed(call: Callable[[], Any], seconds: float, least: int, clock: Callable[[], float]) -> dict[str, Any]:
    """Run it again and again for a while; after a first time that does not count."""
    call()
    taken: list[float] = []
    while len(taken) < least or sum(taken) < seconds:
        begin = clock()
        call()
        taken.append(clock() - begin)
    return {"measured": statistics.median(taken), "fastest": min(taken), "times": len(taken)}


def measure(case: Case, what: str, profile: Profile, seconds: float, clock: Callable[[], float]) -> dict[str, Any]:
    graph, model = case.sizes()
    run = TrainingSteps(random_graph(case.nodes, case.degree, case.dim, case.dtype), case.config())
    if what == "training step":
        batch = case.config().batch_size
        found = training_epoch(graph, model, ROOM, profile, targets=batch, batch_size=batch)
        clock = timed(run.run, seconds, 5, clock)
    else:
        found = whole_graph(graph, model, ROOM, profile)
        clock = timed(run.embed, seconds, 2, clock)
    parts = {name: value for name, value in found.parts.items() if name not in ("disk", "network")}  # all is in memory
    predicted = sum(parts.values())
    ratio = predicted / clock["measured"]
    return {"what": what, "label": case.label, "nodes": case.nodes, "edges": graph.edges, "dim": case.dim,
            "settings": {"aggregator": model.aggregator, **case.settings}, "predicted": predicted, **clock,
            "ratio": ratio, "within_2x": 0.5 <= ratio <= 2, "parts": parts}  # fmt: skip


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--out", type=Path, default=Path("results/scale/plan.json"))
    options.add_argument("--profile", type=Path, default=Path("results/scale/profile.json"), help="is written first")
    options.add_argument("--seconds", type=float, default=3.0, help="that each row is measured for")
    options.add_argument("--keep-profile", action="store_true", help="use the profile that is there")
    options.add_argument("--busy", action="store_true", help="other work runs here: one thread, and its processor time")
    asked = options.parse_args()
    clock = time.process_time if asked.busy else time.perf_counter
    if asked.busy:
        torch.set_num_threads(1)
    if not asked.keep_profile:
        calibrate(say=lambda text: print(text, file=sys.stderr), clock=clock).save(asked.profile)
    profile = Profile.load(asked.profile)
    rows = []
    for what, cases in (("training step", STEPS), ("inference", WHOLE)):
        for case in cases:
            row = measure(case, what, profile, asked.seconds, clock)
            rows.append(row)
            print(f"{what:14} {case.label:36} predicted {row['predicted'] * 1e3:9.1f} ms   measured "
                  f"{row['measured'] * 1e3:9.1f} ms   ratio {row['ratio']:.2f}", flush=True)  # fmt: skip
    about = "The planner's predictions beside measured times, on configurations that it was not calibrated on"
    told = "processor time of one thread, on a busy machine" if asked.busy else "wall time"
    write_result(asked.out, about, "make results-plan" + (" BUSY=1" if asked.busy else ""), {
        "clock": told, "threads": torch.get_num_threads(), "profile": asked.profile.name, "rows": rows,
        "within_2x": sum(row["within_2x"] for row in rows)})  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""The planner's estimates beside measured times.

    OMP_WAIT_POLICY=PASSIVE python -m benchmarks.plan           (on an idle machine)
    OMP_WAIT_POLICY=PASSIVE python -m benchmarks.plan --busy    (processor time of one thread)

For each row the planner measures a small random graph first, as `graphsage plan` does. The measured graph is larger,
or has another degree or batch size.
"""

import argparse
import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch

from graphsage.cluster import plan_rates
from graphsage.cluster.plan import ERROR_FACTOR, Machines, training_epoch, whole_graph
from graphsage.cluster.plan_rates import GraphSize, inference, median_seconds, random_graph, rates_of, training_step
from graphsage.experiments.record import write_result
from graphsage.training.config import Config

IN_MEMORY = Machines(memory=1e12)


@dataclass(frozen=True)
class Case:
    label: str
    nodes: int
    degree: int
    dim: int
    settings: dict[str, Any] = field(default_factory=dict)
    dtype: torch.dtype = torch.float32

    def config(self) -> Config:
        return Config(max_degree=None, **self.settings).resolved()

    def size(self) -> GraphSize:
        return GraphSize(self.nodes, self.nodes * self.degree, self.dim, self.dtype)


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
SCALES = Case("the table of scales", 1_000_000, 20, 256, {}, torch.float16)


def compare(case: Case, what: str, seconds: float) -> dict[str, Any]:
    size, config = case.size(), case.config()
    graph, rates = random_graph(size, case.degree), rates_of(config, size, again=True)
    if what == "training step":
        estimate = training_epoch(size, config, IN_MEMORY, rates, config.batch_size)
        measured = median_seconds(training_step(graph, config), seconds, 5)
    else:
        estimate = whole_graph(size, config, IN_MEMORY, rates)
        measured = median_seconds(inference(graph, config), seconds, 2)
    predicted = estimate.seconds - estimate.parts["disk"]  # the graph is in memory already
    return {
        "what": what,
        "label": case.label,
        "nodes": case.nodes,
        "edges": size.edges,
        "dim": case.dim,
        "settings": case.settings,
        "predicted": predicted,
        "measured": measured,
        "ratio": predicted / measured,
        "within": 1 / ERROR_FACTOR <= predicted / measured <= ERROR_FACTOR,
    }


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--out", type=Path, default=Path("results/scale/plan.json"))
    options.add_argument("--seconds", type=float, default=3.0, help="measuring time per row")
    options.add_argument("--busy", action="store_true", help="other work runs here: processor time of one thread")
    asked = options.parse_args()
    if asked.busy:
        torch.set_num_threads(1)
        plan_rates.clock = time.process_time
    rows = []
    for what, cases in (("training step", STEPS), ("inference", WHOLE)):
        for case in cases:
            row = compare(case, what, asked.seconds)
            rows.append(row)
            print(
                f"{what:14} {case.label:36} predicted {row['predicted'] * 1e3:9.1f} ms   measured "
                f"{row['measured'] * 1e3:9.1f} ms   ratio {row['ratio']:.2f}",
                flush=True,
            )
    about = "The planner's estimates beside measured times, on graphs that it did not measure"
    body = {
        "clock": "processor time on a busy machine" if asked.busy else "wall time",
        "threads": torch.get_num_threads(),
        "factor": ERROR_FACTOR,
        "rows": rows,
        "within": sum(row["within"] for row in rows),
        "rates_of_scales": asdict(rates_of(SCALES.config(), SCALES.size(), again=True)),
    }
    write_result(asked.out, about, "python -m benchmarks.plan" + " --busy" * asked.busy, body)
    return 0


if __name__ == "__main__":
    sys.exit(main())

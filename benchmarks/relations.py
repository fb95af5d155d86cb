"""What relations are worth, and what they cost.

    python -m benchmarks.relations --mode generated --out results/relations.json
    python -m benchmarks.relations --mode debian --data FOLDER --out results/relations.json
    python -m benchmarks.relations --mode step --out results/relations.json

`generated`: a heterophilous directed graph, `both` beside `merged`, `in` and `out`. `debian`: sections of packages,
with edge types and directions beside merged edges. `step`: processor time of a training step, two relations beside one
with the same number of sampled neighbors, and a weighted mean beside a plain one. Each mode replaces its own part of
the file.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from benchmarks.ours import Ours
from graphsage.checksummed_json import read_checksummed
from graphsage.datasets.tables import open_tables
from graphsage.evaluation.f1 import F1
from graphsage.experiments.record import write_result
from graphsage.graph.graph import Graph
from graphsage.graph.split import Split
from graphsage.tables.spec import DIRECTIONS, TableSpec
from graphsage.training.config import Config
from graphsage.training.train import train

MODES = ("generated", "debian", "step")
SEEDS = range(5)
RATES = (0.01, 0.003)
"""Learning rates to choose from, by the validation score."""
NODES, CLASSES, DEGREE, WIDTH = 3000, 4, 6, 16
SHARE, SIGNAL = 0.8, 0.5
REDDIT = {"nodes": 232_965, "degree": 100, "dim": 602}
Array = npt.NDArray[Any]


def heterophilous(seed: int) -> tuple[Array, Array, Array]:
    """Edges, classes and features. Nodes of class c point at class c + 1, so in-neighbors have class c - 1: merged
    neighbors have classes c - 1 and c + 1, which are those of class c + 2 as well."""
    rng = np.random.default_rng([seed, 21])
    classes = rng.integers(CLASSES, size=NODES)
    source = np.repeat(np.arange(NODES), DEGREE)
    wanted = np.where(
        rng.random(len(source)) < SHARE, (classes[source] + 1) % CLASSES, rng.integers(CLASSES, size=len(source))
    )
    members = [np.flatnonzero(classes == each) for each in range(CLASSES)]
    target = np.array([rng.choice(members[each]) for each in wanted])
    features = SIGNAL * rng.normal(size=(CLASSES, WIDTH))[classes] + rng.normal(size=(NODES, WIDTH))
    return np.stack([source, target], axis=1), classes, features.astype(np.float32)


def chosen(graph: Graph, split: Split, seed: int, **settings: Any) -> dict[str, Any]:
    """Test and validation accuracy of the learning rate with the best validation score."""
    found = []
    for rate in RATES:
        model = train(graph, split, lr=rate, seed=seed, **settings)
        score: float = model.about["training"]["best_val_score"]
        found.append((score, rate, model))
    score, rate, model = max(found, key=lambda one: one[0])
    test = model.evaluate(graph, split)
    assert isinstance(test, F1)
    return {"test": test.micro, "val": score, "lr": rate}


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    tests = [row["test"] for row in rows]
    return {"test": round(statistics.mean(tests), 4), "deviation": round(statistics.stdev(tests), 4), "seeds": rows}


def generated() -> Iterator[tuple[str, Any]]:
    yield "settings", {"nodes": NODES, "classes": CLASSES, "degree": DEGREE, "share": SHARE, "signal": SIGNAL}
    for direction in DIRECTIONS:
        rows = []
        for seed in SEEDS:
            edges, classes, features = heterophilous(seed)
            graph = Graph.from_edges(edges, NODES, features=features, labels=classes, direction=direction)
            split = Split.random(NODES, (0.5, 0.2, 0.3), seed)
            rows.append(chosen(graph, split, seed, dim=64, epochs=20, sample_sizes=(10, 10)))
        yield direction, summary(rows)


def debian(folder: Path) -> Iterator[tuple[str, Any]]:
    """Sections of the packages of `graphsage data build debian`; the split by release of the tutorial."""
    base: dict[str, Any] = {
        "nodes": str(folder / "nodes.csv"),
        "edges": str(folder / "edges.csv"),
        "label": "section",
        "text": ("description",),
        "log_numeric": ("installed_kb",),
        "time": "release",
        "time_order": ("bullseye", "bookworm", "trixie", "forky", "sid"),
        "train_until": "bookworm",
        "val_until": "trixie",
    }
    readings = {
        "merged": {},
        "both": {"direction": "both"},
        "types": {"edge_type": "kind"},
        "types, both": {"edge_type": "kind", "direction": "both"},
    }
    for name, reading in readings.items():
        data = open_tables(TableSpec(**base, **reading))
        split = data.split("time")
        graph, _ = data.with_features(split)
        yield name, summary([chosen(graph, split, seed) for seed in SEEDS])


def step(device: str) -> Iterator[tuple[str, Any]]:
    """A random graph of Reddit's nodes and features. Processor time on a CPU, else wall time; settings alternate."""
    n, degree, dim = REDDIT["nodes"], REDDIT["degree"], REDDIT["dim"]
    generator = torch.Generator().manual_seed(0)

    def lists(count: int) -> Graph:
        index = torch.randint(n, (n * count,), generator=generator, dtype=torch.int32)
        return Graph(torch.arange(n + 1) * count, index, direction="in")

    features = torch.randn(n, dim, generator=generator)
    labels = torch.randint(41, (n,), generator=generator)
    one = lists(degree).replace(features=features, labels=labels)
    weights = torch.rand(one.num_stored_edges, generator=generator) + 0.5
    halves = {"in": lists(degree // 2), "out": lists(degree // 2).replace(direction="out")}
    cases = {
        "one relation": (one, {}),
        "two relations": (one.replace(relations=halves), {"relation_sizes": (12, 5, 13, 5)}),
        "weighted mean": (one.replace(edge_weight=weights), {}),
    }
    runs = {
        name: Ours(graph, torch.arange(n), Config(max_degree=None, sample_sizes=(25, 10), **more), device)
        for name, (graph, more) in cases.items()
    }
    clock = time.process_time if device == "cpu" else time.perf_counter
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for number in range(33):
        for name, run in runs.items():
            begin = clock()
            run.run()
            if device != "cpu":
                torch.cuda.synchronize()
            if number >= 3:
                seconds[name].append(clock() - begin)
    base = statistics.median(seconds["one relation"])
    for name, times in seconds.items():
        middle = statistics.median(times)
        yield name, {"milliseconds": round(1e3 * middle, 2), "of one relation": round(middle / base, 3)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mode", choices=MODES, default="generated")
    parser.add_argument("--data", type=Path, help="folder of nodes.csv and edges.csv, for debian")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    if arguments.mode == "debian" and arguments.data is None:
        parser.error("debian needs --data FOLDER, of `graphsage data build debian`")
    rows = {"generated": generated, "debian": lambda: debian(arguments.data), "step": lambda: step(arguments.device)}
    found: dict[str, Any] = {}
    for name, row in rows[arguments.mode]():
        found[name] = row
        print(name, {key: value for key, value in row.items() if key != "seeds"}, file=sys.stderr)
    if arguments.out is not None:
        part = arguments.mode if arguments.mode != "step" else f"step on {arguments.device}"
        before = read_checksummed(arguments.out) if arguments.out.exists() else {}
        kept = {name: before[name] for name in before if name.split()[0] in MODES}
        about = (__doc__ or "").partition("\n")[0]
        command = f"python -m benchmarks.relations --mode MODE --out {arguments.out}"
        write_result(arguments.out, about, command, {**kept, part: found})


if __name__ == "__main__":
    main()

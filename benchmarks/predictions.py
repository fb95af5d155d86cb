"""What the defaults of numbers, probabilities and thresholds gain on generated graphs.

    PYTHONPATH=src python -m benchmarks.predictions

Regression: test R2 with vectors of length 1 (`normalize=every`) and without, beside the yardsticks. Classes: test
calibration error, log loss and F1 with and without the calibration by validation nodes.
"""

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.datasets import load_diabetes, make_friedman1
from sklearn.neighbors import kneighbors_graph

from benchmarks.ten_graphs import GRAPHS
from graphsage.baselines.ridge import regression_yardsticks
from graphsage.datasets.tables import open_tables
from graphsage.evaluation.metrics import METRICS
from graphsage.evaluation.regression import RegressionScores
from graphsage.experiments.record import spread, write_result
from graphsage.graph.graph import Graph
from graphsage.graph.split import Split
from graphsage.inference.model import quality, score_of
from graphsage.training.train import train

THIRDS = (0.6, 0.2, 0.2)
FORMS: dict[str, dict[str, Any]] = {"length 1": {"normalize": "every"}, "default": {}}
CLASSES = ("knn", "homophily", "text_only", "communities")


def neighbors(x: np.ndarray[Any, Any], k: int = 8) -> np.ndarray[Any, Any]:
    return np.stack(kneighbors_graph(x, k).nonzero(), axis=1)


def diabetes(seed: int) -> Graph:
    x, y = load_diabetes(return_X_y=True)
    return Graph.from_edges(neighbors(x), features=x, targets=y)


def friedman(seed: int) -> Graph:
    x, y = make_friedman1(3000, n_features=10, noise=1.0, random_state=seed)
    return Graph.from_edges(neighbors(x), features=x, targets=y)


def spatial(seed: int) -> Graph:
    """A price that depends on a node's features, and more on those of its neighbors."""
    rng = np.random.default_rng(seed)
    x, edges = rng.normal(size=(3000, 5)), neighbors(rng.uniform(size=(3000, 2)))
    means = np.zeros_like(x)
    np.add.at(means, edges[:, 0], x[edges[:, 1]] / 8)
    y = 2e5 + 4e4 * (np.tanh(x[:, 0]) + 3 * means[:, 1] + np.abs(x[:, 2]) + 0.3 * rng.normal(size=3000))
    return Graph.from_edges(edges, features=x, targets=y)


def regression(seed: int, make: Any) -> dict[str, float]:
    graph = make(seed)
    split = Split.random(graph.num_nodes, THIRDS, seed)
    found = {name: each.scores.r2 for name, each in regression_yardsticks(graph, split, "test").items()}
    for name, own in FORMS.items():
        scores = train(
            graph, split, task="regression", seed=seed, device="cpu", epochs=50, patience=10, **own
        ).evaluate()
        assert isinstance(scores, RegressionScores)
        found[name] = scores.r2
    return found


def classes(seed: int, name: str) -> dict[str, dict[str, float]]:
    data = open_tables(GRAPHS[name](seed))
    split = Split.random(data.graph.num_nodes, THIRDS, seed)
    graph, _ = data.with_features(split)
    found = {}
    for how, calibrate in (("as trained", False), ("calibrated", True)):
        model = train(graph, split, seed=seed, device="cpu", calibrate=calibrate)
        made = model.answers(graph, split, ("test",))["test"]
        error = quality(made, graph).calibration_error
        assert error is not None
        scores = {metric: score_of(METRICS[metric], made) for metric in ("loss", "micro-f1", "macro-f1")}
        found[how] = {"ece": error, **scores, "temperature": model.calibration.temperature}
    return found


def main() -> int:
    options = argparse.ArgumentParser()
    options.add_argument("--seeds", type=int, default=2)
    options.add_argument("--out", type=Path, default=Path("results/predictions.json"))
    asked = options.parse_args()
    torch.set_num_threads(1)
    numbers = {}
    for make in (diabetes, friedman, spatial):
        runs = [regression(seed, make) for seed in range(asked.seeds)]
        numbers[make.__name__] = {name: spread(run[name] for run in runs) for name in runs[0]}
        print(make.__name__, {name: cell["mean"] for name, cell in numbers[make.__name__].items()}, file=sys.stderr)
    probabilities = {}
    for name in CLASSES:
        drawn = [classes(seed, name) for seed in range(asked.seeds)]
        probabilities[name] = {
            how: {score: spread(run[how][score] for run in drawn) for score in drawn[0][how]} for how in drawn[0]
        }
        means = {how: {s: cell["mean"] for s, cell in own.items()} for how, own in probabilities[name].items()}
        print(name, means, file=sys.stderr)
    about = "Test R2 of regressions with and without vectors of length 1; test scores with and without calibration"
    body = {"seeds": asked.seeds, "r2": numbers, "calibration": probabilities}
    write_result(asked.out, about, "python -m benchmarks.predictions", body)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""What works on data that nobody tuned for: the default beside logistic regressions, on 20 graphs.

    PYTHONPATH=src python -m benchmarks.defaults choose DATA --candidates candidates.json
    PYTHONPATH=src python -m benchmarks.defaults prove DATA
    PYTHONPATH=src python -m benchmarks.defaults recipe DATA --name ppi --graphs ppi

`choose` scores candidates for the default by validation micro F1 on the development graphs, and never reads test nodes.
`prove` trains with no option but data and label, and compares test micro F1 with the better of logistic regression on
the features and on features + 2 hops of neighbor means, whose penalties are chosen on validation, and without features
also of a vote of the labeled neighbors. `recipe` reports
validation and test micro F1 of a committed recipe.

DATA holds a folder for each development graph except setmm, which is built in: nodes.csv, edges.csv and features.npz;
for ppi, PyG's raw format. Trials are kept in --resume-dir, and the same command continues there.
"""

import argparse
import json
import math
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch

from benchmarks.ten_graphs import GRAPHS
from graphsage.baselines.features import inductive_features
from graphsage.datasets.dataset import Dataset
from graphsage.datasets.debian import debian_tables
from graphsage.datasets.open import open_data
from graphsage.datasets.tables import open_tables
from graphsage.errors import DataWarning
from graphsage.evaluation.calibration import choose_thresholds
from graphsage.evaluation.f1 import f1_scores
from graphsage.evaluation.probe import tuned_probe
from graphsage.experiments.record import spread, write_result
from graphsage.features.degree import degree_features
from graphsage.features.known_labels import label_features
from graphsage.graph.graph import Graph
from graphsage.graph.split import Split, training_graph, with_validation
from graphsage.kernels.random import Stream
from graphsage.recipes import RECIPES, recipe
from graphsage.tables.spec import TableSpec
from graphsage.training.progress import Event
from graphsage.training.train import train
from graphsage.training.trials import Result, Runner, Trial, TrialStore

RANDOM = ("pubmed", "cora", "citeseer", "amazon_cs", "amazon_photo", "coauthor_cs")
FIXED = ("setmm date", "debian", "ppi")
DEVELOPMENT = ("setmm random", *RANDOM, *FIXED)
CUT = {"steps": 2, "dim": 16}
THIRDS = (0.6, 0.2, 0.2)
YARDSTICKS = ("features", "features + 2 hops of neighbor means")
VOTE = "neighbor vote"
"""Of the labels of training nodes, for the generated graphs without features; several labels by one threshold that
validation nodes choose."""
VOTES = ("no_features", "communities")


def data_of(name: str, seed: int, folder: Path) -> tuple[Graph, Split]:
    """A graph with features, and its split; the seed draws the split (of a generated graph, the graph too)."""
    dataset, split = _opened(name, seed, folder)
    if not len(split.nodes("val")):
        split = with_validation(split, Stream(0, "validation"))
    return dataset.with_features(split)[0], split


@lru_cache(maxsize=1)
def _opened(name: str, seed: int, folder: Path) -> tuple[Dataset, Split]:
    if name in GRAPHS:
        data = open_tables(GRAPHS[name](seed))
        return data, data.split("random")
    if name.startswith("setmm"):
        data = open_data("setmm")
        return data, data.split("date") if name == "setmm date" else Split.random(data.graph.num_nodes, THIRDS, seed)
    if name == "debian":
        data = open_tables(debian_tables(folder / name, train_until="trixie"))
        return data, data.split("time")
    if name == "ppi":
        data = open_data(folder / name)
        return data, data.split()
    spec = TableSpec(
        nodes=str(folder / name / "nodes.csv"),
        edges=str(folder / name / "edges.csv"),
        label="label",
        vectors=(str(folder / name / "features.npz"),),
        fractions=THIRDS,
        split_seed=seed,
    )
    data = open_tables(spec)
    return data, data.split("random")


def trained(settings: Mapping[str, Any], folder: Path) -> Result:
    """Train with `own` settings; validation micro F1, and test micro F1 if `test`."""
    graph, split = data_of(settings["graph"], settings["seed"], folder)
    own = settings["own"] | (CUT if settings.get("cut") else {})
    curve: list[float] = []

    def watch(event: Event) -> None:
        score = getattr(event, "val_score", getattr(event, "val_f1", None))
        if score is not None:
            curve.append(round(score, 4))

    began = time.monotonic()
    model = train(graph, split, seed=settings["seed"], on_event=watch, **own)
    seconds = time.monotonic() - began
    parts = ("val", "test") if settings["test"] else ("val",)
    scores = model.evaluate_parts(graph, split, parts)
    result: Result = {part: round(scores[part].micro, 4) for part in parts}
    return result | {"train_seconds": round(seconds, 2), "steps": model.about["training"]["steps"], "curve": curve}


def vote(graph: Graph, split: Split) -> Result:
    """Micro F1 of the share of a node's labeled training neighbors that have a label."""
    assert graph.labels is not None
    train = graph.labeled(split.nodes("train"))
    known = label_features(graph.labels, train, graph.num_nodes, graph.num_classes)
    sums = torch.zeros_like(known).index_add_(0, graph.edge_rows, known[graph.indices.long()])
    shares = sums[:, 1:] / sums[:, :1].clamp(min=1)
    threshold, found = 0.0, {}
    for part in ("val", "test"):
        nodes = graph.labeled(split.nodes(part))
        truth, own = graph.labels[nodes], shares[nodes]
        if not graph.multilabel:
            decided = own.argmax(dim=1)
        else:
            if part == "val":
                threshold = float(choose_thresholds(own, truth, each=False)[0])
            decided = (own > threshold).long()
        found[part] = round(f1_scores(truth.numpy(), decided.numpy()).micro, 4)
    return {**found, "threshold": threshold}


def yardstick(settings: Mapping[str, Any], folder: Path) -> Result:
    graph, split = data_of(settings["graph"], settings["seed"], folder)
    if settings["yardstick"] == VOTE:
        return vote(graph, split)
    if graph.features is None:
        graph = graph.replace(features=degrees_without_leak(graph, split))
    assert graph.features is not None
    assert graph.labels is not None
    x, labels = graph.features.float().numpy(), graph.labels.numpy()
    if settings["yardstick"] != YARDSTICKS[0]:
        x = inductive_features(graph, split, x, hops=2)
    parts = {part: graph.labeled(split.nodes(part)).numpy() for part in ("train", "val", "test")}
    penalty, predicted = tuned_probe(x, labels, parts)
    scores = {part: round(f1_scores(labels[parts[part]], predicted[part]).micro, 4) for part in ("val", "test")}
    return {**scores, "penalty": penalty}


def degrees_without_leak(graph: Graph, split: Split) -> torch.Tensor:
    """Degrees as features, of training nodes in the training graph."""
    made = degree_features(graph.degrees)
    train_nodes = split.nodes("train")
    made[train_nodes] = degree_features(training_graph(graph, split).degrees)[train_nodes]
    return made


@dataclass(frozen=True)
class Evaluate:
    folder: Path

    def __call__(self, trial: Trial) -> Result:
        warnings.simplefilter("ignore", DataWarning)
        run: Callable[..., Result] = trained if trial.type == "train" else yardstick
        return run(trial.settings, self.folder)


def training_trials(
    graphs: Iterable[str], seeds: int, own: Mapping[str, Any], experiment: str, *, test: bool, cut: bool = False
) -> list[Trial]:
    more = {"test": test} | ({"cut": True} if cut else {})
    return [
        Trial(graph, {"graph": graph, "seed": seed, "own": dict(own), **more}, experiment=experiment)
        for graph in graphs
        for seed in range(seeds)
    ]


def yardstick_trials(graphs: Iterable[str], seeds: int) -> list[Trial]:
    return [
        Trial(graph, {"graph": graph, "seed": seed, "yardstick": name}, "yardstick", experiment="defaults-yardsticks")
        for graph in graphs
        for seed in range(1 if graph in FIXED else seeds)
        for name in (*YARDSTICKS, *([VOTE] if graph in VOTES else []))
    ]


def choose(
    runner: Runner, candidates: Mapping[str, Mapping[str, Any]], graphs: list[str], seeds: int, cut: bool
) -> list[Any]:
    """Mean validation F1 of each candidate on each graph, best mean first."""
    trials = {
        name: training_trials(graphs, seeds, own, "defaults-candidates", test=False, cut=cut)
        for name, own in candidates.items()
    }
    together = sorted(
        (trial for some in trials.values() for trial in some), key=lambda trial: graphs.index(trial.label)
    )
    runner.run(together)
    rows = []
    for name, some in trials.items():
        results = runner.run(some)
        by_graph = {
            graph: spread(result["val"] for trial, result in zip(some, results, strict=True) if trial.label == graph)
            for graph in graphs
        }
        mean = statistics.fmean(each["mean"] for each in by_graph.values())
        seconds = sum(result["train_seconds"] for result in results)
        own = dict(candidates[name])
        rows.append({"name": name, "settings": own, "mean_val": round(mean, 4), "seconds": seconds, "graphs": by_graph})
    return sorted(rows, key=lambda row: -row["mean_val"])


def prove(runner: Runner, graphs: list[str], seeds: int, cut: bool) -> list[dict[str, Any]]:
    """For each graph: test F1 of the default and of the yardsticks, and the paired difference to the better one."""
    runs = training_trials(graphs, seeds, {}, "defaults", test=True, cut=cut)
    compared = yardstick_trials(graphs, seeds)
    runner.run([*runs, *compared])
    rows = []
    for graph in graphs:
        ours = [runner.run([trial])[0]["test"] for trial in runs if trial.label == graph]
        others: dict[str, list[float]] = {name: [] for name in (*YARDSTICKS, *([VOTE] if graph in VOTES else []))}
        for trial in compared:
            if trial.label == graph:
                others[trial.settings["yardstick"]].append(runner.run([trial])[0]["test"])
        others = {name: found * (seeds // len(found)) for name, found in others.items()}
        best = max(others, key=lambda name: statistics.fmean(others[name]))
        differences = [a - b for a, b in zip(ours, others[best], strict=True)]
        error = statistics.stdev(differences) / math.sqrt(len(differences)) if seeds > 1 else 0.0
        mean = statistics.fmean(differences)
        rows.append(
            {
                "graph": graph,
                "default": spread(ours),
                **{name: spread(found) for name, found in others.items()},
                "better yardstick": best,
                "difference": round(mean, 4),
                "standard error": round(error, 4),
                "holds": mean >= -0.003 or mean >= -error,
            }
        )
    return rows


def score_recipe(runner: Runner, name: str, graphs: list[str], seeds: int, cut: bool) -> list[dict[str, Any]]:
    """Validation and test micro F1 of a recipe on each graph, and the seconds of a training."""
    runs = training_trials(graphs, seeds, recipe(name), f"recipe-{name}", test=True, cut=cut)
    runner.run(runs)
    rows = []
    for graph in graphs:
        results = runner.run([trial for trial in runs if trial.label == graph])
        scores = {part: spread(result[part] for result in results) for part in ("val", "test")}
        rows.append({"graph": graph, **scores, "train_seconds": [result["train_seconds"] for result in results]})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mode", choices=("choose", "prove", "recipe"))
    parser.add_argument("data", type=Path)
    parser.add_argument("--candidates", type=Path, help="a JSON object: name of a candidate to its settings")
    parser.add_argument("--name", choices=RECIPES, help="the recipe")
    parser.add_argument("--graphs", help="names, separated by commas")
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--minutes", type=float)
    parser.add_argument("--results", type=Path, default=Path("results"))
    parser.add_argument("--resume-dir", type=Path, default=Path("results/trials/defaults"))
    parser.add_argument(
        "--cut", type=Path, metavar="FOLDER", help="try the command: 2 steps, 16 wide; results and trials go to FOLDER"
    )
    asked = parser.parse_args()
    cut = asked.cut is not None
    if cut:
        asked.results, asked.resume_dir = asked.cut, asked.cut / "trials"

    def done(trial: Trial, result: Result, made: int, total: int) -> None:
        shown = {name: value for name, value in result.items() if name != "curve"}
        print(f"{made}/{total} {trial.label} {json.dumps(dict(trial.settings))} {shown}", file=sys.stderr, flush=True)

    deadline = None if asked.minutes is None else time.monotonic() + 60 * asked.minutes
    runner = Runner(TrialStore(asked.resume_dir), Evaluate(asked.data), asked.jobs, deadline, done)
    command = f"python -m benchmarks.defaults {asked.mode} DATA"
    for name in ("graphs", "seeds") if asked.mode != "recipe" else ():
        command += f" --{name} {getattr(asked, name)}" if getattr(asked, name) else ""
    if asked.mode == "choose":
        graphs = asked.graphs.split(",") if asked.graphs else list(DEVELOPMENT)
        candidates = json.loads(asked.candidates.read_text(encoding="utf-8"))
        rows = choose(runner, candidates, graphs, asked.seeds or 3, cut)
        about = "validation micro F1 of candidates for the default; no test node was read"
        write_result(asked.results / "defaults-candidates.json", about, command, {"rows": rows})
        for row in rows:
            print(row["mean_val"], row["name"], {graph: each["mean"] for graph, each in row["graphs"].items()})
        return
    if asked.mode == "recipe":
        if not (asked.name and asked.graphs):
            parser.error("recipe needs --name and --graphs")
        command += f" --name {asked.name} --graphs {asked.graphs}"
        rows = score_recipe(runner, asked.name, asked.graphs.split(","), asked.seeds or 5, cut)
        about = f"micro F1 of the recipe {asked.name} (PPI: re-derived labels)"
        write_result(asked.results / f"recipe-{asked.name}.json", about, command, {"rows": rows})
        for row in rows:
            print(row["graph"], row["val"]["mean"], row["test"]["mean"])
        return
    graphs = asked.graphs.split(",") if asked.graphs else [*DEVELOPMENT, *GRAPHS]
    rows = prove(runner, graphs, asked.seeds or 10, cut)
    about = (
        "test micro F1 of the default, with no option but data and label, beside logistic regressions whose penalty is "
        "chosen on validation; `holds`: the mean paired difference to the better one is at least -0.3 points or within "
        "one standard error of 0"
    )
    write_result(asked.results / "defaults.json", about, command, {"rows": rows})
    for row in rows:
        print(row["graph"], row["default"]["mean"], row["difference"], row["standard error"], row["holds"])


if __name__ == "__main__":
    main()

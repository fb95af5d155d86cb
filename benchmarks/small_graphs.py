"""Four well-known graphs at random inductive splits (60/20/20), beside two controls on the same splits.

    PYTHONPATH=src python -m benchmarks.small_graphs DATA

DATA holds a folder for each graph with nodes.csv (id, label), edges.csv and features.npz (SciPy's sparse format). For
each graph and each method, settings are chosen by validation micro-F1 on the split of seed 0; then every seed trains
on a split of its own: our GraphSAGE-mean, PyG's SAGEConv (pyg_sage.py), logistic regression on the features.
"""

import argparse
import dataclasses
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from benchmarks.pyg_sage import score_pyg
from benchmarks.setmm import chosen, grid, row
from graphsage.checksummed_json import read_checksummed
from graphsage.evaluation.f1 import f1_scores
from graphsage.evaluation.probe import logistic_regression
from graphsage.experiments.record import hardware, versions, write_result
from graphsage.tables.spec import TableSpec
from graphsage.training.score import Score, Scorer, opened

GRAPHS = ("amazon_photo", "amazon_cs", "pubmed", "coauthor_cs")
EPOCHS = (5, 10)
LONGEST = [{"epochs": max(EPOCHS)}]
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
RATES = [{"lr": 0.01}, {"lr": 0.003}]


def earlier_rows(path: Path) -> list[dict[str, Any]]:
    """Rows that an earlier sitting wrote, on the same hardware with the same libraries."""
    if not path.exists():
        return []
    record = read_checksummed(path)
    same = record["hardware"] == hardware() and record["versions"] == versions()
    found: list[dict[str, Any]] = record["rows"] if same else []
    return found


def tables(folder: Path, seed: int) -> TableSpec:
    return TableSpec(
        nodes=str(folder / "nodes.csv"),
        edges=str(folder / "edges.csv"),
        label="label",
        vectors=(str(folder / "features.npz"),),
        fractions=(0.6, 0.2, 0.2),
        split_seed=seed,
    )


def ours(spec: TableSpec, settings: dict[str, Any]) -> Score:
    return Scorer(spec, "random", DEVICE).score(settings)


def pyg(spec: TableSpec, settings: dict[str, Any]) -> Score:
    made = score_pyg(*opened(spec, "random"), settings, EPOCHS, DEVICE)
    return Score(settings, made["f1"], {}, made["curve"], made["seconds"])


def logistic(spec: TableSpec, settings: dict[str, Any]) -> Score:
    """Its curve is one point: validation F1 when it is done."""
    graph, split = opened(spec, "random")
    x, labels = graph.features.numpy(), graph.labels.numpy()
    val, test = split.nodes("val"), split.nodes("test")
    held_out = torch.cat([val, test]).numpy()
    predicted = logistic_regression(x, labels, split.nodes("train").numpy(), held_out, settings["penalty"])
    f1 = {}
    for part, rows_of_it in (("val", slice(len(val))), ("test", slice(len(val), None))):
        made = f1_scores(labels[held_out[rows_of_it]], predicted[rows_of_it])
        f1[part] = (made.micro, made.macro)
    return Score(settings, f1, {}, (f1["val"][0],), 0.0)


@dataclasses.dataclass(frozen=True)
class Method:
    label: str
    run: Callable[[TableSpec, dict[str, Any]], Score]
    points: list[dict[str, Any]]
    epochs: Sequence[int] = ()


METHODS = (
    Method(
        "GraphSAGE-mean",
        ours,
        grid(
            RATES, [{}, {"head_scale": True, "dropout": 0.5}], [{"max_degree": None, "sample_sizes": (10, 5)}], LONGEST
        ),
        EPOCHS,
    ),
    Method("PyG SAGEConv", pyg, grid(RATES, [{"dropout": 0.0}, {"dropout": 0.5}], LONGEST), EPOCHS),
    Method("logistic regression on features", logistic, [{"penalty": 10.0}, {"penalty": 100.0}, {"penalty": 1000.0}]),
)


def measure(folder: Path, method: Method, seeds: int) -> dict[str, Any]:
    """The row of one method on one graph."""

    def run(settings: dict[str, Any], seed: int) -> Score:
        made = method.run(tables(folder, seed), {**settings, "seed": seed})
        print(folder.name, made, file=sys.stderr, flush=True)
        return made

    found = chosen([run(point, 0) for point in method.points], method.epochs)
    made = row(method.label, [run(found["chosen"], seed) for seed in range(seeds)])
    return {"graph": folder.name, **made, "sweep": found["points"]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--graphs", default=",".join(GRAPHS))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path("results/small-graphs.json"))
    options = parser.parse_args()
    about = (
        "test micro-F1 (accuracy) on random inductive splits 60/20/20, a split for each seed, the same for all "
        "methods; settings chosen by validation micro-F1 on the split of seed 0; the SAGEConv model: 2 layers, "
        "256 wide, batches of 512, full neighborhoods of the training graph"
    )
    made = earlier_rows(options.out)
    for graph in options.graphs.split(","):
        for method in METHODS:
            if any((row["graph"], row["label"]) == (graph, method.label) for row in made):
                continue
            made.append(measure(options.data / graph, method, options.seeds))
            # Written after every row: an interrupted run goes on from there. Remove the file to measure all again.
            write_result(options.out, about, "python -m benchmarks.small_graphs DATA", {"rows": made})


if __name__ == "__main__":
    main()

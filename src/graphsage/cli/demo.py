"""`graphsage demo`: the whole story on the built-in data, in three minutes."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphsage.cli.options import Json
from graphsage.cli.output import TrainingDisplay, data_summary, print_columns, print_json, say, shortened, working

if TYPE_CHECKING:
    from torch import Tensor

    from graphsage.datasets.dataset import Dataset
    from graphsage.graph.graph import Graph
    from graphsage.graph.split import Split
    from graphsage.inference.model import Model

DATA, SPLIT = "setmm", "random"
SHOWN, NEAREST = 3, 5
PARTS = {
    "CLASSICAL FIRST-ORDER LOGIC WITH EQUALITY": "First-order logic",
    "ZF (ZERMELO-FRAENKEL) SET THEORY": "ZF set theory",
    "ZFC (ZERMELO-FRAENKEL WITH CHOICE) SET THEORY": "ZFC set theory",
    "TG (TARSKI-GROTHENDIECK) SET THEORY": "TG set theory",
    "BASIC STRUCTURES": "Structures",
    "BASIC CATEGORY THEORY": "Category theory",
    "BASIC ORDER THEORY": "Order theory",
    "BASIC ALGEBRAIC STRUCTURES": "Algebraic structures",
    "BASIC LINEAR ALGEBRA": "Linear algebra",
    "BASIC TOPOLOGY": "Topology",
    "BASIC REAL AND COMPLEX ANALYSIS": "Real and complex analysis",
    "BASIC REAL AND COMPLEX FUNCTIONS": "Real and complex functions",
    "GUIDES AND MISCELLANEA": "Miscellanea",
    "ADDITIONAL MATERIAL ON GROUPS, RINGS, AND FIELDS (DEPRECATED)": "Groups, rings, fields (old)",
    "COMPLEX TOPOLOGICAL VECTOR SPACES (DEPRECATED)": "Topological vector spaces (old)",
    "COMPLEX HILBERT SPACE EXPLORER (DEPRECATED)": "Hilbert spaces (old)",
}


@dataclass(frozen=True)
class DemoResult:
    """The trained model with z (N, dim) and class probabilities (N, C) of all nodes."""

    data: "Dataset"
    graph: "Graph"
    split: "Split"
    model: "Model"
    z: "Tensor"
    probabilities: "Tensor"

    def part(self, row: int) -> str:
        assert self.graph.labels is not None
        return self.name(int(self.graph.labels[row]))

    def name(self, label: int) -> str:
        from graphsage.inference.export import class_names

        return short(class_names(self.model, self.probabilities.shape[1])[label])


def short(part: str) -> str:
    return PARTS.get(part, part.capitalize())


def command(
    out: Annotated[Path, typer.Option("--out", help="Folder for the results.", metavar="FOLDER")] = Path("demo-out"),
    seed: Annotated[int, typer.Option("--seed", help="Seed of the model and of the examples.")] = 0,
    json: Json = False,
) -> None:
    """Train on 19,055 theorems and place 8,167 new ones: numbers, neighbors, a map.

    Trains on the built-in data set, scores the model and two baselines, embeds
    the theorems that were not in the training graph and finds their nearest known
    ones. Writes model/, embeddings.parquet, predictions.parquet and map.png.
    """
    from graphsage.training.loop import Interrupted

    began = time.monotonic()
    try:
        result = learn(out, seed)
    except Interrupted:
        say("interrupted; run the demo again")
        raise typer.Exit(130) from None
    scores = compare(result)
    examples = look_up(result, seed)
    files = write(out, result)
    report = {
        "data": DATA,
        "split": SPLIT,
        "seed": seed,
        "test_nodes": len(result.split.nodes("test")),
        "micro_f1": scores,
        "examples": examples,
        "files": [str(path) for path in files],
        "seconds": round(time.monotonic() - began, 1),
    }
    if json:
        print_json(report)
    else:
        show(report, out)


def learn(out: Path, seed: int) -> DemoResult:
    from graphsage.datasets.open import open_data
    from graphsage.inference.export import graph_for
    from graphsage.training.config import Config
    from graphsage.training.train import train

    with working(f"reading {DATA}"):
        data = open_data(DATA)
        split = data.split(SPLIT)
    say(data_summary(data, SPLIT, split))
    say("text    learning features from the training theorems' words; 15 s the first time, then kept")
    with working("learning features from text"):
        data.with_features(split)
    with TrainingDisplay() as display:
        model = train(
            data, SPLIT, Config(seed=seed), out=out / "model", on_event=display, about={"data": DATA, "split": SPLIT}
        )
    with working("embedding all theorems"):
        graph = graph_for(model, data)
        z = model.embed(graph)
        return DemoResult(data, graph, split, model, z, model.probabilities(z))


def compare(result: DemoResult) -> dict[str, float]:
    """Micro F1 on the test theorems: the model, and logistic regressions on all training theorems."""
    from graphsage.baselines.features import inductive_features
    from graphsage.evaluation.f1 import f1_scores
    from graphsage.evaluation.probe import logistic_regression

    assert result.graph.labels is not None
    assert result.graph.features is not None
    say("compare fitting two baselines on all training theorems")
    train, test = result.split.nodes("train").numpy(), result.split.nodes("test").numpy()
    labels, x = result.graph.labels.numpy(), result.graph.features.numpy()
    with working("fitting baselines"):
        wide = inductive_features(result.graph, result.split, x, hops=2)
        answers = {
            "features": logistic_regression(x, labels, train, test),
            "features_and_neighbors": logistic_regression(wide, labels, train, test),
            "graphsage": result.model.decide(result.probabilities[test]).numpy(),
        }
    return {name: f1_scores(labels[test], predicted).micro for name, predicted in answers.items()}


def look_up(result: DemoResult, seed: int) -> list[dict[str, Any]]:
    """Some test theorems, chosen by the seed, and the known theorems that lie closest by cosine."""
    import numpy as np
    import torch

    known = result.split.nodes("train")
    unit = torch.nn.functional.normalize(result.z, dim=1)
    test = result.split.nodes("test").numpy()
    found = []
    for row in np.random.default_rng(seed).choice(test, SHOWN, replace=False).tolist():
        near = (unit[known] @ unit[row]).topk(NEAREST)
        best = int(result.probabilities[row].argmax())
        found.append(
            {
                "theorem": result.graph.id_of(row),
                "comment": result.data.columns["comment"][row],
                "part": result.part(row),
                "predicted": result.name(best),
                "probability": float(result.probabilities[row, best]),
                "nearest": [
                    {"theorem": result.graph.id_of(int(v)), "part": result.part(int(v)), "cosine": float(cosine)}
                    for cosine, v in zip(near.values, known[near.indices], strict=True)
                ],
            }
        )
    return found


def write(out: Path, result: DemoResult) -> list[Path]:
    """Results for the theorems that were not in the training graph, and a map of the test ones."""
    import torch

    from graphsage.cli.pictures import draw_map
    from graphsage.inference.export import embedding_columns, prediction_columns, write_table
    from graphsage.inference.projection import NAMES, method_for, project

    held_out = torch.cat([result.split.nodes("val"), result.split.nodes("test")])
    truth = [result.part(row) for row in held_out.tolist()]
    z = result.z[held_out]
    test = result.split.nodes("test")
    method = method_for("auto", "method")
    with working("placing"):
        places = project(result.z[test].numpy(), method, n_jobs=-1)
    with working("writing"):
        embeddings = embedding_columns(result.graph, held_out, z) | {"part": truth}
        predictions = prediction_columns(result.model, result.graph, held_out, z) | {"part": truth}
        draw_map(
            out / "map.png",
            places,
            [result.part(row) for row in test.tolist()],
            title=f"{len(test):,} theorems that were not in the training graph",
            subtitle=f"GraphSAGE embeddings of Metamath's set.mm, {NAMES[method]}; color: part of mathematics",
        )
        return [
            *write_table(out / "embeddings.parquet", embeddings),
            *write_table(out / "predictions.parquet", predictions),
            out / "map.png",
            out / "model",
        ]


def show(report: dict[str, Any], out: Path) -> None:
    names = {
        "features": "logistic regression on features",
        "graphsage": "GraphSAGE-mean",
        "features_and_neighbors": "logistic regression on features + 2 hops of neighbor means",
    }
    print(f"\nmicro F1 on {report['test_nodes']:,} theorems that were not in the training graph")
    print_columns([[names[name], f"{f1:.4f}"] for name, f1 in report["micro_f1"].items()], indent="  ")
    print("\nnew theorems and the known ones nearest to them (cosine)")
    for example in report["examples"]:
        print(f"\n  {example['theorem']}: {shortened(example['comment'], 90)}")
        right = "right" if example["part"] == example["predicted"] else f"in truth {example['part']}"
        print(f"  predicted {example['predicted']} ({example['probability']:.2f}), {right}")
        print_columns([[f"{n['cosine']:.3f}", str(n["theorem"]), n["part"]] for n in example["nearest"]], indent="    ")
    print(f"\nwritten in {report['seconds']:.0f} s: {', '.join(report['files'])}")
    print("\ntry next")
    for line in (
        f"graphsage evaluate {out / 'model'} --json",
        f"graphsage predict {out / 'model'} --out {out / 'all.csv'}",
        "graphsage train setmm --out run-by-date --split date",
    ):
        print(f"  {line}")

"""Which link is missing? GraphSAGE, what needs no model, and PyG's SAGE: links of new nodes, and links inside a graph.

    PYTHONPATH=src python -m benchmarks.links DATA [--seeds 0 1 2 3 4] [--tasks NAME ...] [--methods NAME ...]

DATA holds the folders debian, pubmed and amazon_photo with nodes.csv and edges.csv (features.npz in the last two);
set.mm is built in. Links of new nodes: a source is a node that arrived late and is known by its text alone; candidates
are the older nodes. Links inside a graph: a tenth of the edges is held out for the test, another tenth chooses the
epoch, and each end asks for the other. The settings of each task were chosen on validation links. A row that is in the
result file is not made again, so that a stopped run continues, on another machine too.
"""

import argparse
import csv
import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from benchmarks.pyg_links import score_pyg
from graphsage.checksummed_json import read_checksummed
from graphsage.datasets.dataset import Dataset
from graphsage.datasets.debian import RELEASES
from graphsage.datasets.open import open_data
from graphsage.datasets.tables import open_tables
from graphsage.evaluation.link_scores import LinkScores, Questions, link_scores
from graphsage.experiments.record import hardware, versions, write_result
from graphsage.graph.link_split import LinkPart, LinkSplit, split_links
from graphsage.graph.split import Split
from graphsage.inference.links import score_links
from graphsage.tables.spec import TableSpec
from graphsage.training.train import train

QUERIES = 3000
OURS, PYG = "GraphSAGE", "PyG's SAGE"
YARDSTICKS = ("popularity", "common neighbors", "resource allocation", "nearest vote")
NEW = {"link_split": "nodes", "source_encoder": "features", "popularity": True, "metric": "recall@50"}


@dataclass(frozen=True)
class Task:
    """A data set, its settings (chosen on validation links), and the split of its nodes."""

    open: Callable[[Path], tuple[Dataset, Split | None]]
    settings: dict[str, Any]
    new_nodes: bool = False

    def parts(self, data: Dataset, split: Split | None, seed: int) -> LinkSplit:
        data = data if split is not None else data.with_all_nodes()
        return split_links(data.graph, self.settings.get("link_split", "edges"), split or data.split(), seed)


def debian(data: Path) -> tuple[Dataset, Split]:
    """`depends` of packages that are new in trixie (validation), or in forky and sid (test)."""
    folder = data / "debian"
    made = folder / "depends.csv"
    if not made.exists():
        with (folder / "edges.csv").open(newline="", encoding="utf-8") as file:
            rows = [(row["source"], row["target"]) for row in csv.DictReader(file) if row["kind"] == "depends"]
        made.write_text("source,target\n" + "".join(f"{a},{b}\n" for a, b in rows), encoding="utf-8")
    found = open_tables(
        TableSpec(
            nodes=str(folder / "nodes.csv"),
            edges=str(made),
            text=("description",),
            time="release",
            time_order=RELEASES,
            train_until="trixie",
            direction="in",
        )
    )
    assert found.graph.time is not None
    first = RELEASES.index("trixie")
    return found, Split.at_times(found.graph.time, first - 1, first)


def premises(_: Path) -> tuple[Dataset, Split]:
    """Premises of the newest 20% of theorems (test), or of the newest 10% of the others (validation)."""
    found = open_data("setmm")
    assert found.graph.time is not None
    return found, Split.by_time(found.graph.time, (0.72, 0.08, 0.2))


def small(name: str) -> Callable[[Path], tuple[Dataset, None]]:
    def opened(data: Path) -> tuple[Dataset, None]:
        folder = data / name
        vectors = (str(folder / "features.npz"),)
        return open_tables(
            TableSpec(nodes=str(folder / "nodes.csv"), edges=str(folder / "edges.csv"), label="label", vectors=vectors)
        ), None

    return opened


INSIDE: dict[str, Any] = {"dropout": 0.3, "epochs": 15, "patience": 5}
TASKS = {
    "debian depends, new packages": Task(debian, {**NEW, "dropout": 0.3, "epochs": 20, "patience": 4}, new_nodes=True),
    "setmm premises, new theorems": Task(
        premises, {**NEW, "dropout": 0.3, "epochs": 20, "patience": 4}, new_nodes=True
    ),
    "pubmed, 10% of edges": Task(small("pubmed"), INSIDE),
    "amazon_photo, 10% of edges": Task(small("amazon_photo"), INSIDE),
    "setmm, 10% of edges": Task(lambda _: (open_data("setmm"), None), INSIDE),
}


@lru_cache(maxsize=1)
def opened(name: str, data: Path) -> tuple[Dataset, Split | None]:
    return TASKS[name].open(data)


def rows_of(name: str, data: Path, seed: int, methods: list[str], device: str) -> Iterator[dict[str, Any]]:
    """The scores of validation and test links by each method."""
    task = TASKS[name]
    dataset, split = opened(name, data)
    parts = task.parts(dataset, split, seed)
    graph, _ = (dataset if split is not None else dataset.with_all_nodes()).with_features(
        split or dataset.with_all_nodes().split()
    )
    assert graph.features is not None
    asked = {part: Questions.of(parts.part(part), QUERIES, 0) for part in ("val", "test")}

    def row(method: str, score: Callable[[LinkPart, Questions], LinkScores], **facts: Any) -> dict[str, Any]:
        found = {part: score(parts.part(part), questions) for part, questions in asked.items()}
        sizes = {"sources": found["test"].sources, "candidates": len(asked["test"].candidates)}
        scores = {part: {k: round(v, 4) for k, v in one.as_dict().items()} for part, one in found.items()}
        return {"task": name, "method": method, "seed": seed, **sizes, **scores, **facts}

    for method in methods:
        if method in YARDSTICKS:

            def yardstick(part: LinkPart, questions: Questions, method: str = method) -> LinkScores:
                assert graph.features is not None
                return link_scores(questions, questions.yardsticks(part, graph.features.numpy())[method])

            yield row(method, yardstick)
        elif method == PYG:
            if not task.new_nodes:
                scores, facts = score_pyg(graph, parts, {**task.settings, "seed": seed}, device)
                yield row(method, scores, **facts)
        else:
            began = time.process_time()
            model = train(dataset, split, task="links", seed=seed, device=device, **task.settings)
            facts = {"settings": task.settings, "epoch": model.about["training"]["kept_epoch"]}
            facts |= {"processor_seconds": round(time.process_time() - began)}

            def ours(part: LinkPart, questions: Questions, model: Any = model) -> LinkScores:
                return score_links(model, graph, part, questions)

            yield row(method, ours, **facts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("data", type=Path, help="folder of the data sets")
    parser.add_argument("--out", type=Path, default=Path("results/links.json"))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--tasks", nargs="+", default=list(TASKS), help="the beginnings of the tasks' names")
    parser.add_argument("--methods", nargs="+", default=[*YARDSTICKS, OURS, PYG])
    parser.add_argument("--device", default="auto")
    given = parser.parse_args()
    rows = read_checksummed(given.out)["rows"] if given.out.exists() else []
    machine = {"hardware": hardware(given.device), "versions": versions()}
    about = (
        "Link prediction by GraphSAGE, by yardsticks and by PyG's SAGE: scores of held-out links for each seed. Rows "
        "that are absent have not been made yet; the command makes them."
    )
    for name in (name for name in TASKS if any(name.startswith(start) for start in given.tasks)):
        for seed in given.seeds:
            known = {(row["task"], row["method"], row["seed"]) for row in rows}
            fixed = TASKS[name].new_nodes and seed  # links of new nodes do not depend on the seed
            methods = [m for m in given.methods if (name, m, seed) not in known and not (fixed and m in YARDSTICKS)]
            for row in rows_of(name, given.data, seed, methods, given.device) if methods else ():
                rows.append({**row, "made on": machine["hardware"]})
                print(json.dumps(row), file=sys.stderr, flush=True)
                write_result(given.out, about, "python -m benchmarks.links DATA", {"rows": rows})
    write_result(given.out, about, "python -m benchmarks.links DATA", {"rows": rows})


if __name__ == "__main__":
    main()

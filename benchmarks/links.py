"""Which edge is missing? What is known without training a model, on links of new nodes and on links inside a graph.

    PYTHONPATH=src python -m benchmarks.links DATA

DATA holds the folders debian, pubmed and amazon_photo with nodes.csv and edges.csv (features.npz in the last two);
set.mm is built in. Links of new nodes: a query is a node that arrived late and is known by its text alone; candidates
are the older nodes. Links inside a graph: 10% of the edges are held out, and each end asks for the other.
"""

import argparse
import csv
import json
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy import sparse

from graphsage.datasets.dataset import Dataset
from graphsage.datasets.debian import RELEASES
from graphsage.datasets.open import open_data
from graphsage.datasets.tables import open_tables
from graphsage.evaluation.link_yardsticks import (
    common_neighbors,
    nearest_vote,
    popularity,
    resource_allocation,
)
from graphsage.evaluation.ranking import Ranking, Scores, ranking
from graphsage.experiments.record import write_result
from graphsage.graph.split import Split
from graphsage.tables.spec import TableSpec

QUERIES = 3000
HELD_OUT = 0.1


@dataclass(frozen=True)
class NewNodes:
    """Queries (Q, D), candidates (C, D), the links among candidates (C, C) and the hidden ones (Q, C)."""

    queries: Any
    candidates: Any
    known: sparse.csr_array
    hidden: sparse.csr_array

    def yardsticks(self) -> dict[str, Scores]:
        return {"popularity": popularity(self.known), "vote": nearest_vote(self.queries, self.candidates, self.known)}

    def result(self, scores: Scores) -> Ranking:
        return ranking(scores, self.hidden, sparse.csr_array(self.hidden.shape))


@dataclass(frozen=True)
class InsideGraph:
    """Features (N, D), the known links (N, N) and the hidden ones, both symmetric."""

    features: Any
    known: sparse.csr_array
    hidden: sparse.csr_array

    def yardsticks(self) -> dict[str, Scores]:
        everyone = np.arange(self.known.shape[0])
        return {
            "popularity": popularity(self.known),
            "common neighbors": common_neighbors(self.known, everyone, everyone),
            "resource allocation": resource_allocation(self.known, everyone, everyone),
            "vote": nearest_vote(self.features, self.features, self.known),
        }

    def result(self, scores: Scores) -> Ranking:
        itself = sparse.eye_array(self.known.shape[0], format="csr")
        return ranking(scores, self.hidden, sparse.csr_array(self.known + itself))


def new_nodes(data: Dataset, links: Any, new: Any, old: Any) -> NewNodes:
    """`links` (E, 2) from a node to its partner; `new` and `old` are masks. Text is fitted on the old nodes."""
    graph, _ = data.with_features(Split.masks(torch.from_numpy(old)))
    assert graph.features is not None
    features = graph.features.numpy()
    number = np.cumsum(old) - 1
    count = int(old.sum())
    among = links[old[links[:, 0]] & old[links[:, 1]]]
    to_old = links[new[links[:, 0]] & old[links[:, 1]]]
    asked = np.unique(to_old[:, 0])
    asked = np.sort(np.random.default_rng(0).choice(asked, min(QUERIES, len(asked)), replace=False))
    place = np.full(len(old), -1)
    place[asked] = np.arange(len(asked))
    to_old = to_old[place[to_old[:, 0]] >= 0]
    return NewNodes(
        features[asked],
        features[old],
        _matrix(number[among], (count, count)),
        _matrix(np.stack([place[to_old[:, 0]], number[to_old[:, 1]]], axis=1), (len(asked), count)),
    )


def debian(folder: Path, part: str) -> NewNodes:
    """`depends` of packages that are new in trixie (val), or in forky and sid (test)."""
    with (folder / "edges.csv").open(newline="", encoding="utf-8") as file:
        rows = [(row["source"], row["target"]) for row in csv.DictReader(file) if row["kind"] == "depends"]
    with tempfile.TemporaryDirectory() as made:
        edges = Path(made) / "depends.csv"
        edges.write_text("source,target\n" + "".join(f"{a},{b}\n" for a, b in rows), encoding="utf-8")
        data = open_tables(
            TableSpec(
                nodes=str(folder / "nodes.csv"),
                edges=str(edges),
                text=("description",),
                time="release",
                time_order=RELEASES,
                train_until="trixie",
                direction="in",
            )
        )
    graph = data.graph  # row v lists who depends on v
    assert graph.time is not None
    links = torch.stack([graph.indices.long(), graph.edge_rows], dim=1).numpy()
    release, first = graph.time.numpy(), RELEASES.index("trixie")
    if part == "val":
        return new_nodes(data, links, release == first, release < first)
    return new_nodes(data, links, release > first, release <= first)


def setmm(part: str) -> NewNodes:
    """Premises of the newest 20% of theorems (test), or of the newest 10% of the others (val)."""
    data = open_data("setmm")
    graph = data.graph
    assert graph.time is not None
    time = graph.time.numpy()
    links = torch.stack([graph.edge_rows, graph.indices.long()], dim=1).numpy()
    test = Split.by_time(graph.time, (0.8, 0.0, 0.2)).codes.numpy() == 2
    if part == "test":
        return new_nodes(data, links, test, ~test)
    new = ~test & (time > np.sort(time[~test])[int(0.9 * (~test).sum()) - 1])
    return new_nodes(data, links, new, ~test & ~new)


def inside(data: Dataset, seed: int) -> InsideGraph:
    graph, _ = data.with_features(Split.masks(torch.ones(data.graph.num_nodes, dtype=torch.bool)))
    assert graph.features is not None
    edges = torch.stack([graph.edge_rows, graph.indices.long()], dim=1).numpy()
    edges = edges[edges[:, 0] < edges[:, 1]]
    chosen = np.random.default_rng(seed).permutation(len(edges)) < round(HELD_OUT * len(edges))

    def both_ways(some: Any) -> sparse.csr_array:
        return _matrix(np.concatenate([some, some[:, ::-1]]), (graph.num_nodes, graph.num_nodes))

    return InsideGraph(graph.features.numpy(), both_ways(edges[~chosen]), both_ways(edges[chosen]))


def _matrix(pairs: Any, shape: tuple[int, int]) -> sparse.csr_array:
    made = sparse.csr_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=shape)
    made.sum_duplicates()
    made.data[:] = 1
    return made


def _small_graph(folder: Path) -> Dataset:
    vectors = (str(folder / "features.npz"),)
    tables = TableSpec(nodes=str(folder / "nodes.csv"), edges=str(folder / "edges.csv"), label="label", vectors=vectors)
    return open_tables(tables)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("data", type=Path, help="folder of the data sets")
    parser.add_argument("--out", type=Path, default=Path("results/links.json"))
    given = parser.parse_args()
    tasks: dict[str, Callable[[], NewNodes | InsideGraph]] = {
        f"debian depends, new packages, {part}": lambda part=part: debian(given.data / "debian", part)
        for part in ("val", "test")
    }
    tasks |= {f"setmm premises, new theorems, {part}": lambda part=part: setmm(part) for part in ("val", "test")}
    tasks |= {
        f"{name}, 10% of edges": lambda name=name: inside(_small_graph(given.data / name), 0)
        for name in ("pubmed", "amazon_photo")
    }
    tasks["setmm, 10% of edges"] = lambda: inside(open_data("setmm"), 0)
    rows = []
    for name, make in tasks.items():
        task = make()
        for method, scores in task.yardsticks().items():
            found = task.result(scores)
            made = {"mrr": found.mrr}
            made |= {f"hits@{k}": value for k, value in found.hits.items()}
            made |= {f"recall@{k}": value for k, value in found.recall.items()}
            made = {measure: round(value, 4) for measure, value in made.items()}
            sizes = {"queries": found.queries, "candidates": task.hidden.shape[1]}
            rows.append({"task": name, "method": method, **sizes, **made})
            print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
    about = "Yardsticks of link prediction: links of new nodes known by text alone, and edges held out inside a graph."
    write_result(given.out, about, "python -m benchmarks.links DATA", {"rows": rows})


if __name__ == "__main__":
    main()

"""Small random tables with two hubs, and a model trained on them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

import graphsage as gs
from graphsage.datasets.dataset import Dataset
from graphsage.datasets.tables import open_tables
from graphsage.tables.spec import TableSpec

SMALL: dict[str, Any] = {"dim": 8, "sample_sizes": (4, 3), "steps": 4, "batch_size": 8, "lr": 0.05}
NODES = 26
CLASSES = ("algebra", "logic")
SETTINGS: dict[str, dict[str, Any]] = {
    "no cap": {},
    "row cap": {"form": "paper", "max_degree": 4},
    "symmetric cap": {"form": "paper", "max_degree": 4, "cap": "symmetric", "projections": 5},
    "sampled": {"form": "reference", "max_degree": 4, "inference": "sampled", "keep_features": True},
    "lstm": {"aggregator": "lstm", "hidden_dim": 6, "max_degree": 5},
    "pool": {"aggregator": "pool", "hidden_dim": 6, "degree_features": True, "projections": 6, "keep_features": True},
    "unsupervised": {"task": "unsupervised", "max_degree": 4, "num_walks": 2},
}


@dataclass(frozen=True)
class Tables:
    """Rows of a node table (id, x, y, class) and of an edge table (source, target)."""

    nodes: tuple[tuple[Any, float, float, str], ...]
    edges: tuple[tuple[Any, Any], ...]

    def columns(self) -> tuple[dict[str, Any], dict[str, Any]]:
        ids, x, y, label = zip(*self.nodes, strict=True)
        source, target = zip(*self.edges, strict=True)
        return {"id": ids, "x": x, "y": y, "class": label}, {"source": source, "target": target}

    def data(self, **more_columns: Any) -> Dataset:
        """The data set of the tables; `more_columns` go to both."""
        nodes, edges = self.columns()
        return open_tables(
            TableSpec(
                nodes=pa.table(nodes | {name: make(len(self.nodes)) for name, make in more_columns.items()}),
                edges=pa.table(edges | {name: make(len(self.edges)) for name, make in more_columns.items()}),
                label="class",
                numeric=("x", "y"),
            )
        )

    def shuffled(self, seed: int) -> "Tables":
        """Other orders of rows, and of the two ends of an edge."""
        draw = np.random.default_rng(seed)
        edges = [self.edges[i][:: draw.choice([-1, 1])] for i in draw.permutation(len(self.edges))]
        return Tables(tuple(self.nodes[i] for i in draw.permutation(len(self.nodes))), tuple(edges))

    def renamed(self, names: dict[Any, Any]) -> "Tables":
        return Tables(
            tuple((names[id], *rest) for id, *rest in self.nodes), tuple((names[a], names[b]) for a, b in self.edges)
        )

    def without(self, id: Any) -> tuple["Tables", "Tables"]:
        """The tables without a node, and its own row with its edges."""
        own, others = ([row for row in self.nodes if (row[0] == id) == wanted] for wanted in (True, False))
        touching, rest = ([edge for edge in self.edges if (id in edge) == wanted] for wanted in (True, False))
        return Tables(tuple(others), tuple(rest)), Tables(tuple(own), tuple(touching))


def hub_tables(seed: int, integers: bool = False) -> Tables:
    """Ids are words, or integers that are not the row numbers."""
    draw = np.random.default_rng(seed)
    numbers = draw.permutation(10 * NODES)[:NODES]
    ids = [int(n) for n in numbers] if integers else [f"node {n}" for n in numbers]
    label = draw.permutation(NODES) % 2
    nodes = tuple(
        (id, float(draw.normal() + c), float(draw.normal()), CLASSES[c]) for id, c in zip(ids, label, strict=True)
    )
    pairs = [
        *((0, v) for v in range(1, NODES - 4)),
        *((1, v) for v in range(8, NODES)),
        *draw.integers(0, NODES, (20, 2)),
    ]
    chosen = {(min(a, b), max(a, b)) for a, b in pairs if a != b}
    return Tables(nodes, tuple((ids[a], ids[b]) for a, b in sorted(chosen)))


def train(data: Dataset, **settings: Any) -> gs.Model:
    return gs.train(data, "random", device="cpu", on_note=print, **{**SMALL, **settings})


def by_id(graph: gs.Graph, rows: Any) -> dict[str, np.ndarray[Any, Any]]:
    """Rows of a tensor by the ids of the nodes, as text."""
    return {str(graph.id_of(row)): rows[row].numpy() for row in range(graph.num_nodes)}

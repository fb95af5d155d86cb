"""The graphs that everything is measured on, made from a seed: the shapes of Reddit and of PPI."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from graphsage.graph.cap import without_self_loops
from graphsage.graph.graph import Graph
from graphsage.graph.split import Split


@dataclass(frozen=True)
class Shape:
    """Sizes of a made graph. Labels are planted: features and neighbors both tell something about the class."""

    nodes: int
    mean_degree: float
    features: int
    classes: int
    train: int
    multilabel: bool = False
    max_degree: int = 8000


REDDIT = Shape(232_965, 100, 602, 41, 152_410)
PPI = Shape(44_906, 28.8, 50, 121, 44_906, multilabel=True, max_degree=720)
SHAPES = {"reddit": REDDIT, "ppi": PPI}


def degrees_of(shape: Shape, generator: torch.Generator) -> Tensor:
    """Power-law degrees with the asked mean, between 1 and max_degree."""
    weights = torch.rand(shape.nodes, generator=generator).clamp_min(1e-6).pow(-0.6)
    factor = shape.mean_degree / float(weights.mean())
    for _ in range(20):  # the bounds take some of the mean away
        degrees = (weights * factor).round().clamp(1, shape.max_degree)
        factor *= shape.mean_degree / float(degrees.mean())
    return degrees.long()


def make(shape: Shape, seed: int = 0) -> tuple[Graph, Split]:
    """About shape.nodes * shape.mean_degree stored edges; every list of neighbors is ascending, as in any graph."""
    generator = torch.Generator().manual_seed(seed)
    group = torch.randint(shape.classes, (shape.nodes,), generator=generator)
    degrees = degrees_of(shape, generator)
    indptr = torch.cat([torch.zeros(1, dtype=torch.int64), degrees.cumsum(0)])
    rows = torch.repeat_interleave(torch.arange(shape.nodes), degrees)
    columns = torch.randint(shape.nodes, (len(rows),), generator=generator, dtype=torch.int64)
    alike = torch.rand(len(rows), generator=generator) < 0.4
    order = torch.argsort(group, stable=True)
    sizes = torch.bincount(group, minlength=shape.classes)
    first = torch.cat([torch.zeros(1, dtype=torch.int64), sizes.cumsum(0)])
    of_row = group[rows[alike]]
    columns[alike] = order[first[of_row] + (columns[alike] % sizes[of_row])]
    columns = (rows * shape.nodes + columns).sort().values % shape.nodes
    centers = torch.randn(shape.classes, shape.features, generator=generator)
    features = torch.randn(shape.nodes, shape.features, generator=generator).add_(centers[group], alpha=0.3)
    labels = group
    if shape.multilabel:
        likely = torch.rand(shape.classes, shape.classes, generator=generator) < 0.3
        labels = likely[group].to(torch.uint8)
    part = torch.full((shape.nodes,), 2, dtype=torch.uint8)
    part[torch.randperm(shape.nodes, generator=generator)[: shape.train]] = 0
    if shape.train == shape.nodes:
        part[:] = 0
    graph = Graph(indptr, columns.int(), features=features, labels=labels, direction="in")
    return graph, Split(part)


def write(folder: Path, shape: Shape, self_loops: bool = True) -> None:
    """Make the graph and save it as one .npy file per array, which a process can load without graphsage."""
    graph, split = make(shape)
    graph = graph if self_loops else without_self_loops(graph)
    assert graph.features is not None
    assert graph.labels is not None
    arrays = {
        "indptr": graph.indptr,
        "indices": graph.indices,
        "features": graph.features,
        "labels": graph.labels,
        "train": split.nodes("train"),
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name, tensor in arrays.items():
        np.save(folder / f"{name}.npy", tensor.numpy())


TABLE_ROWS = {"wide": 15_000, "mixed": 60_000, "edges": 600_000}
"""Rows of the node tables of `write_tables`, and of the edge table with integer ids."""


def write_tables(folder: Path) -> None:
    """Tables as users have them, each as CSV and Parquet: `wide` has 300 columns of floats; `mixed` has floats with
    missing cells, integers, categories, words and dates, and ids that are names, with `links` for its edges; `edges`
    has integer ids alone."""
    import pyarrow as pa
    from pyarrow import csv, parquet

    random = np.random.default_rng(0)
    n, m = TABLE_ROWS["wide"], TABLE_ROWS["mixed"]
    names = np.array([f"node-{i}" for i in range(m)])
    words = np.array([f"word{i}" for i in range(2000)])
    tables = {
        "wide": {"id": np.arange(n), "class": random.integers(0, 7, n)}
        | {f"f{i}": random.normal(size=n).astype(np.float32) for i in range(300)},
        "mixed": {"id": names, "class": words[random.integers(0, 9, m)]}
        | {f"f{i}": pa.array(random.normal(size=m).round(4), mask=random.random(m) < 0.05) for i in range(8)}
        | {f"count{i}": random.zipf(2.0, m).clip(max=10**6) for i in range(2)}
        | {f"group{i}": words[random.integers(0, 50, m)] for i in range(3)}
        | {"title": [" ".join(each) for each in words[random.integers(0, len(words), (m, 6))]]}
        | {"born": np.datetime64("2010-01-01") + random.integers(0, 4000, m)},
        "links": {"source": names[random.integers(0, m, 5 * m)], "target": names[random.integers(0, m, 5 * m)]},
        "edges": {each: random.integers(0, 10**5, TABLE_ROWS["edges"]) for each in ("source", "target")},
        "wide_edges": {each: random.integers(0, n, 5 * n) for each in ("source", "target")},
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name, columns in tables.items():
        table = pa.table(columns)
        csv.write_csv(table, folder / f"{name}.csv")
        parquet.write_table(table, folder / f"{name}.parquet")

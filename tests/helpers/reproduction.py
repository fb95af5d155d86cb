"""A reproduction that takes seconds: a profile of few steps and small models, and two small data sets."""

from pathlib import Path
from typing import Any

import torch

from graphsage.checksummed_json import read_checksummed
from graphsage.experiments.data import Source
from graphsage.experiments.profile import Profile
from graphsage.experiments.reproduce import start
from graphsage.experiments.session import Session
from graphsage.graph.split import Split
from graphsage.graph.storage import save_graph
from planted import planted_graph, planted_split

TINY = Profile(
    name="tiny",
    seeds=1,
    forms=("paper",),
    training={
        task: {"dim": 8, "sample_sizes": (4, 3), "batch_size": 16, "steps": 12}
        for task in ("supervised", "unsupervised")
    },
    rates={"supervised": (0.01, 0.001), "unsupervised": (0.001,)},
    deepwalk={"passes": 1, "num_walks": 5, "dim": 8},
    deepwalk_rates=(0.8,),
    sample_sizes=(2, 4),
    depths=((3,), (4, 3)),
    noise_levels=(0.0, 1.0),
    noise_aggregators=("mean",),
    timed={"dim": 8, "sample_sizes": (4, 3), "batch_size": 16},
    timed_steps=4,
    timed_nodes=10,
    theory_nodes=20,
    theory_steps=3,
)


def two_sources(folder: Path) -> tuple[Source, Source]:
    """A single graph, and several graphs with many labels under the name of PPI."""
    graph = planted_graph()
    save_graph(graph, folder / "one", {"given": planted_split(graph)})
    several = planted_graph(60, classes=3, multilabel=True)
    number = torch.arange(60) // 20
    rows = several.edge_rows
    keep = number[rows] == number[several.indices]
    edges = torch.stack([rows[keep], several.indices[keep].long()], dim=1)
    apart = several.from_edges(edges, 60, features=several.features, labels=several.labels, graph_number=number)
    save_graph(apart, folder / "apart", {"given": Split.by_graph(number, [1], [2])})
    return Source("one", str(folder / "one")), Source("ppi", str(folder / "apart"))


def session(sources: tuple[Source, ...], out: Path, **options: Any) -> Session:
    return start(sources, TINY, out, device="cpu", **options)


def read(out: Path, name: str) -> dict[str, Any]:
    return read_checksummed(out / f"{name}.json")

"""graphsage itself."""

from typing import Any

import torch

from benchmarks.contenders.files import FOLDER, write_tables
from benchmarks.contenders.serve import Task
from benchmarks.ours import Ours
from graphsage.datasets.tables import open_tables
from graphsage.graph.build import from_edges
from graphsage.graph.graph import Graph
from graphsage.inference.embed import embed_exact
from graphsage.kernels.random import Stream
from graphsage.sampling.minibatch import sample_minibatch
from graphsage.sampling.walks import random_walks
from graphsage.tables.spec import TableSpec
from graphsage.training.config import Config
from graphsage.training.objectives.supervised import Labeled, Supervised

WIDTHS = {"pool": 512, "lstm": 128}


def prepare(arrays: dict[str, Any], task: str) -> Task:
    """`step mean`, `step mean float16`, `presampled mean`, `inference mean`, `sampling`, `walks`, `build`, `open`,
    `tables`."""
    torch.set_num_threads(2)
    kind, *words = task.split()
    tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
    graph = Graph(
        tensors["indptr"], tensors["indices"], features=tensors["features"], labels=tensors["labels"], direction="in"
    )
    nodes = tensors["train"]
    if kind in ("step", "presampled", "inference"):
        aggregator = words[0]
        settings: dict[str, Any] = {"aggregator": aggregator, "hidden_dim": WIDTHS.get(aggregator)}
        if len(words) > 1:
            settings |= {"task": "unsupervised"} if words[1] == "unsupervised" else {"feature_type": words[1]}
        ours = Ours(graph, nodes, Config(max_degree=None, **settings), "cpu")
        if kind == "presampled":
            return presampled(ours)
        return ours.run if kind == "step" else lambda: embed_exact(ours.encoder, ours.graph, ours.tables)
    turn = iter(range(1 << 30))
    if kind == "sampling":

        def sample() -> object:
            at = next(turn) * 512 % (len(nodes) - 512)
            seeds = nodes[at : at + 512]
            return sample_minibatch(graph, seeds, (25, 10), Stream(0, "bench", at).keys(seeds))

        return sample
    if kind == "walks":
        starts = nodes[:100_000]
        return lambda: random_walks(graph, starts, 5, Stream(next(turn), "bench").keys(starts))
    if kind == "build":
        order = torch.randperm(graph.num_stored_edges)
        edges = torch.stack([graph.indices.long()[order], graph.edge_rows[order]], dim=1)
        return lambda: from_edges(edges, graph.num_nodes, directed=True)
    if kind == "open":
        graph.save(FOLDER / "graph")
        return lambda: _first_rows(Graph.open(FOLDER / "graph"), nodes)
    if kind == "tables":
        names = tuple(write_tables(arrays))
        spec = TableSpec(
            nodes=str(FOLDER / "nodes.csv"), edges=str(FOLDER / "edges.csv"), numeric=names, direction="in"
        )

        def read() -> object:
            data = open_tables(spec)
            return data.with_features(data.split(None))

        return read
    raise ValueError(f"no task {task!r}")


def _first_rows(opened: Graph, nodes: torch.Tensor) -> torch.Tensor:
    assert opened.features is not None
    return opened.features[nodes[:512]].sum()


def presampled(ours: Ours) -> Task:
    """A step whose neighborhoods were drawn before: reading, learning, Adam."""
    objective, sizes = ours.objective, (25, 10)
    assert isinstance(objective, Supervised)
    examples = [tuple(tensor[0] for tensor in objective.choose_examples(step)) for step in range(6)]
    batches = [sample_minibatch(ours.graph, targets, sizes, keys) for targets, keys in examples]
    turn = iter(range(1 << 30))

    def step() -> None:
        at = next(turn) % len(examples)
        ours.optimizer.zero_grad(set_to_none=True)
        objective.next_step()
        inputs = objective.encoder.read(ours.tables, batches[at].neighborhoods)
        loss = objective.loss(Labeled(inputs, examples[at][1], objective.labels[examples[at][0]], None))
        torch.autograd.backward(loss)
        ours.optimizer.step()

    return step

"""A small graph with a planted answer: two kinds of nodes, noisy features, edges mostly within a kind."""

import torch
from torch import Tensor

from graphsage.graph.graph import Graph
from graphsage.graph.split import Split
from graphsage.training.objectives.base import Objective


def planted_graph(
    num_nodes: int = 120,
    seed: int = 0,
    *,
    classes: int = 2,
    multilabel: bool = False,
    direction: str = "merged",
    weighted: bool = False,
) -> Graph:
    generator = torch.Generator().manual_seed(seed)
    kind = torch.randint(classes, (num_nodes,), generator=generator)
    features = torch.randn(num_nodes, 6, generator=generator) + kind[:, None]
    pairs = torch.randint(num_nodes, (num_nodes * 12, 2), generator=generator)
    same = kind[pairs[:, 0]] == kind[pairs[:, 1]]
    edges = pairs[same | (torch.rand(len(pairs), generator=generator) < 0.1)]
    labels = torch.nn.functional.one_hot(kind, classes) if multilabel else kind
    return Graph.from_edges(
        edges,
        num_nodes,
        features=features,
        labels=labels,
        class_names=[f"kind {c}" for c in range(classes)],
        direction=direction,
        edge_weight=1 + torch.arange(len(edges)) % 5 if weighted else None,
    )


def planted_split(graph: Graph, seed: int = 0) -> Split:
    return Split.random(graph.num_nodes, (0.6, 0.2, 0.2), seed)


SMALL = {"dim": 8, "sample_sizes": (4, 3), "batch_size": 16, "epochs": 3}


def step_loss(objective: Objective, step: int) -> Tensor:
    """The loss of one step, with its three parts in turn."""
    return objective.loss(objective.gather(tuple(tensor[0] for tensor in objective.choose_examples(step))))

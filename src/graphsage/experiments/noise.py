"""Figure 3: features replaced step by step with Gaussian noise."""

import torch

from graphsage.experiments.data import Named
from graphsage.graph.graph import Graph
from graphsage.kernels.random import Stream, derive, uniform


def with_noise(data: Named, share: float, seed: int) -> Graph:
    """The graph with `share` of its feature columns, drawn by the seed, replaced by standard normal numbers.

    The paper replaces the feature matrix "incrementally" and does not say by rows or columns: columns, so that every
    node keeps the same number of true features. The more are replaced, the fewer stay: those of a smaller share are
    among those of a larger one.
    """
    graph = data.graph
    if not share or graph.features is None:
        return graph
    columns = torch.arange(graph.num_features)
    order = torch.argsort(Stream(seed, "noise columns").keys(columns), stable=True)
    gone = order[: round(share * len(columns))]
    keys = Stream(seed, "noise").keys(torch.arange(graph.num_nodes))
    features = graph.features.float().clone()
    for column in gone.tolist():
        features[:, column] = normal(derive(keys, column)).float()
    return graph.replace(features=features)


def normal(bits: torch.Tensor) -> torch.Tensor:
    """Standard normal numbers from 64-bit draws (Box and Muller), same shape, float64."""
    radius = torch.sqrt(-2 * torch.log1p(-uniform(bits)))
    return radius * torch.cos(2 * torch.pi * uniform(derive(bits, 1)))

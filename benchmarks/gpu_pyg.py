"""PyTorch Geometric's training step on a GPU, features and model on the device: with its loader, and without one.

Its loader needs pyg-lib or torch-sparse. `step_given` needs neither: batches are drawn beforehand, and a step is what
PyG does with one: read the distinct nodes' rows, two SAGEConv layers on the relabeled edges, backward, Adam.
"""

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from benchmarks.contenders.pyg import SIZES, B, Sage
from graphsage.graph.graph import Graph
from graphsage.kernels.random import Stream
from graphsage.sampling.minibatch import sample_minibatch

DRAWN = 8  # batches of `step_given`, used in turn
WORKERS = 16
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def step_with_loader(graph: Graph, nodes: Tensor) -> Callable[[], None]:
    """NeighborLoader with 16 workers, as PyG's examples have it."""
    from torch_geometric.data import Data
    from torch_geometric.loader import NeighborLoader

    rows = torch.repeat_interleave(torch.arange(graph.num_nodes), graph.degrees)
    data = Data(edge_index=torch.stack([graph.indices.long(), rows]), num_nodes=graph.num_nodes)
    loader = NeighborLoader(
        data, SIZES, input_nodes=nodes, batch_size=B, shuffle=True, num_workers=WORKERS, persistent_workers=True
    )

    def batches() -> Iterator[tuple[Tensor, Tensor]]:
        while True:
            for batch in loader:
                yield batch.n_id.to(DEVICE), batch.edge_index.to(DEVICE)

    return _step(graph, batches())


def step_given(graph: Graph, nodes: Tensor) -> Callable[[], None]:
    """The same step on batches that lie on the GPU."""
    return _step(graph, itertools.cycle([_drawn(graph, nodes, number) for number in range(DRAWN)]))


def _drawn(graph: Graph, nodes: Tensor, number: int) -> tuple[Tensor, Tensor]:
    """Distinct nodes, targets first and then hop by hop, and the edges between their places."""
    targets = nodes[torch.randperm(len(nodes), generator=torch.Generator().manual_seed(number))[:B]]
    batch = sample_minibatch(graph, targets, (25, 10), Stream(number, "bench").keys(targets))
    near = batch.rows[B:]  # (B * 10,)
    once = torch.from_numpy(np.unique(near.numpy(), return_index=True)[1])  # PyG expands a node once
    far = batch.neighborhoods[0][0].index[B:][once]  # (distinct, 25)
    sources = torch.cat([near, far.flatten()])
    goals = torch.cat([targets.repeat_interleave(len(near) // B), near[once].repeat_interleave(far.shape[1])])
    met = torch.cat([targets, sources]).numpy()
    distinct, first, where = np.unique(met, return_index=True, return_inverse=True)
    place = np.empty(len(distinct), np.int64)
    place[np.argsort(first, kind="stable")] = np.arange(len(distinct))
    at = torch.from_numpy(place[where])
    of_goal = torch.from_numpy(place[np.searchsorted(distinct, goals.numpy())])
    order = torch.from_numpy(distinct[np.argsort(place)])
    return order.to(DEVICE), torch.stack([at[B:], of_goal]).to(DEVICE)


def _step(graph: Graph, batches: Iterator[tuple[Tensor, Tensor]]) -> Callable[[], None]:
    assert graph.features is not None
    assert graph.labels is not None
    x, y = graph.features.to(DEVICE), graph.labels.to(DEVICE)
    torch.manual_seed(0)
    model: Any = Sage(x.shape[1], int(y.max()) + 1, "mean").to(DEVICE)
    optimizer = torch.optim.Adam(model.parameters(), 0.01, fused=True)

    def run() -> None:
        n_id, edge_index = next(batches)
        optimizer.zero_grad()
        scores = model(x[n_id], edge_index, B)
        torch.autograd.backward(F.cross_entropy(scores, y[n_id[:B]]))
        optimizer.step()

    return run

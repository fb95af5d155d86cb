"""The control: PyG's SAGEConv, of the same size as our model and trained the same way, on the same training graph.

Two SAGEConv layers (mean, 256 wide) with ReLU and dropout, and a linear classifier; Adam; batches of 512 training nodes
in a new order every epoch; features standardized by the training nodes. It reads full neighborhoods, in training those
of the training graph, in evaluation those of the full graph: no sampling error is in its numbers.
"""

import time
from collections.abc import Collection
from typing import Any

import numpy as np
import torch
from scipy.sparse import csr_array
from torch import Tensor, nn
from torch.nn import functional
from torch_geometric.nn import SAGEConv

from graphsage.evaluation.f1 import f1_scores
from graphsage.features.scaler import fit_scaler
from graphsage.graph.graph import Graph
from graphsage.graph.split import Split, training_graph

BATCH = 512
DIM = 256


class Sage(nn.Module):
    """h = ReLU(W_1 x_v + W_2 mean x_N(v) + b) twice, then a linear map to class scores."""

    def __init__(self, in_dim: int, num_classes: int, dropout: float) -> None:
        super().__init__()
        self.first, self.second = SAGEConv(in_dim, DIM), SAGEConv(DIM, DIM)
        self.head = nn.Linear(DIM, num_classes)
        self.dropout = dropout

    def forward(self, x: Tensor, edges: csr_array, nodes: np.ndarray) -> Tensor:
        """Class scores of `nodes`, (B, C), from all their neighbors and all neighbors of those."""
        near = edges[nodes]
        inner = np.union1d(nodes, near.indices)  # every node whose h^1 is needed
        h = self._layer(self.first, x, x[torch.from_numpy(inner).to(x.device)], edges[inner])
        places = torch.from_numpy(np.searchsorted(inner, nodes)).to(x.device)
        columns = csr_array((near.data, np.searchsorted(inner, near.indices), near.indptr), (len(nodes), len(inner)))
        return self.head(self._layer(self.second, h, h[places], columns))

    def _layer(self, conv: SAGEConv, source: Tensor, own: Tensor, rows: csr_array) -> Tensor:
        parts = (torch.from_numpy(part.astype(np.int64)) for part in (rows.indptr, rows.indices))
        values = torch.from_numpy(rows.data)
        matrix = torch.sparse_csr_tensor(*parts, values, rows.shape, check_invariants=False).to(source.device)
        return functional.dropout(functional.relu(conv((source, own), matrix)), self.dropout, self.training)


def score_pyg(
    graph: Graph, split: Split, settings: dict[str, Any], watched: Collection[int], device: str = "cpu"
) -> dict[str, Any]:
    """Train with `settings` (lr, dropout, epochs, seed): the validation curve, and micro and macro F1 at the end.

    The curve holds a number where the epoch is one of `watched`, and 0 elsewhere, to save time.
    """
    torch.manual_seed(settings["seed"])
    x = fit_scaler([graph.features], split.nodes("train")).apply(graph.features).to(device)
    seen, full = adjacency(training_graph(graph, split)), adjacency(graph)
    model = Sage(x.shape[1], graph.num_classes, settings["dropout"]).to(device)
    adam = torch.optim.Adam(model.parameters(), lr=settings["lr"])

    def f1(part: str) -> tuple[float, float]:
        model.eval()
        nodes = split.nodes(part)
        with torch.no_grad():
            predicted = model(x, full, nodes.numpy()).argmax(dim=1).cpu()
        made = f1_scores(graph.labels[nodes].numpy(), predicted.numpy())
        return made.micro, made.macro

    train = split.nodes("train")
    curve = []
    began = time.monotonic()
    for epoch in range(1, settings["epochs"] + 1):
        model.train()
        for batch in train[torch.randperm(len(train))].split(BATCH):
            loss = functional.cross_entropy(model(x, seen, batch.numpy()), graph.labels[batch].to(device))
            adam.zero_grad()
            loss.backward()
            adam.step()
        curve.append(f1("val")[0] if epoch in watched else 0.0)
    seconds = time.monotonic() - began
    return {"curve": tuple(curve), "f1": {part: f1(part) for part in ("val", "test")}, "seconds": seconds}


def adjacency(graph: Graph) -> csr_array:
    """Row v holds a one for every neighbor of v; SAGEConv divides by their number."""
    shape = (graph.num_nodes, graph.num_nodes)
    return csr_array((np.ones(len(graph.indices), np.float32), graph.indices.numpy(), graph.indptr.numpy()), shape)

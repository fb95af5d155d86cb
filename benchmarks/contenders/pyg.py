"""PyTorch Geometric: its NeighborLoader and SAGEConv, set up as its examples do, in the setting that is fastest.

Its faster sampler (pyg-lib) is not to be had from the package registries, so torch-sparse's is used; the `presampled`
tasks leave sampling out.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.loader import NeighborLoader
from torch_geometric.nn import SAGEConv
from torch_geometric.nn.aggr import LSTMAggregation
from torch_geometric.utils import to_torch_csc_tensor

from benchmarks.contenders.files import FOLDER, write_tables
from benchmarks.contenders.serve import Task

B, H = 512, 256
SIZES = [10, 25]


class Sage(nn.Module):
    """Two SAGEConv layers of 256 with normalized outputs, and a linear head: the paper's form."""

    def __init__(self, dim: int, classes: int, aggregator: str) -> None:
        super().__init__()
        options: dict[str, Any] = {"normalize": True, "bias": False}
        if aggregator == "pool":
            options |= {"aggr": "max", "project": True}
        self.convs = nn.ModuleList()
        for width in (dim, H):
            more = dict(options)
            conv = SAGEConv(width, H, **more)
            if aggregator == "lstm":  # SAGEConv's own "lstm" is as wide as its input; ours is 128 wide
                conv.aggr_module = LSTMAggregation(width, 128)
                conv.lin_l = nn.Linear(128, H, bias=False)
            self.convs.append(conv)
        self.head = nn.Linear(H, classes)

    def forward(self, x: Tensor, edge_index: Tensor, targets: int) -> Tensor:
        """Trimmed: the first layer runs on targets and their neighbors, the second one on targets. torch-sparse lists
        nodes hop by hop but does not say how many there are of each, which `trim_to_layer` would need."""
        last = edge_index[:, edge_index[1] < targets]
        inner = max(int(last[0].max()) + 1, targets)
        h = self.convs[0]((x, x[:inner]), edge_index).relu()
        return self.head(self.convs[1]((h, h[:targets]), last).relu())


def prepare(arrays: dict[str, Any], task: str) -> Task:
    """`step mean`, `presampled mean`, `inference mean`, `sampling`, `walks`, `build`, `open`, `tables`."""
    torch.set_num_threads(2)
    kind, *words = task.split()
    indptr, indices = torch.from_numpy(arrays["indptr"]), torch.from_numpy(arrays["indices"]).long()
    x, y = torch.from_numpy(arrays["features"]), torch.from_numpy(arrays["labels"])
    nodes = torch.from_numpy(arrays["train"])
    rows = torch.repeat_interleave(torch.arange(len(x)), indptr.diff())
    if kind == "walks":
        # The operator alone, as Node2Vec calls it: torch_cluster's own function sorts the graph each time.
        import torch_cluster  # noqa: F401

        starts, walk = nodes[:100_000], torch.ops.torch_cluster.random_walk
        return lambda: walk(indptr, indices, starts, 4, 1.0, 1.0)[0]
    if kind == "build":
        order = torch.randperm(len(rows))
        edge_index = torch.stack([indices[order], rows[order]])
        return lambda: to_torch_csc_tensor(edge_index, size=(len(x), len(x)))
    if kind == "open":
        torch.save(Data(x=x, y=y, edge_index=torch.stack([indices, rows])), FOLDER / "graph.pt")

        def reopen() -> Tensor:
            return torch.load(FOLDER / "graph.pt", weights_only=False).x[nodes[:512]].sum()

        return reopen
    if kind == "tables":
        import pandas as pd

        names = write_tables(arrays)

        def read() -> object:
            table, edges = pd.read_csv(FOLDER / "nodes.csv"), pd.read_csv(FOLDER / "edges.csv")
            features, ids = torch.from_numpy(table[names].to_numpy("float32")), pd.Index(table["id"])
            ends = torch.stack([torch.from_numpy(ids.get_indexer(edges[end])) for end in ("source", "target")])
            return features, to_torch_csc_tensor(ends, size=(len(features), len(features)))

        return read
    classes = y.shape[1] if y.dim() == 2 else int(y.max()) + 1
    data = Data(x=x, y=y, edge_index=torch.stack([indices, rows]))
    torch.manual_seed(0)
    model = Sage(x.shape[1], classes, words[0] if words else "mean")
    optimizer = torch.optim.Adam(model.parameters(), 0.01)

    def learn(batch: Any) -> None:
        optimizer.zero_grad()
        scores = model(batch.x, batch.edge_index, batch.batch_size)
        truth = batch.y[: batch.batch_size]
        if truth.dim() == 2:
            loss = F.binary_cross_entropy_with_logits(scores, truth.float())
        else:
            loss = F.cross_entropy(scores, truth)
        loss.backward()
        optimizer.step()

    if kind == "inference":
        adjacency = torch.sparse_csr_tensor(indptr, indices, torch.ones(len(indices)), (len(x), len(x)))

        @torch.no_grad()
        def infer() -> object:
            h = x
            for conv in model.convs:
                h = conv(h, adjacency).relu()
            return h

        return infer
    loader = NeighborLoader(data, SIZES, input_nodes=nodes, batch_size=B, shuffle=True, num_workers=0)

    def batches() -> Any:
        while True:
            yield from loader

    stream = batches()
    if kind == "sampling":
        bare = Data(edge_index=data.edge_index, num_nodes=len(x))
        stream = iter(NeighborLoader(bare, SIZES, input_nodes=nodes, batch_size=B, shuffle=True, num_workers=0))
        return lambda: next(stream)
    if kind == "presampled":
        drawn = [next(stream) for _ in range(6)]
        turn = iter(range(1 << 30))

        def step() -> None:
            batch = drawn[next(turn) % len(drawn)]
            batch.x = x[batch.n_id]
            learn(batch)

        return step
    return lambda: learn(next(stream))

"""DGL: its NeighborSampler + SAGEConv as in its examples, GraphBolt's loader, and its sparse-matrix inference."""

from typing import Any

import dgl
import dgl.nn as dglnn
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks.contenders.files import FOLDER, write_tables
from benchmarks.contenders.serve import Task

B, H = 512, 256


class Sage(nn.Module):
    def __init__(self, dim: int, classes: int, aggregator: str) -> None:
        super().__init__()
        norm = lambda h: F.normalize(h, dim=1)  # noqa: E731
        self.layers = nn.ModuleList(
            dglnn.SAGEConv(width, H, aggregator, bias=False, norm=norm, activation=F.relu) for width in (dim, H)
        )
        self.head = nn.Linear(H, classes)

    def forward(self, blocks: Any, h: Tensor) -> Tensor:
        for layer, block in zip(self.layers, blocks, strict=True):
            h = layer(block, h)
        return self.head(h)


def prepare(arrays: dict[str, Any], task: str) -> Task:
    """`step mean`, `graphbolt mean`, `inference mean`, `sampling`, `walks`, `build`, `open`, `tables`."""
    torch.set_num_threads(2)
    kind, *words = task.split()
    indptr, indices = torch.from_numpy(arrays["indptr"]), torch.from_numpy(arrays["indices"]).long()
    x, y = torch.from_numpy(arrays["features"]), torch.from_numpy(arrays["labels"])
    nodes = torch.from_numpy(arrays["train"])
    rows = torch.repeat_interleave(torch.arange(len(x)), indptr.diff())
    graph = dgl.graph((indices, rows), num_nodes=len(x))
    if kind == "build":
        order = torch.randperm(len(rows))
        source, target = indices[order], rows[order]

        def build() -> object:
            made = dgl.graph((source, target), num_nodes=len(x))
            made.create_formats_()
            return made

        return build
    if kind == "open":
        graph.ndata["x"] = x
        dgl.save_graphs(str(FOLDER / "graph.bin"), [graph])
        return lambda: dgl.load_graphs(str(FOLDER / "graph.bin"))[0][0].ndata["x"][nodes[:512]].sum()
    if kind == "tables":
        import pandas as pd

        names = write_tables(arrays)

        def read() -> object:
            table, edges = pd.read_csv(FOLDER / "nodes.csv"), pd.read_csv(FOLDER / "edges.csv")
            features, ids = torch.from_numpy(table[names].to_numpy("float32")), pd.Index(table["id"])
            ends = tuple(torch.from_numpy(ids.get_indexer(edges[end])) for end in ("source", "target"))
            made = dgl.graph(ends, num_nodes=len(features))
            made.ndata["x"] = features
            made.create_formats_()
            return made

        return read
    classes = y.shape[1] if y.dim() == 2 else int(y.max()) + 1
    if kind == "walks":
        starts = nodes[:100_000]
        return lambda: dgl.sampling.random_walk(graph, starts, length=4)
    torch.manual_seed(0)
    model = Sage(x.shape[1], classes, words[0] if words else "mean")
    optimizer = torch.optim.Adam(model.parameters(), 0.01)

    def learn(blocks: Any, inputs: Tensor, truth: Tensor) -> None:
        optimizer.zero_grad()
        scores = model(blocks, inputs)
        many = truth.dim() == 2
        loss = F.binary_cross_entropy_with_logits(scores, truth.float()) if many else F.cross_entropy(scores, truth)
        loss.backward()
        optimizer.step()

    if kind == "inference":
        full = [graph, graph]

        def infer() -> object:
            with torch.no_grad():
                h = x
                for layer, block in zip(model.layers, full, strict=True):
                    h = layer(block, h)
                return h

        return infer
    if kind == "graphbolt":
        import dgl.graphbolt as gb

        sampling_graph = gb.fused_csc_sampling_graph(indptr, indices)
        pipe = gb.ItemSampler(gb.ItemSet((nodes, y[nodes]), names=("seed_nodes", "labels")), batch_size=B, shuffle=True)
        pipe = pipe.sample_neighbor(sampling_graph, [25, 10])
        loader = gb.DataLoader(pipe, num_workers=0)

        def batches() -> Any:
            while True:
                yield from loader

        stream = batches()

        def bolt() -> None:
            batch = next(stream)
            learn(batch.blocks, x[batch.input_nodes], batch.labels)

        return bolt
    sampler = dgl.dataloading.NeighborSampler([25, 10])
    loader = dgl.dataloading.DataLoader(graph, nodes, sampler, batch_size=B, shuffle=True, num_workers=0)

    def endless() -> Any:
        while True:
            yield from loader

    stream = endless()
    if kind == "sampling":
        return lambda: next(stream)

    def step() -> None:
        inputs, outputs, blocks = next(stream)
        learn(blocks, x[inputs], y[outputs])

    return step

"""The control of link prediction: PyG's SAGEConv of the same size, with the same masking and the same negatives.

Two SAGEConv layers (mean, 256 wide), the result scaled to length 1, and a learned factor on the dot product. A step
removes the edges of its batch from the graph in both directions, so that no tree holds a link that is asked for; the
targets of the batch are each other's negatives, corrected for their frequency, without known links. Each step embeds
the whole graph: no sampling error is in its numbers.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch_geometric.nn import SAGEConv

from graphsage.evaluation.link_scores import LinkScores, Questions, link_scores
from graphsage.features.scaler import fit_scaler
from graphsage.graph.graph import Graph
from graphsage.graph.link_split import LinkPart, LinkSplit

DIM, VALIDATION_SOURCES = 256, 1000


class Sage(nn.Module):
    def __init__(self, in_dim: int, dropout: float) -> None:
        super().__init__()
        self.first, self.second = SAGEConv(in_dim, DIM), SAGEConv(DIM, DIM)
        self.scale = nn.Parameter(torch.tensor(2.0))
        self.dropout = dropout

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        h = functional.dropout(functional.relu(self.first(x, edges)), self.dropout, self.training)
        return functional.normalize(self.second(h, edges), dim=1)


def score_pyg(
    graph: Graph, split: LinkSplit, settings: dict[str, Any], device: str
) -> tuple[Callable[[LinkPart, Questions], LinkScores], dict[str, Any]]:
    """Train with `settings` (dropout, epochs, patience, seed); what scores a part, and the epoch that was kept."""
    where = torch.device("cuda" if device == "auto" and torch.cuda.is_available() else "cpu")
    torch.manual_seed(settings["seed"])
    assert graph.features is not None
    x = fit_scaler([graph.features], torch.arange(graph.num_nodes)).apply(graph.features).to(where)
    model = Sage(x.shape[1], settings["dropout"]).to(where)
    adam = torch.optim.Adam(model.parameters(), lr=settings.get("lr", 0.001))
    edges, pairs = _edges(split.train.messages).to(where), split.train.pairs.to(where)
    n = graph.num_nodes
    codes = torch.sort(split.train.known.to(where) @ torch.tensor([n, 1], device=where)).values
    common = torch.bincount(split.train.known[:, 1], minlength=n).clamp(min=1).log().to(where)

    def scores(part: LinkPart, asked: Questions) -> LinkScores:
        model.eval()
        with torch.no_grad():
            z = model(x, _edges(part.messages).to(where)).cpu().numpy()
        return link_scores(asked, lambda rows: z[asked.sources[rows]] @ z[asked.candidates].T)

    def linked(asked: Tensor) -> Tensor:
        at = torch.searchsorted(codes, asked).clamp_max(len(codes) - 1)
        return codes[at] == asked

    questions = Questions.of(split.val, VALIDATION_SOURCES, settings["seed"])
    best, kept, weights = -1.0, 0, model.state_dict()
    for epoch in range(1, settings["epochs"] + 1):
        model.train()
        for batch in pairs[torch.randperm(len(pairs), device=where)].split(512):
            turned = torch.rand(len(batch), device=where) < 0.5
            u, v = torch.where(turned[:, None], batch.flip(1), batch).unbind(1)
            hidden = torch.sort(torch.cat([u * n + v, v * n + u])).values
            code = edges[0] * n + edges[1]
            at = torch.searchsorted(hidden, code).clamp_max(len(hidden) - 1)
            z = model(x, edges[:, hidden[at] != code])
            s = model.scale.exp() * z[u] @ z[v].t() - common[v]
            wrong = ~linked(u[:, None] * n + v) & (u[:, None] != v)
            own = torch.eye(len(u), dtype=torch.bool, device=where)
            loss = functional.cross_entropy(
                s.masked_fill(~(wrong | own), -torch.inf), torch.arange(len(u), device=where)
            )
            adam.zero_grad()
            loss.backward()
            adam.step()
        found = scores(split.val, questions).mrr
        if found > best:
            best, kept = found, epoch
            weights = {name: value.clone() for name, value in model.state_dict().items()}
        elif epoch - kept >= settings["patience"]:
            break
    model.load_state_dict(weights)
    return scores, {"epoch": kept}


def _edges(graph: Graph) -> Tensor:
    """(2, E): from neighbor to node."""
    return torch.from_numpy(np.stack([graph.indices.numpy().astype(np.int64), graph.edge_rows.numpy()]))

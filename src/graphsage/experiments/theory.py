"""Section 5: clustering coefficients by Theorem 1's construction, and learned from random features (Corollary 2)."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from graphsage.experiments.data import opened
from graphsage.experiments.record import spread
from graphsage.experiments.session import Session
from graphsage.experiments.theorem1 import EPSILON, clustering_coefficients, coloring, constructed
from graphsage.experiments.trials import make_trial
from graphsage.graph.graph import Graph
from graphsage.model.encoder import Encoder, EncoderConfig
from graphsage.sampling.minibatch import whole_graph
from graphsage.training.train import choose_device
from graphsage.training.trials import Result

AGGREGATORS = ("pool", "mean", "gcn")
FEATURES = 32


def run(session: Session) -> Path:
    profile = session.profile
    runs = session.runs({
        aggregator: make_trial("theory", "theory", f"theory {aggregator}", None, aggregator=aggregator,
                               nodes=profile.theory_nodes, steps=profile.theory_steps)
        for aggregator in AGGREGATORS
    })  # fmt: skip
    learned = [{"aggregator": aggregator, **{name: spread(run[name] for run in own)
                                             for name in ("r2_same_graphs", "r2_new_graphs")}}
               for aggregator, own in runs.items()]  # fmt: skip
    settings = {"nodes": profile.theory_nodes, "steps": profile.theory_steps, "features": FEATURES}
    body = {"constructed": check_construction(session), "epsilon": EPSILON, "learned": learned, "settings": settings}
    return session.keep(
        "theory", "Section 5: clustering coefficients, constructed and learned from random features", body
    )


def check_construction(session: Session) -> list[dict[str, Any]]:
    """The constructed network on random graphs and on a piece of the data's graph: its largest error."""
    graphs = {f"small world, seed {seed}": small_world(30, 4, 0.2, seed) for seed in range(3)}
    source = session.evolving
    graphs[f"{source.name}, 40 nodes around the first"] = piece(opened(source).graph, 40)
    found = []
    for name, graph in graphs.items():
        x = torch.randn(graph.num_nodes, 4, generator=torch.Generator().manual_seed(0))
        counted = clustering_coefficients(graph)
        error = (constructed(graph, x) - counted).abs().max()
        found.append({
            "graph": name, "nodes": graph.num_nodes, "colors": max(coloring(graph)) + 1,
            "mean_coefficient": round(float(counted.mean()), 4), "largest_error": float(f"{error:.1e}"),
        })  # fmt: skip
    return found


def small_world(n: int, degree: int, rewired: float, seed: int) -> Graph:
    """A ring where each node is joined to its `degree` nearest, a share of the edges moved at random."""
    rng = np.random.default_rng(seed)
    edges = np.array([(v, (v + step) % n) for v in range(n) for step in range(1, degree // 2 + 1)])
    moved = rng.random(len(edges)) < rewired
    edges[moved, 1] = rng.integers(0, n, moved.sum())
    return Graph.from_edges(edges[edges[:, 0] != edges[:, 1]], n)


def piece(graph: Graph, size: int) -> Graph:
    """The first `size` nodes met walking outwards from the first node that has neighbors, and the edges among them."""
    start = int(torch.nonzero(graph.degrees > 0)[0, 0])
    met, queue = [start], [start]
    while queue and len(met) < size:
        for node in graph.neighbors(queue.pop(0)).tolist():
            if node not in met and len(met) < size:
                met.append(node)
                queue.append(node)
    place = {node: row for row, node in enumerate(met)}
    edges = [(place[u], place[v]) for u in met for v in graph.neighbors(u).tolist() if v in place and u < v]
    return Graph.from_edges(np.array(edges, np.int64).reshape(-1, 2), len(met))


def learn(settings: dict[str, Any]) -> Result:
    """Train to predict coefficients of four small worlds from normal features, drawn anew at every step so that only
    structure can help; score on them with other features and on four new graphs: R^2, 1 is perfect and 0 the mean."""
    device = choose_device(settings["device"])
    n, seed = settings["nodes"], settings["seed"]
    worlds = [small_world(n, degree, rewired, 1000 * seed + number)
              for number, (degree, rewired) in enumerate([(4, 0.1), (8, 0.3), (12, 0.6), (16, 0.1)] * 2)]  # fmt: skip
    seen, new = (_joined(part).to(device) for part in (worlds[:4], worlds[4:]))
    truth = {name: _standardized(clustering_coefficients(graph.to("cpu"))).to(device)
             for name, graph in (("seen", seen), ("new", new))}  # fmt: skip
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        encoder = Encoder(EncoderConfig(aggregator=settings["aggregator"], dim=64, hidden_dim=64), FEATURES).to(device)
        head = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1)).to(device)
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.Adam([*encoder.parameters(), *head.parameters()], lr=0.003)

    def predicted(graph: Graph) -> Tensor:
        x = torch.randn(graph.num_nodes, FEATURES, generator=generator).to(device)
        keys = torch.arange(graph.num_nodes, device=device)
        answer: Tensor = head(encoder(x, whole_graph(graph, 2, keys)))
        return answer[:, 0]

    for _ in range(settings["steps"]):
        optimizer.zero_grad(set_to_none=True)
        torch.autograd.backward((predicted(seen) - truth["seen"]).square().mean())
        optimizer.step()
    with torch.no_grad():
        scores = {name: 1 - float((predicted(graph) - truth[name]).square().mean() / truth[name].var(correction=0))
                  for name, graph in (("seen", seen), ("new", new))}  # fmt: skip
    return {"val": round(scores["seen"], 4), "r2_same_graphs": round(scores["seen"], 4),
            "r2_new_graphs": round(scores["new"], 4)}  # fmt: skip


def _standardized(values: Tensor) -> Tensor:
    return ((values - 0.3) / 0.2).float()  # about the mean and deviation over such graphs


def _joined(graphs: list[Graph]) -> Graph:
    """Several graphs side by side as one."""
    edges, start = [], 0
    for graph in graphs:
        edges.append(torch.stack([graph.edge_rows, graph.indices.long()], dim=1) + start)
        start += graph.num_nodes
    return Graph.from_edges(torch.cat(edges).numpy(), start)

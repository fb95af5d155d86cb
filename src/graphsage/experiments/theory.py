"""Section 5: clustering coefficients, by Theorem 1's construction and learned from random features (Corollary 2).

The construction has four layers with the pooling aggregator. Its weights follow the proof except in two places. The
proof adds up neighbors' vectors, which a maximum cannot do. If all colors near a node differ, the maximum of one-hot
vectors is their sum, and pooling ReLU(e_u[i] + A_u[j] - 1) over all i and j separates the pairs of a neighbor i and
its neighbor j. The proof's last formula subtracts d_v and doubles, while b·c already counts every adjacent pair of
neighbors twice: without self loops the coefficient is b·c / (d (d - 1)).

  h^1 = ramps of the node's own value, and A_v: the colors of its neighbors          pool: color of a neighbor
  h^2 = P_v[i, j], whether a neighbor of color i has one of color j; A_v; |d - t|    pool: the pairs above
  h^3 = for each j and degree t: sum_i P_v[i, j] where A_v[j] = 1 and d = t          own MLP, no neighbors
  h^4 = their sum, each divided by t (t - 1)                                         own MLP, no neighbors

Line 7 (scaling to length 1) is left out, as in the proof.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from graphsage.graph.graph import Graph
from graphsage.model.aggregators.pool import PoolAggregator
from graphsage.model.encoder import Encoder, EncoderConfig
from graphsage.model.layer import SageLayer
from graphsage.sampling.minibatch import whole_graph
from graphsage.training.train import choose_device
from graphsage.training.trials import Result

MEAN, DEVIATION = 0.3, 0.2  # of coefficients over the graphs of `learn`, roughly
EPSILON = 1e-6  # how far the constructed coefficients may be from the counted ones


class Clustering(nn.Module):
    """Algorithm 1 with K = 4 and explicit weights, for nodes that one number each identifies.

    `values` are the numbers that may occur and `colors` the color (0 .. m - 1) of each; nodes of one value look alike,
    so two nodes at most four steps apart must differ in color. The same weights serve every graph of which that is true
    and whose degrees are at most `max_degree` (Corollary 3).
    """

    def __init__(self, values: Sequence[float], colors: Sequence[int], max_degree: int) -> None:
        super().__init__()
        self.m, self.degrees = max(colors) + 1, list(range(2, max(max_degree, 2) + 1))
        n, m, t = len(values), self.m, len(self.degrees)
        wide = max(3 * n, m)
        self.sage = [
            _layer(1, 3 * n + m, wide, 2),
            _layer(3 * n + m, m * m + m + 2 * t, max(m * m, 2 * m), 2),
            _layer(m * m + m + 2 * t, m * t, 1, 1),
            _layer(m * t, 1, 1, 1),
        ]
        self.layers = nn.ModuleList(self.sage)
        with torch.no_grad():
            for parameter in self.parameters():
                parameter.zero_()
            places = torch.tensor(values, dtype=torch.float64)
            gap = float(np.diff(np.unique(values)).min()) if n > 1 else 1.0
            by_color = torch.zeros(m, n, dtype=torch.float64)
            by_color[torch.tensor(colors), torch.arange(n)] = 1.0
            self._first(places, gap, by_color)
            self._second(by_color)
            self._third()
            self._fourth()

    def forward(self, x: Tensor, graph: Graph) -> Tensor:
        """Features (N, 1) -> clustering coefficients (N,)."""
        h = x.double()
        for layer, (hood,) in zip(self.sage, whole_graph(graph, 4, torch.arange(graph.num_nodes)), strict=True):
            h = layer(h, hood)
        return h[:, 0]

    def _first(self, places: Tensor, gap: float, by_color: Tensor) -> None:
        """Ramps ReLU(z + 1), ReLU(z), ReLU(z - 1) of z = (x - value) / gap; weights 1, -2, 1 mark the value."""
        layer, n, m = self.sage[0], len(places), self.m
        hidden, out = _mlp(layer)
        offsets = torch.cat([shift - places / gap for shift in (1.0, 0.0, -1.0)])
        for linear in (hidden, _weight(layer)):
            linear.weight[: 3 * n, 0] = 1.0 / gap
            linear.bias[: 3 * n] = offsets
        out.weight[:m, : 3 * n] = _hats(by_color)
        neighbors = slice(1, 1 + m)  # after the node's own feature
        _weight(layer).weight[3 * n : 3 * n + m, neighbors] = torch.eye(m, dtype=torch.float64)

    def _second(self, by_color: Tensor) -> None:
        layer, m = self.sage[1], self.m
        n = by_color.shape[1]
        hidden, out = _mlp(layer)
        own = 3 * n  # A begins here in h^1
        hidden.weight[:m, :own] = _hats(by_color)  # e_u
        hidden.weight[m : 2 * m, own : own + m] = torch.eye(m, dtype=torch.float64)  # A_u
        for i in range(m):
            for j in range(m):
                out.weight[i * m + j, [i, m + j]] = 1.0
        out.bias[: m * m] = -1.0
        weight, bias = _weight(layer).weight, _weight(layer).bias
        neighbors = own + m
        weight[: m * m, neighbors : neighbors + m * m] = torch.eye(m * m, dtype=torch.float64)
        weight[m * m : m * m + m, own : own + m] = torch.eye(m, dtype=torch.float64)
        for number, degree in enumerate(self.degrees):
            for row, sign in ((m * m + m + 2 * number, 1.0), (m * m + m + 2 * number + 1, -1.0)):
                weight[row, own : own + m] = sign  # d is the sum of A_v
                bias[row] = -sign * degree

    def _third(self) -> None:
        layer, m = self.sage[2], self.m
        large = 2.0 * m  # more than any sum over i
        for j in range(m):
            for number in range(len(self.degrees)):
                row = j * len(self.degrees) + number
                _weight(layer).weight[row, [i * m + j for i in range(m)]] = 1.0
                _weight(layer).weight[row, m * m + j] = large
                _weight(layer).weight[row, m * m + m + 2 * number : m * m + m + 2 * number + 2] = -large
                _weight(layer).bias[row] = -large

    def _fourth(self) -> None:
        each = torch.tensor([1.0 / (t * (t - 1)) for t in self.degrees], dtype=torch.float64)
        _weight(self.sage[3]).weight[0, : self.m * len(self.degrees)] = each.repeat(self.m)


def _layer(in_dim: int, out_dim: int, pool_dim: int, depth: int) -> SageLayer:
    pool = PoolAggregator(in_dim, pool_dim, depth)
    return SageLayer(in_dim, out_dim, pool, combine="joint", activation=True, normalize=False, bias=True).double()


def _weight(layer: SageLayer) -> nn.Linear:
    assert isinstance(layer.weight, nn.Linear)
    return layer.weight


def _mlp(layer: SageLayer) -> tuple[nn.Linear, nn.Linear]:
    """The two linear maps of a layer's pooling network."""
    assert isinstance(layer.aggregator, PoolAggregator)
    linear = [part for part in layer.aggregator.mlp if isinstance(part, nn.Linear)]
    return linear[0], linear[1]


def _hats(by_color: Tensor) -> Tensor:
    return torch.cat([by_color, -2.0 * by_color, by_color], dim=1)


def coloring(graph: Graph) -> list[int]:
    """A color for each node so that nodes at most four steps apart differ (Lemma 3: a coloring of G^4), greedily."""
    colors = [-1] * graph.num_nodes
    for node in range(graph.num_nodes):
        taken = {colors[other] for other in within(graph, node, 4)}
        colors[node] = next(color for color in range(graph.num_nodes) if color not in taken)
    return colors


def within(graph: Graph, node: int, steps: int) -> set[int]:
    """Nodes at most `steps` away, the node itself included."""
    reached, edge = {node}, {node}
    for _ in range(steps):
        edge = {int(v) for u in edge for v in graph.neighbors(u)} - reached
        reached |= edge
    return reached


def clustering_coefficients(graph: Graph) -> Tensor:
    """The share of pairs of neighbors that are joined, counted directly; 0 for a node with fewer than two."""
    found = torch.zeros(graph.num_nodes, dtype=torch.float64)
    near = [set(graph.neighbors(node).tolist()) for node in range(graph.num_nodes)]
    for node, neighbors in enumerate(near):
        d = len(neighbors)
        if d > 1:
            joined = sum(len(near[u] & neighbors) for u in neighbors)
            found[node] = joined / (d * (d - 1))
    return found


def constructed(graph: Graph, x: Tensor) -> Tensor:
    """The coefficients of `graph` (without self loops) by a network built for it, from distinct features x (N, D)."""
    generator = torch.Generator().manual_seed(0)
    line = (x.double() @ torch.randn(x.shape[1], 1, generator=generator, dtype=torch.float64))[:, 0]
    degree = int(graph.degrees.max()) if graph.num_nodes else 0
    network = Clustering(line.tolist(), coloring(graph), degree)
    with torch.no_grad():
        answer: Tensor = network(line[:, None], graph)
    return answer


FEATURES = 32


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
    """R^2 of clustering coefficients predicted from random features, on four small worlds and on four new ones."""
    device = choose_device(settings["device"])
    n, seed = settings["nodes"], settings["seed"]
    worlds = [
        small_world(n, degree, rewired, 1000 * seed + number)
        for number, (degree, rewired) in enumerate([(4, 0.1), (8, 0.3), (12, 0.6), (16, 0.1)] * 2)
    ]
    seen, new = (_joined(part).to(device) for part in (worlds[:4], worlds[4:]))
    truth = {
        name: ((clustering_coefficients(graph.to("cpu")) - MEAN) / DEVIATION).float().to(device)
        for name, graph in (("seen", seen), ("new", new))
    }
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
        scores = {
            name: 1 - float((predicted(graph) - truth[name]).square().mean() / truth[name].var(correction=0))
            for name, graph in (("seen", seen), ("new", new))
        }
    return {
        "val": round(scores["seen"], 4),
        "r2_same_graphs": round(scores["seen"], 4),
        "r2_new_graphs": round(scores["new"], 4),
    }


def _joined(graphs: list[Graph]) -> Graph:
    """Several graphs side by side as one."""
    edges, start = [], 0
    for graph in graphs:
        edges.append(torch.stack([graph.edge_rows, graph.indices.long()], dim=1) + start)
        start += graph.num_nodes
    return Graph.from_edges(torch.cat(edges).numpy(), start)

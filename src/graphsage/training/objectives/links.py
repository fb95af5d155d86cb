"""The objective of link prediction: each link (u, v) of the training part against links of u to wrong targets.

The loss is the cross-entropy of v among v and the negatives. Neither tree of a link uses the edge between u and v, in
either direction, at any depth. A negative's tree lacks one of its own edges, drawn at random: otherwise a missing
edge would tell a target from a negative.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from graphsage.errors import DataError, setting
from graphsage.execution.fast_encoder import FastEncoder
from graphsage.execution.step import Examples
from graphsage.execution.strategies import LayerInput
from graphsage.graph.graph import Graph
from graphsage.graph.link_split import LinkSplit
from graphsage.kernels.random import Stream, below, derive
from graphsage.kernels.rows import scaled_rows
from graphsage.model.links import LinkHead
from graphsage.sampling.hidden import EdgePlaces
from graphsage.sampling.minibatch import sample_minibatch
from graphsage.sampling.negatives import Negatives
from graphsage.training.config import Config
from graphsage.training.objectives.base import Objective, TrainingData

STEPS = 3  # of the walk that draws a hard negative: a node near the source that is no neighbor of most


@dataclass(frozen=True)
class LinkBatch:
    """The gathered data of B links and their candidates: their own targets, then the negatives if they are drawn."""

    inputs: LayerInput
    own: Tensor | None
    """Features of the sources (B, in_dim), if a tower embeds them."""
    keys: Tensor
    links: Tensor
    """The number of known links to each candidate, without the one that is asked for."""
    correction: Tensor | None
    """The logarithm of the rate at which each candidate is drawn, up to a constant."""
    wrong: Tensor
    """Which candidates are negatives of which source, (B, candidates)."""


class Links(Objective):
    """An epoch contains every link of the training part once; one without direction is asked from either end."""

    fixed_shapes = False

    def __init__(
        self, config: Config, encoder: FastEncoder, head: LinkHead, data: TrainingData, split: LinkSplit
    ) -> None:
        super().__init__(config, encoder, data)
        device = data.nodes.device
        train = split.train
        self.head, self.both_ways = head, split.both_ways
        self.pairs, self.candidates = train.pairs.to(device), train.candidates.to(device)
        self.places = EdgePlaces.of(data.capped)
        known = train.known.to(device)
        self.known = EdgePlaces.of(_lists(known, data.graph.num_nodes))
        self.links = torch.bincount(known[:, 1], minlength=data.graph.num_nodes)
        self.by_degree = Negatives.of_degrees(self.links) if config.negatives == "degree" else None
        self.epochs = self._epochs(len(self.pairs))
        if config.negatives == "in-batch":
            both_ends = self.pairs.flatten() if self.both_ways else self.pairs[:, 1]
            self._refuse_without_negatives(known, torch.unique(both_ends))

    def _refuse_without_negatives(self, known: Tensor, targets: Tensor) -> None:
        """In-batch negatives are `targets` of links: a source that is linked to all of them has none."""
        links = torch.unique(known[torch.isin(known[:, 1], targets)], dim=0)
        asked = torch.unique(self.pairs.flatten() if self.both_ways else self.pairs[:, 0])
        count = torch.bincount(links[:, 0], minlength=self.data.graph.num_nodes)[asked]
        if bool((count + torch.isin(asked, targets) >= len(targets)).all()):
            raise DataError(
                f"{setting('negatives', 'in-batch')} are targets of other links, and every source is linked to all of "
                f"the {len(targets):,} targets; use {setting('negatives', 'uniform')}"
            )

    def choose_examples(self, step: int, count: int = 1) -> Examples:
        """The links (count, B, 2), their keys (count, B), and 64 bits for each negative (count, Q)."""
        epoch, device = self.epochs.epoch_of(step), self.pairs.device
        numbers = self.epochs.examples(step, device, count)
        keys = Stream(self.config.seed, "links", epoch).keys(numbers)
        pairs = self.pairs[numbers]
        if self.both_ways:
            turned = (derive(keys, 3) & 1).bool()
            pairs = torch.where(turned[..., None], pairs.flip(2), pairs)
        first = step % self.epochs.steps
        steps = torch.arange(first, first + count, device=device)
        slots = torch.arange(0 if self.config.negatives == "in-batch" else self.config.link_negatives, device=device)
        return pairs, keys, derive(Stream(self.config.seed, "negatives", epoch).keys(steps)[:, None], slots)

    def gather(self, examples: Examples, out: Tensor | None = None) -> LinkBatch:
        pairs, keys, bits = examples
        u, v = pairs.unbind(1)
        n = self._negatives(u, bits)
        hidden = torch.cat([pairs, self._one_edge_of(n, derive(bits, 4))])
        targets, target_keys = torch.cat([v, n]), torch.cat([derive(keys, 2), derive(bits, 5)])
        if self.head.tower is None:
            targets, target_keys = torch.cat([u, targets]), torch.cat([derive(keys, 1), target_keys])
            hidden = torch.cat([pairs, hidden])
        found = self.places.hidden(hidden)
        batch = sample_minibatch(self.data.capped, targets, self.sizes, target_keys, self.sampling.redraw, found)
        inputs = self.encoder.read(self.data.tables, batch.neighborhoods, out)
        candidates = torch.cat([v, n])
        whole = self.encoder.encoder
        own = None if self.head.tower is None else scaled_rows(self.data.tables, u, whole.shift, whole.scale)
        return LinkBatch(
            inputs, own, keys, (self.links[candidates] - 1).clamp_min(0), self._rates(candidates), self._wrong(u, v, n)
        )

    def loss(self, gathered: LinkBatch) -> Tensor:
        z, b = self._embed(gathered.inputs), len(gathered.keys)
        z_u, z = (z[:b], z[b:]) if gathered.own is None else (self.head.sources(gathered.own, gathered.keys), z)
        scores = self.head(z_u, z, gathered.links)
        if gathered.correction is not None:
            scores = scores - gathered.correction
        own = torch.arange(b, device=z.device)
        asked = gathered.wrong.index_put((own, own), torch.ones((), dtype=torch.bool, device=z.device))
        return F.cross_entropy(scores.masked_fill(~asked, -torch.inf), own)

    def _negatives(self, u: Tensor, bits: Tensor) -> Tensor:
        """(Q,), for all links of the batch; none if their own targets serve as each other's negatives."""
        if self.by_degree is not None:
            return self.by_degree.draw(bits)
        if self.config.negatives == "hard":
            return self._near(u, bits)
        return self.candidates[below(bits, len(self.candidates))]

    def _near(self, u: Tensor, bits: Tensor) -> Tensor:
        """Ends of walks of known links from sources of the batch. A walk without a way on ends where it is."""
        graph, at = self.data.graph, u[below(bits, len(u))]
        for step in range(STEPS):
            at = _stepped(graph, at, derive(bits, 8 + step))
        allowed = torch.isin(at, self.candidates)
        return torch.where(allowed, at, self.candidates[below(derive(bits, 7), len(self.candidates))])

    def _one_edge_of(self, nodes: Tensor, bits: Tensor) -> Tensor:
        """A random edge of each node, (Q, 2); -1 if it has none."""
        other = _stepped(self.data.capped, nodes, bits)
        alone = self.data.capped.degrees[nodes] == 0
        return torch.stack([nodes, other], dim=1).masked_fill(alone[:, None], -1)

    def _rates(self, candidates: Tensor) -> Tensor | None:
        """Without this correction, scores would rank candidates that are often drawn too low."""
        if self.config.negatives not in ("degree", "in-batch"):
            return None
        power = 0.75 if self.config.negatives == "degree" else 1.0
        return power * self.links[candidates].clamp_min(1).float().log()

    def _wrong(self, u: Tensor, v: Tensor, n: Tensor) -> Tensor:
        """(B, B + Q): candidates that are neither the source nor known to be linked to it."""
        candidates = torch.cat([v, n])
        wrong = torch.ones(len(u), len(candidates), dtype=torch.bool, device=u.device)
        if self.config.negatives != "in-batch":
            wrong[:, : len(v)] = False
        rows = u[:, None].expand_as(wrong).reshape(-1)
        linked = self.known.find(rows, candidates.repeat(len(u))) >= 0
        return wrong & ~linked.view_as(wrong) & (u[:, None] != candidates)


def _lists(known: Tensor, num_nodes: int) -> Graph:
    """The targets of each source."""
    order = torch.argsort(known[:, 0] * num_nodes + known[:, 1])
    counts = torch.bincount(known[:, 0], minlength=num_nodes)
    return Graph(torch.cat([counts.new_zeros(1), counts.cumsum(0)]), known[order, 1])


def _stepped(graph: Graph, nodes: Tensor, bits: Tensor) -> Tensor:
    """A random neighbor of each node; the node itself if it has none."""
    degrees = graph.degrees[nodes]
    if not graph.num_stored_edges:
        return nodes
    at = (graph.indptr[nodes] + below(bits, degrees.clamp_min(1))).clamp_max(graph.num_stored_edges - 1)
    return torch.where(degrees > 0, graph.indices[at].long(), nodes)

"""The contrastive objective: two augmented views of each pair, told apart from the other pairs of the batch (InfoNCE).

A pair is a training node u and a node v of a short random walk from u, v = u included. u is embedded in one view of the
training graph and v in the other. A view lacks a random share of the edges, new for each epoch, and reads a random
share of the feature columns as their mean, new for each step. The loss reads the embeddings through a projection head,
which only training has.
"""

from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from graphsage.errors import ConfigError, setting
from graphsage.execution.fast_encoder import FastEncoder
from graphsage.execution.step import Examples
from graphsage.execution.strategies import LayerInput
from graphsage.graph.graph import Graph
from graphsage.kernels.random import Stream, below, derive, uniform
from graphsage.losses import contrastive_loss
from graphsage.sampling.minibatch import sample_minibatch
from graphsage.sampling.walks import random_walks
from graphsage.training.config import Config
from graphsage.training.objectives.base import Objective, TrainingData

VIEWS = (0, 1)


def projection_head(dim: int) -> nn.Sequential:
    """Two layers, as wide as the embedding."""
    return nn.Sequential(nn.Linear(dim, dim), nn.ELU(), nn.Linear(dim, dim))


@dataclass(frozen=True)
class TwoViews:
    """The gathered data of B pairs."""

    one: LayerInput
    other: LayerInput
    u: Tensor
    v: Tensor


class Contrastive(Objective):
    """An epoch contains every training node once as u."""

    def __init__(self, config: Config, encoder: FastEncoder, projection: nn.Module, data: TrainingData) -> None:
        super().__init__(config, encoder, data)
        if data.ranks > 1:
            raise ConfigError(
                f"{setting('objective', 'contrastive')} compares all pairs of a batch and runs in one process; leave "
                f"{setting('workers')} out, or use {setting('objective', 'equation-1')}"
            )
        self.projection = projection
        self.views = [_View(data.capped, config.seed, view, config.edge_dropout) for view in VIEWS]
        self.epochs = self._epochs(len(data.nodes))

    def choose_examples(self, step: int, count: int = 1) -> Examples:
        """The nodes u (count, B) and v (count, B), their keys, and a key for the columns of each view (count, 2)."""
        epoch = self.epochs.epoch_of(step)
        for view in self.views:
            view.redraw(epoch)
        numbers = self.epochs.examples(step, self.data.nodes.device, count)
        u = self.data.nodes[numbers]
        keys = Stream(self.config.seed, "pairs", epoch).keys(u)
        length = self.config.walk_length or 2
        walks = random_walks(self.data.graph, u.flatten(), length, derive(keys, 0).flatten())
        place = below(derive(keys, 3), length)
        v = walks.gather(1, place.view(-1, 1)).view(u.shape)
        steps = torch.arange(step, step + count, device=u.device)
        columns = derive(Stream(self.config.seed, "columns").keys(steps)[:, None], torch.tensor(VIEWS, device=u.device))
        return u, v, derive(keys, 1), derive(keys, 2), columns

    def gather(self, examples: Examples, out: Tensor | None = None) -> TwoViews:
        u, v, keys_u, keys_v, columns = examples
        one, other = (
            self._read_view(view, nodes, keys, columns[view]) for view, nodes, keys in ((0, u, keys_u), (1, v, keys_v))
        )
        return TwoViews(one, other, u, v)

    def rows_of(self, gathered: TwoViews) -> None:
        return None

    def loss(self, gathered: TwoViews) -> Tensor:
        z_u, z_v = (self.projection(self._embed(inputs)) for inputs in (gathered.one, gathered.other))
        return contrastive_loss(z_u, z_v, gathered.u, gathered.v, self.config.temperature)

    def _read_view(self, view: int, nodes: Tensor, keys: Tensor, key: Tensor) -> LayerInput:
        batch = sample_minibatch(self.views[view].graph, nodes, self.sizes, keys, self.sampling.redraw)
        inputs = self.encoder.read(self.data.tables, batch.neighborhoods)
        width = self.encoder.encoder.in_dim
        if not self.config.feature_dropout or not width:
            return inputs
        kept = uniform(derive(key, torch.arange(width, device=nodes.device))) >= self.config.feature_dropout
        mask = kept.repeat(-(-inputs.x.shape[1] // width))[: inputs.x.shape[1]]  # own features, the neighbors', padding
        return replace(inputs, x=inputs.x.mul_(mask.to(inputs.x.dtype)))


class _View:
    """The capped training graph without a random share of its edges, redrawn in place for each epoch."""

    def __init__(self, graph: Graph, seed: int, number: int, dropout: float) -> None:
        self.full, self.seed, self.number, self.dropout = graph, seed, number, dropout
        self.graph = graph
        if graph.relations:
            self.graph = graph.with_relations(self._copied)
        elif dropout:
            self.graph = self._copied(graph)
        self.epoch: int | None = None

    def redraw(self, epoch: int) -> None:
        """Both directions of an edge share a draw, in all relations."""
        if epoch == self.epoch or not self.dropout:
            return
        for full, graph in zip(self.full.by_relation, self.graph.by_relation, strict=True):
            rows, columns = full.edge_rows, full.indices.long()
            ends = Stream(self.seed, f"view {self.number}", epoch).keys(torch.minimum(rows, columns))
            kept = uniform(derive(ends, torch.maximum(rows, columns))) >= self.dropout
            before = torch.nn.functional.pad(kept.cumsum(0), (1, 0))  # kept edges before each one
            graph.indptr.copy_(before[full.indptr])
            graph.indices[: int(before[-1])] = full.indices[kept]
            if graph.edge_weight is not None and full.edge_weight is not None:
                graph.edge_weight[: int(before[-1])] = full.edge_weight[kept]
        self.epoch = epoch

    @staticmethod
    def _copied(graph: Graph) -> Graph:
        weight = None if graph.edge_weight is None else graph.edge_weight.clone()
        return graph.replace(
            indptr=graph.indptr.clone(), indices=graph.indices.clone(), edge_time=None, edge_weight=weight
        )

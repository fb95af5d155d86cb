"""What a training step minimizes: the supervised loss, Equation 1, or both (section 3.2).

A step has three parts. `draw` says which examples it learns from, for many steps at once. `read` draws their
neighborhoods and reads their features. Only `value` depends on the weights, so the first two can run ahead.
Where ranks share a step, these are about one rank's part of it: the values of all parts add up to the batch's loss.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from graphsage.errors import DataError
from graphsage.graph.graph import Graph
from graphsage.kernels.random import Stream, derive
from graphsage.losses import supervised_loss, unsupervised_loss
from graphsage.model.encoder import Encoder
from graphsage.model.heads import ClassHead
from graphsage.model.reading import Reading
from graphsage.sampling.minibatch import sample_minibatch
from graphsage.sampling.negatives import Negatives
from graphsage.sampling.walks import walk_pairs
from graphsage.training.batches import Epochs
from graphsage.training.config import Config

Drawn = tuple[Tensor, ...]


@dataclass(frozen=True)
class World:
    """What training sees: the training graph before and after the cap, its input tables and its nodes."""

    graph: Graph
    capped: Graph
    tables: Sequence[Tensor]
    nodes: Tensor
    rank: int = 0
    ranks: int = 1

    def epochs(self, num_examples: int, config: Config) -> Epochs:
        return Epochs(num_examples, config.batch_size, config.seed, self.rank, self.ranks)


class Objective(ABC):
    epochs: Epochs

    def run(self, step: int, limit: int) -> int:
        """How many steps from `step` on, at most `limit`, can be drawn together."""
        return self.epochs.run(step, limit)

    @abstractmethod
    def draw(self, step: int, count: int = 1) -> Drawn:
        """What `count` steps from `step` on learn from, each tensor (count, ...); `run` says how many go."""

    @abstractmethod
    def read(self, drawn: Drawn, out: Tensor | None = None) -> Any:
        """Everything of the graph that one step's draws (without their first dimension) need.

        `out` is a buffer for the rows read: the one that the last reading returned, where that is no longer needed.
        """

    @abstractmethod
    def value(self, read: Any) -> Tensor:
        """The loss of one step; a pure function of the weights and of what was read."""

    def loss(self, step: int) -> Tensor:
        """The three parts in turn."""
        return self.value(self.read(tuple(tensor[0] for tensor in self.draw(step))))


@dataclass(frozen=True)
class Labeled:
    reading: Reading
    keys: Tensor
    labels: Tensor
    weight: Tensor | None
    """What the mean over this part counts in the mean over the batch; None where it is the whole batch."""


class Supervised(Objective):
    """Cross-entropy on the labeled training nodes, each once an epoch."""

    def __init__(self, config: Config, encoder: Encoder, head: ClassHead, world: World) -> None:
        labels = world.graph.labels
        if labels is None:
            raise DataError("supervised training needs labels and the graph has none; use --task unsupervised")
        self.nodes = world.nodes if labels.dim() == 2 else world.nodes[labels[world.nodes] >= 0]
        if not len(self.nodes):
            raise DataError("no training node has a label; give labels or use --task unsupervised")
        self.config, self.encoder, self.head, self.world, self.labels = config, encoder, head, world, labels
        self.sampling = config.sampling()
        self.epochs = world.epochs(len(self.nodes), config)

    def draw(self, step: int, count: int = 1) -> Drawn:
        """The targets (count, B), their keys and, where the step is shared, the weight of this part (count,)."""
        numbers = self.epochs.examples(step, self.nodes.device, count)
        targets = self.nodes[numbers[:, self.epochs.part(step)]]
        keys = Stream(self.config.seed, "neighbors", self.epochs.epoch_of(step)).keys(targets)
        if self.epochs.ranks == 1:
            return targets, keys
        return targets, keys, torch.full((count,), self.epochs.weight(step), device=targets.device)

    def read(self, drawn: Drawn, out: Tensor | None = None) -> Labeled:
        targets, keys, *weight = drawn
        batch = sample_minibatch(self.world.capped, targets, self.sampling.sample_sizes, keys, self.sampling.redraw)
        reading = self.encoder.read(self.world.tables, batch, out)
        return Labeled(reading, keys, self.labels[targets], weight[0] if weight else None)

    def value(self, read: Labeled) -> Tensor:
        loss = supervised_loss(self.head(self.encoder.encode(read.reading), read.keys), read.labels)
        return loss if read.weight is None else loss * read.weight


@dataclass(frozen=True)
class Pairs:
    reading: Reading
    valid: Tensor
    total: Tensor | None
    """Valid pairs in the whole batch; None where this is the whole batch."""


class Unsupervised(Objective):
    """Equation 1 on pairs from random walks; an epoch is every pair once."""

    def __init__(self, config: Config, encoder: Encoder, world: World) -> None:
        self.config, self.encoder, self.world = config, encoder, world
        self.sampling = config.sampling()
        self.walks = walk_pairs(world.graph, world.nodes, config.seed, config.num_walks, config.walk_length)
        self.negatives = Negatives.of_degrees(world.graph.degrees)
        self.epochs = world.epochs(self.walks.count, config)

    def draw(self, step: int, count: int = 1) -> Drawn:
        """The nodes to embed, u then v then the negatives, (count, 2P + Q) or (count, 2P + PQ); their keys; which
        pairs are valid (count, P); where the step is shared, the valid pairs of all ranks (count,)."""
        epoch, part = self.epochs.epoch_of(step), self.epochs.part(step)
        numbers = self.epochs.examples(step, self.world.nodes.device, count)
        # Every rank walks for the whole batch: cheaper than asking the others how many of their pairs are valid.
        u, v, valid = (tensor.view(numbers.shape) for tensor in self.walks.pairs(numbers.flatten()))
        total = valid.sum(dim=1)
        u, v, valid = u[:, part], v[:, part], valid[:, part]
        pair_keys = Stream(self.config.seed, "pairs", epoch).keys(numbers[:, part])
        bits = self._negative_draws(step, epoch, pair_keys)
        targets = torch.cat([u, v, self.negatives.draw(bits)], dim=1)
        keys = torch.cat([derive(pair_keys, 1), derive(pair_keys, 2), derive(bits, 3)], dim=1)
        if self.epochs.ranks == 1:
            return targets, keys, valid
        return targets, keys, valid & bool(self.epochs.weight(step)), total

    def read(self, drawn: Drawn, out: Tensor | None = None) -> Pairs:
        targets, keys, valid, *total = drawn
        batch = sample_minibatch(self.world.capped, targets, self.sampling.sample_sizes, keys, self.sampling.redraw)
        return Pairs(self.encoder.read(self.world.tables, batch, out), valid, total[0] if total else None)

    def value(self, read: Pairs) -> Tensor:
        z, p, q = self.encoder.encode(read.reading), len(read.valid), self.config.num_negatives
        z_n = z[2 * p :].view(p, q, -1) if self.config.negatives_per_pair else z[2 * p :]
        return unsupervised_loss(z[:p], z[p : 2 * p], z_n, read.valid, read.total)

    def _negative_draws(self, step: int, epoch: int, pair_keys: Tensor) -> Tensor:
        """64 bits for each negative: (count, Q) where they serve a whole batch, (count, P * Q) where each pair."""
        slots = torch.arange(self.config.num_negatives, device=pair_keys.device)
        if self.config.negatives_per_pair:
            return derive(pair_keys[:, :, None], slots + 8).flatten(1)
        first = step % self.epochs.steps
        steps = torch.arange(first, first + len(pair_keys), device=pair_keys.device)
        return derive(Stream(self.config.seed, "negatives", epoch).keys(steps)[:, None], slots)


class Joint(Objective):
    """The augmented objective: Equation 1 plus the weighted supervised loss, a batch of each in every step."""

    def __init__(self, supervised: Supervised, unsupervised: Unsupervised, weight: float) -> None:
        self.supervised, self.unsupervised, self.weight = supervised, unsupervised, weight
        self.epochs = supervised.epochs

    def run(self, step: int, limit: int) -> int:
        return self.unsupervised.run(step, self.supervised.run(step, limit))

    def draw(self, step: int, count: int = 1) -> Drawn:
        pairs = [self.unsupervised.draw(each) for each in range(step, step + count)]  # epochs end at other steps
        return *self.supervised.draw(step, count), *(torch.cat(tensors) for tensors in zip(*pairs, strict=True))

    def read(self, drawn: Drawn, out: Tensor | None = None) -> tuple[Labeled, Pairs]:
        labeled = 2 if self.epochs.ranks == 1 else 3
        return self.supervised.read(drawn[:labeled]), self.unsupervised.read(drawn[labeled:])

    def value(self, read: tuple[Labeled, Pairs]) -> Tensor:
        return self.unsupervised.value(read[1]) + self.weight * self.supervised.value(read[0])


def make_objective(config: Config, encoder: Encoder, head: ClassHead | None, world: World) -> Objective:
    if config.task == "unsupervised":
        return Unsupervised(config, encoder, world)
    assert head is not None
    supervised = Supervised(config, encoder, head, world)
    if config.task == "supervised":
        return supervised
    return Joint(supervised, Unsupervised(config, encoder, world), config.supervised_weight)

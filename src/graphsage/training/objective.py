"""What a training step minimizes: the supervised loss, Equation 1, or both (section 3.2)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from graphsage.errors import DataError
from graphsage.graph.graph import Graph
from graphsage.kernels.random import Stream, derive
from graphsage.losses import supervised_loss, unsupervised_loss
from graphsage.model.encoder import Encoder
from graphsage.model.heads import ClassHead
from graphsage.sampling.minibatch import sample_minibatch
from graphsage.sampling.negatives import Negatives
from graphsage.sampling.walks import walk_pairs
from graphsage.training.batches import Epochs
from graphsage.training.config import Config


@dataclass(frozen=True)
class World:
    """What training sees: the training graph before and after the cap, its input tables and its nodes."""

    graph: Graph
    capped: Graph
    tables: Sequence[Tensor]
    nodes: Tensor


class Objective(Protocol):
    epochs: Epochs

    def loss(self, step: int) -> Tensor:
        """The loss of one step's batch; a pure function of the weights and the step number."""


class Supervised:
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
        self.epochs = Epochs(len(self.nodes), config.batch_size, config.seed)

    def loss(self, step: int) -> Tensor:
        targets = self.nodes[self.epochs.examples(step, self.nodes.device)]
        keys = Stream(self.config.seed, "neighbors", self.epochs.epoch_of(step)).keys(targets)
        batch = sample_minibatch(self.world.capped, targets, self.sampling.sample_sizes, keys, self.sampling.redraw)
        z = self.encoder(self.world.tables, batch)
        scores = self.head(z, derive(keys, -1))
        return supervised_loss(scores, self.labels[targets])


class Unsupervised:
    """Equation 1 on pairs from random walks; an epoch is every pair once."""

    def __init__(self, config: Config, encoder: Encoder, world: World) -> None:
        self.config, self.encoder, self.world = config, encoder, world
        self.sampling = config.sampling()
        self.walks = walk_pairs(world.graph, world.nodes, config.seed, config.num_walks, config.walk_length)
        self.negatives = Negatives.of_degrees(world.graph.degrees)
        self.epochs = Epochs(self.walks.count, config.batch_size, config.seed)

    def loss(self, step: int) -> Tensor:
        epoch = self.epochs.epoch_of(step)
        numbers = self.epochs.examples(step, self.world.nodes.device)
        u, v, valid = self.walks.pairs(numbers)
        pair_keys = Stream(self.config.seed, "pairs", epoch).keys(numbers)
        negatives, negative_keys = self._negatives(step, epoch, pair_keys)
        targets = torch.cat([u, v, negatives.flatten()])
        keys = torch.cat([derive(pair_keys, 1), derive(pair_keys, 2), negative_keys.flatten()])
        batch = sample_minibatch(self.world.capped, targets, self.sampling.sample_sizes, keys, self.sampling.redraw)
        z = self.encoder(self.world.tables, batch)
        p = len(numbers)
        z_n = z[2 * p :].view(*negatives.shape, -1)
        return unsupervised_loss(z[:p], z[p : 2 * p], z_n, valid)

    def _negatives(self, step: int, epoch: int, pair_keys: Tensor) -> tuple[Tensor, Tensor]:
        """Negatives and the keys of their neighborhoods: (Q,) for the whole batch, or (P, Q)."""
        slots = torch.arange(self.config.num_negatives, device=pair_keys.device)
        if self.config.negatives_per_pair:
            bits = derive(pair_keys[:, None], slots[None] + 8)
        else:
            in_epoch = step % self.epochs.steps
            root = Stream(self.config.seed, "negatives", epoch).keys(slots.new_tensor([in_epoch]))
            bits = derive(root, slots)
        return self.negatives.draw(bits), derive(bits, 3)


class Joint:
    """The augmented objective: Equation 1 plus the weighted supervised loss, a batch of each in every step."""

    def __init__(self, supervised: Supervised, unsupervised: Unsupervised, weight: float) -> None:
        self.supervised, self.unsupervised, self.weight = supervised, unsupervised, weight
        self.epochs = supervised.epochs

    def loss(self, step: int) -> Tensor:
        return self.unsupervised.loss(step) + self.weight * self.supervised.loss(step)


def make_objective(config: Config, encoder: Encoder, head: ClassHead | None, world: World) -> Objective:
    if config.task == "unsupervised":
        return Unsupervised(config, encoder, world)
    assert head is not None
    supervised = Supervised(config, encoder, head, world)
    if config.task == "supervised":
        return supervised
    return Joint(supervised, Unsupervised(config, encoder, world), config.supervised_weight)

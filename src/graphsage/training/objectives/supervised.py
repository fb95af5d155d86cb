"""The supervised objective on the labeled training nodes: cross-entropy of the head's scores, each with the weight of
its class, or the error of numbers in deviations of their target."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from graphsage.errors import DataError, setting
from graphsage.execution.fast_encoder import FastEncoder
from graphsage.execution.step import Examples
from graphsage.execution.strategies import LayerInput
from graphsage.kernels.random import Stream
from graphsage.losses import regression_loss, supervised_loss
from graphsage.model.heads import ClassHead, RegressionHead
from graphsage.training.class_weights import class_weights
from graphsage.training.config import Config
from graphsage.training.objectives.base import Objective, TrainingData

HIDDEN_PART = 4  # with label inputs a batch has at most this part of the training nodes


@dataclass(frozen=True)
class Labeled:
    """The gathered data of labeled nodes."""

    inputs: LayerInput
    keys: Tensor
    labels: Tensor
    weight: Tensor | None
    """This rank's share of the batch loss; None if one rank computes the whole batch."""
    rows: Tensor | None = None
    """Those of the embedded nodes that are targets, if not all are."""


class Supervised(Objective):
    """An epoch contains every labeled training node once."""

    def __init__(self, config: Config, encoder: FastEncoder, head: ClassHead, data: TrainingData) -> None:
        super().__init__(config, encoder, data)
        labels = data.graph.labels
        if labels is None:
            raise DataError(
                f"supervised training needs labels and the graph has none; use {setting('task', 'unsupervised')}"
            )
        self.nodes = data.graph.labeled(data.nodes)
        self.head, self.labels = head, head.standardized(labels) if isinstance(head, RegressionHead) else labels
        self.class_weights = class_weights(config.class_weights, labels[self.nodes], head.linear.out_features)
        self.epochs = self._epochs(len(self.nodes))
        if data.known is not None:  # a batch hides the labels of its targets, and most others must be left to read
            size = min(config.batch_size, max(len(self.nodes) // HIDDEN_PART, 1))
            self.epochs = replace(self.epochs, batch_size=size)

    def choose_examples(self, step: int, count: int = 1) -> Examples:
        """The targets (count, B), their keys, with known labels the targets of all ranks, and if ranks share the step
        the weight of this rank (count,)."""
        numbers = self.epochs.examples(step, self.nodes.device, count)
        targets = self.nodes[numbers[:, self.epochs.part(step)]]
        keys = Stream(self.config.seed, "neighbors", self.epochs.epoch_of(step)).keys(targets)
        examples: Examples = (targets, keys)
        if self.data.known is not None:
            examples = (*examples, self.nodes[numbers])
        if self.epochs.ranks == 1:
            return examples
        return *examples, torch.full((count,), self.epochs.weight(step), device=targets.device)

    def gather(self, examples: Examples, out: Tensor | None = None) -> Labeled:
        if self.data.known is None:
            return self._gathered(examples, out)
        targets, keys, hidden, *weight = examples
        own = self.data.known[hidden]
        self.data.known[hidden] = 0.0  # no target of the batch reads its own label, nor that of another target
        gathered = self._gathered((targets, keys, *weight), out)
        self.data.known[hidden] = own
        return gathered

    def _gathered(self, examples: Examples, out: Tensor | None) -> Labeled:
        targets, keys, *weight = examples
        return Labeled(self._read(targets, keys, out), keys, self.labels[targets], weight[0] if weight else None)

    def loss(self, gathered: Labeled) -> Tensor:
        z = self._embed(gathered.inputs)
        scores = self.head(z if gathered.rows is None else z[gathered.rows], gathered.keys)
        if self.config.regression:
            loss = regression_loss(scores, gathered.labels, self.config.loss)
        else:
            loss = supervised_loss(scores, gathered.labels, self.class_weights)
        return loss if gathered.weight is None else loss * gathered.weight

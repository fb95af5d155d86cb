"""The joint objective: Equation 1 "augmented" (section 3.2) by the weighted supervised loss."""

import torch
from torch import Tensor

from graphsage.model.encoder import Encoder
from graphsage.model.heads import ClassHead
from graphsage.training.config import Config
from graphsage.training.objectives.base import Examples, Objective, TrainingData
from graphsage.training.objectives.supervised import Labeled, Supervised
from graphsage.training.objectives.unsupervised import Pairs, Unsupervised


class Joint(Objective):
    """Every step has one batch of labeled nodes and one of pairs; epochs are those of the labeled nodes."""

    def __init__(self, config: Config, encoder: Encoder, head: ClassHead, data: TrainingData) -> None:
        super().__init__(config, encoder, data)
        self.supervised = Supervised(config, encoder, head, data)
        self.unsupervised = Unsupervised(config, encoder, data)
        self.epochs = self.supervised.epochs

    def run(self, step: int, limit: int) -> int:
        return self.unsupervised.run(step, self.supervised.run(step, limit))

    def choose_examples(self, step: int, count: int = 1) -> Examples:
        labeled = self.supervised.choose_examples(step, count)
        # Step by step: the epochs of the pairs end at other steps.
        pairs = [self.unsupervised.choose_examples(each) for each in range(step, step + count)]
        return *labeled, *(torch.cat(tensors) for tensors in zip(*pairs, strict=True))

    def gather(self, examples: Examples, out: Tensor | None = None) -> tuple[Labeled, Pairs]:
        labeled = 2 if self.epochs.ranks == 1 else 3
        return self.supervised.gather(examples[:labeled]), self.unsupervised.gather(examples[labeled:])

    def loss(self, gathered: tuple[Labeled, Pairs]) -> Tensor:
        labeled, pairs = gathered
        return self.unsupervised.loss(pairs) + self.config.supervised_weight * self.supervised.loss(labeled)

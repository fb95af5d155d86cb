"""The joint objective: Equation 1 "augmented" (section 3.2) by the weighted supervised loss."""

from torch import Tensor

from graphsage.execution.fast_encoder import FastEncoder
from graphsage.execution.step import Examples
from graphsage.model.heads import ClassHead
from graphsage.training.config import Config
from graphsage.training.objectives.base import Objective, TrainingData
from graphsage.training.objectives.supervised import Labeled, Supervised
from graphsage.training.objectives.unsupervised import Pairs, Unsupervised


class Joint(Objective):
    """Every step has one batch of labeled nodes and one of pairs; epochs are those of the labeled nodes."""

    def __init__(self, config: Config, encoder: FastEncoder, head: ClassHead, data: TrainingData) -> None:
        super().__init__(config, encoder, data)
        self.supervised = Supervised(config, encoder, head, data)
        self.unsupervised = Unsupervised(config, encoder, data)
        self.epochs = self.supervised.epochs

    def steps_at_once(self, step: int, limit: int) -> int:
        return self.unsupervised.steps_at_once(step, self.supervised.steps_at_once(step, limit))

    def choose_examples(self, step: int, count: int = 1) -> Examples:
        return *self.supervised.choose_examples(step, count), *self.unsupervised.choose_examples(step, count)

    def gather(self, examples: Examples, out: Tensor | None = None) -> tuple[Labeled, Pairs]:
        labeled = 2 if self.epochs.ranks == 1 else 3
        return self.supervised.gather(examples[:labeled]), self.unsupervised.gather(examples[labeled:])

    def rows_of(self, gathered: tuple[Labeled, Pairs]) -> None:
        return None

    def loss(self, gathered: tuple[Labeled, Pairs]) -> Tensor:
        labeled, pairs = gathered
        return self.unsupervised.loss(pairs) + self.config.supervised_weight * self.supervised.loss(labeled)

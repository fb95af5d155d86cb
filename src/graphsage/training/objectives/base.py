"""An objective computes a step's loss in three parts.

`choose_examples` picks the examples of many steps at once. `gather` samples one step's neighborhoods and gathers their
features. Only `loss` depends on the weights, so the first two can run ahead. If several ranks share a step, each
computes its part of the batch, and the losses of all ranks add up to the batch loss.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor

from graphsage.execution.fast_encoder import FastEncoder
from graphsage.execution.step import Examples
from graphsage.execution.strategies import LayerInput
from graphsage.graph.graph import Graph
from graphsage.sampling.minibatch import sample_minibatch
from graphsage.training.batches import Epochs
from graphsage.training.config import Config


@dataclass(frozen=True)
class TrainingData:
    """The training graph before and after the degree cap, its input tables and nodes, and this rank."""

    graph: Graph
    capped: Graph
    tables: Sequence[Tensor]
    nodes: Tensor
    rank: int = 0
    ranks: int = 1
    known: Tensor | None = None
    """The last of the tables if the model reads known labels: those of the labeled training nodes."""


class Objective(ABC):
    epochs: Epochs
    fixed_shapes: ClassVar[bool] = True
    """Whether steps with examples of one shape have tensors of one shape; others cannot be captured."""

    def __init__(self, config: Config, encoder: FastEncoder, data: TrainingData) -> None:
        self.config, self.encoder, self.data = config, encoder, data
        self.sampling = config.sampling()
        self.sizes = self.sampling.sizes(len(data.capped.by_relation))

    def steps_at_once(self, step: int, limit: int) -> int:
        """The number of steps from `step` on, at most `limit`, whose examples can be chosen together."""
        return self.epochs.steps_at_once(step, limit)

    @abstractmethod
    def choose_examples(self, step: int, count: int = 1) -> Examples:
        """The examples of `count` steps from `step` on, each tensor (count, ...); at most `steps_at_once`."""

    @abstractmethod
    def gather(self, examples: Examples, out: Tensor | None = None) -> Any:
        """All graph data that one step's examples (without their first dimension) need.

        `out` is a buffer for the gathered rows: that of an earlier result which is no longer used.
        """

    @abstractmethod
    def loss(self, gathered: Any) -> Tensor:
        """The loss of one step; a pure function of the weights and the gathered data."""

    def next_step(self) -> None:
        """Frees the buffers of the last step."""
        self.encoder.buffers.next_step()

    def rows_of(self, gathered: Any) -> Tensor | None:
        """The gathered rows, which the next `gather` may overwrite as `out`; None if there are several."""
        inputs: LayerInput = gathered.inputs
        return inputs.x

    def _epochs(self, num_examples: int) -> Epochs:
        return Epochs(num_examples, self.config.batch_size, self.config.seed, self.data.rank, self.data.ranks)

    def _read(self, targets: Tensor, keys: Tensor, out: Tensor | None) -> LayerInput:
        """The weight-independent part of embedding `targets`: sampling (Algorithm 2, lines 1-7) and gathering."""
        batch = sample_minibatch(self.data.capped, targets, self.sizes, keys, self.sampling.redraw)
        return self.encoder.read(self.data.tables, batch.neighborhoods, out)

    def _embed(self, inputs: LayerInput) -> Tensor:
        """The embeddings z of the targets (Algorithm 2, lines 8-16)."""
        return self.encoder.encode(inputs)

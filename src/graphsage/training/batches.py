"""The order in which examples are seen: a permutation of each epoch's positions, a pure function of seed and epoch."""

from dataclasses import dataclass

import torch
from torch import Tensor

from graphsage.kernels.random import Stream, permute


@dataclass(frozen=True)
class Epochs:
    """Cuts `num_examples` into batches, epoch after epoch; step numbers count from the first step of training."""

    num_examples: int
    batch_size: int
    seed: int

    @property
    def steps(self) -> int:
        """Steps in one epoch; the last batch may be smaller."""
        return -(-self.num_examples // self.batch_size)

    def epoch_of(self, step: int) -> int:
        return step // self.steps

    def positions(self, step: int, device: torch.device) -> Tensor:
        """Positions within the epoch that `step` covers."""
        start = step % self.steps * self.batch_size
        return torch.arange(start, min(start + self.batch_size, self.num_examples), device=device)

    def examples(self, step: int, device: torch.device) -> Tensor:
        """Numbers of the examples that `step` covers, shuffled anew each epoch."""
        key = Stream(self.seed, "order", self.epoch_of(step)).key
        return permute(self.positions(step, device), self.num_examples, key)

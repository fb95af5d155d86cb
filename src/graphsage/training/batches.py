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

    def run(self, step: int, limit: int) -> int:
        """How many steps from `step` on, at most `limit`, are in one epoch and cover equally many examples."""
        in_epoch = step % self.steps
        whole = self.num_examples // self.batch_size
        return max(1, min(limit, whole - in_epoch))

    def positions(self, step: int, device: torch.device, count: int = 1) -> Tensor:
        """Positions within the epoch that `count` steps cover, (count, B)."""
        start = step % self.steps * self.batch_size
        stop = min(start + count * self.batch_size, self.num_examples)
        return torch.arange(start, stop, device=device).view(count, -1)

    def examples(self, step: int, device: torch.device, count: int = 1) -> Tensor:
        """Numbers of the examples that `count` steps of one epoch cover, (count, B), shuffled anew each epoch."""
        key = Stream(self.seed, "order", self.epoch_of(step)).key
        return permute(self.positions(step, device, count), self.num_examples, key)

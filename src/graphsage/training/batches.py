"""The order in which examples are seen: a permutation of each epoch's positions, a pure function of seed and epoch.

Where several ranks share the work, each takes its part of every batch: the batches do not depend on how many there are.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from graphsage.kernels.random import Stream, permute


@dataclass(frozen=True)
class Epochs:
    """Cuts `num_examples` into batches, epoch after epoch; step numbers count from the first step of training.

    Of each batch the one of number `rank` among `ranks` takes an equal share, give or take one example.
    """

    num_examples: int
    batch_size: int
    """Examples in a step, all ranks together."""
    seed: int
    rank: int = 0
    ranks: int = 1

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

    def size(self, step: int) -> int:
        """Examples in the batch of `step`."""
        return min(self.batch_size, self.num_examples - step % self.steps * self.batch_size)

    def part(self, step: int) -> slice:
        """Which columns of the batch this rank computes. Where there are fewer examples than ranks, somebody has none:
        it computes the first one, which then counts nothing."""
        size = self.size(step)
        start, stop = size * self.rank // self.ranks, size * (self.rank + 1) // self.ranks
        return slice(start, stop) if start < stop else slice(0, 1)

    def weight(self, step: int) -> float:
        """The share of the batch's examples in this rank's part."""
        size = self.size(step)
        return (size * (self.rank + 1) // self.ranks - size * self.rank // self.ranks) / size

    def positions(self, step: int, device: torch.device, count: int = 1) -> Tensor:
        """Positions within the epoch that `count` steps cover, (count, B), all ranks together."""
        start = step % self.steps * self.batch_size
        stop = min(start + count * self.batch_size, self.num_examples)
        return torch.arange(start, stop, device=device).view(count, -1)

    def examples(self, step: int, device: torch.device, count: int = 1) -> Tensor:
        """Numbers of the examples that `count` steps of one epoch cover, (count, B), shuffled anew each epoch."""
        key = Stream(self.seed, "order", self.epoch_of(step)).key
        return permute(self.positions(step, device, count), self.num_examples, key)

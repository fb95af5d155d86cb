"""The order of the examples: a permutation per epoch that depends only on the seed and the epoch.

If several ranks share the work, each computes its part of every batch. Batches are the same for any number of ranks.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from graphsage.kernels.random import Stream, permute


@dataclass(frozen=True)
class Epochs:
    """Divides `num_examples` into batches, epoch after epoch; step numbers count from the first step of training.

    The ranks' parts of a batch differ by one example at most.
    """

    num_examples: int
    batch_size: int
    """Examples per step, over all ranks."""
    seed: int
    rank: int = 0
    ranks: int = 1

    @property
    def steps(self) -> int:
        """Steps per epoch; the last batch may be smaller."""
        return -(-self.num_examples // self.batch_size)

    def epoch_of(self, step: int) -> int:
        return step // self.steps

    def steps_at_once(self, step: int, limit: int) -> int:
        """The number of steps from `step` on, at most `limit`, that are in one epoch and have batches of equal size."""
        in_epoch = step % self.steps
        whole = self.num_examples // self.batch_size
        return max(1, min(limit, whole - in_epoch))

    def size(self, step: int) -> int:
        """Examples in the batch of `step`."""
        return min(self.batch_size, self.num_examples - step % self.steps * self.batch_size)

    def part(self, step: int) -> slice:
        """The columns of the batch that this rank computes. If a batch has fewer examples than ranks, a rank without
        any computes the first one with weight 0."""
        size = self.size(step)
        start, stop = size * self.rank // self.ranks, size * (self.rank + 1) // self.ranks
        return slice(start, stop) if start < stop else slice(0, 1)

    def weight(self, step: int) -> float:
        """This rank's share of the batch's examples."""
        size = self.size(step)
        return (size * (self.rank + 1) // self.ranks - size * self.rank // self.ranks) / size

    def positions(self, step: int, device: torch.device, count: int = 1) -> Tensor:
        """The positions within the epoch of `count` steps, (count, B), over all ranks."""
        start = step % self.steps * self.batch_size
        stop = min(start + count * self.batch_size, self.num_examples)
        return torch.arange(start, stop, device=device).view(count, -1)

    def examples(self, step: int, device: torch.device, count: int = 1) -> Tensor:
        """The example numbers of `count` steps of one epoch, (count, B), shuffled anew each epoch."""
        key = Stream(self.seed, "order", self.epoch_of(step)).key
        return permute(self.positions(step, device, count), self.num_examples, key)

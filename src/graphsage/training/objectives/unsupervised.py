"""The unsupervised objective: Equation 1, which `graphsage.losses.unsupervised_loss` computes.

Its pairs (u, v) co-occur on a random walk that starts at u. Its distribution P_n draws Q negatives v_n, either for the
whole batch or for each pair.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from graphsage.errors import DataError, setting
from graphsage.execution.fast_encoder import FastEncoder
from graphsage.execution.step import Examples
from graphsage.execution.strategies import LayerInput
from graphsage.kernels.random import Stream, derive
from graphsage.losses import unsupervised_loss
from graphsage.sampling.negatives import Negatives
from graphsage.sampling.walks import walk_pairs
from graphsage.training.config import Config
from graphsage.training.objectives.base import Objective, TrainingData


@dataclass(frozen=True)
class Pairs:
    """The gathered data of P pairs and their negatives."""

    inputs: LayerInput
    valid: Tensor
    total: Tensor | None
    """The number of valid pairs in the whole batch; None if one rank computes the whole batch."""


class Unsupervised(Objective):
    """An epoch contains every pair (u, v) of the random walks once."""

    def __init__(self, config: Config, encoder: FastEncoder, data: TrainingData) -> None:
        super().__init__(config, encoder, data)
        self.walks = walk_pairs(data.graph, data.nodes, config.seed, config.num_walks, config.walk_length or 5)
        self.negatives = Negatives.of_degrees(data.graph.degrees)  # P_n
        if not self.walks.count:
            raise DataError(
                "no training node has an edge to another node, so walks find no pairs; use "
                f"{setting('task', 'supervised')}"
            )
        self.epochs = self._epochs(self.walks.count)

    def choose_examples(self, step: int, count: int = 1) -> Examples:
        """The nodes u, then v, then v_n, (count, 2P + Q) or (count, 2P + PQ); their keys; which pairs are valid
        (count, P); if ranks share the step, the number of valid pairs of all ranks (count,)."""
        epoch, part = self.epochs.epoch_of(step), self.epochs.part(step)
        numbers = self.epochs.examples(step, self.data.nodes.device, count)
        # Every rank walks for the whole batch: this is cheaper than exchanging the numbers of valid pairs.
        u, v, valid = (tensor.view(numbers.shape) for tensor in self.walks.pairs(numbers.flatten()))
        total = valid.sum(dim=1)
        u, v, valid = u[:, part], v[:, part], valid[:, part]
        pair_keys = Stream(self.config.seed, "pairs", epoch).keys(numbers[:, part])
        bits = self._negative_bits(step, epoch, pair_keys)
        v_n = self.negatives.draw(bits)
        nodes = torch.cat([u, v, v_n], dim=1)
        keys = torch.cat([derive(pair_keys, 1), derive(pair_keys, 2), derive(bits, 3)], dim=1)
        if self.epochs.ranks == 1:
            return nodes, keys, valid
        return nodes, keys, valid & bool(self.epochs.weight(step)), total

    def gather(self, examples: Examples, out: Tensor | None = None) -> Pairs:
        nodes, keys, valid, *total = examples
        return Pairs(self._read(nodes, keys, out), valid, total[0] if total else None)

    def loss(self, gathered: Pairs) -> Tensor:
        z, p = self._embed(gathered.inputs), len(gathered.valid)
        z_u, z_v, z_n = z[:p], z[p : 2 * p], z[2 * p :]
        if self.config.negatives_per_pair:
            z_n = z_n.view(p, self.config.num_negatives, -1)
        return unsupervised_loss(z_u, z_v, z_n, gathered.valid, gathered.total)

    def _negative_bits(self, step: int, epoch: int, pair_keys: Tensor) -> Tensor:
        """64 random bits per negative: (count, Q) if a batch shares its negatives, else (count, P * Q)."""
        slots = torch.arange(self.config.num_negatives, device=pair_keys.device)
        if self.config.negatives_per_pair:
            return derive(pair_keys[:, :, None], slots + 8).flatten(1)
        first = step % self.epochs.steps
        steps = torch.arange(first, first + len(pair_keys), device=pair_keys.device)
        return derive(Stream(self.config.seed, "negatives", epoch).keys(steps)[:, None], slots)

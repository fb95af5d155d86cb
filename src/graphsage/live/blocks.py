"""A row's product with a weight is the same bits whatever rows it is computed with: always in blocks of one shape.

A matrix product of another height may add up in another order, so that a node embedded alone and in a batch would
differ in the last bits. Rows are padded to full blocks of ROWS instead.
"""

import copy

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from graphsage.model.encoder import Encoder
from graphsage.model.heads import ClassHead

ROWS = 32


class BlockLinear(nn.Linear):
    """nn.Linear, ROWS rows at a time."""

    def forward(self, input: Tensor) -> Tensor:
        if input.dim() != 2:
            return super().forward(input)
        out = input.new_empty(-(-len(input) // ROWS) * ROWS, self.out_features)
        for start in range(0, len(input), ROWS):
            block = input[start : start + ROWS]
            if len(block) < ROWS:
                block = torch.cat([block, block.new_zeros(ROWS - len(block), block.shape[1])])
            out[start : start + ROWS] = F.linear(block, self.weight, self.bias)
        return out[: len(input)]


def in_blocks(module: Encoder) -> Encoder:
    """A copy of an encoder that shares its weights and multiplies in blocks."""
    copied = copy.deepcopy(module, {id(p): p for p in module.parameters()})
    _exchange(copied)
    return copied.eval()


def head_in_blocks(head: ClassHead) -> ClassHead:
    copied = copy.deepcopy(head, {id(p): p for p in head.parameters()})
    _exchange(copied)
    return copied.eval()


def _exchange(module: nn.Module) -> None:
    for part in module.modules():
        if type(part) is nn.Linear:
            part.__class__ = BlockLinear


def blocks_suffice(encoder: Encoder) -> bool:
    """Whether linear layers are all that an encoder learned; an LSTM, or an aggregator of one's own with weights of
    another kind, is run for one node at a time instead."""
    known = {id(p) for part in encoder.modules() if isinstance(part, nn.Linear) for p in part.parameters()}
    return all(id(p) in known for p in encoder.parameters())

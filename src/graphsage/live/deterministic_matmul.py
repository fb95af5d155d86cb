"""A model that gives a node bit-identical vectors alone and in a batch."""

import copy
from typing import TypeVar

from torch import nn

from graphsage.execution.rows_first import rows_first
from graphsage.kernels.block_linear import BlockLinear
from graphsage.model.encoder import Encoder
from graphsage.model.layer import SageLayer

M = TypeVar("M", bound=nn.Module)


def deterministic(module: M) -> M:
    """A copy of a module that shares its weights and multiplies in blocks."""
    copied = copy.deepcopy(module, {id(p): p for p in module.parameters()})
    for part in copied.modules():
        if type(part) is nn.Linear:
            BlockLinear.over(part)
    return copied.eval()


def rows_are_independent(encoder: Encoder) -> bool:
    """Whether a row is bit-identical in any batch: true if only linear modules multiply.
    False for an LSTM and for a user's aggregator with weights."""
    layers = [layer for layer in encoder.layers if isinstance(layer, SageLayer)]
    return all(rows_first(layer) is not None or not list(layer.aggregator.parameters()) for layer in layers)

"""A row's product with a weight is the same bits whatever rows it is computed with: always in blocks of one shape.

A matrix product of another height may add up in another order, so that a node embedded alone and in a batch would
differ in the last bits. Rows are padded to full blocks of ROWS instead: so few that a node alone wastes little, and
enough to keep the processor's registers full.
"""

import copy
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from graphsage.model.encoder import Encoder
from graphsage.model.heads import ClassHead

ROWS = 16


def _in_blocks(rows: Tensor, product: Callable[[Tensor], Tensor]) -> Tensor:
    """`product` of ROWS rows at a time."""
    parts = []
    for start in range(0, len(rows), ROWS):
        block = rows[start : start + ROWS]
        if len(block) < ROWS:
            block = torch.cat([block, block.new_zeros(ROWS - len(block), block.shape[1])])
        parts.append(product(block))
    if not parts:
        return product(rows)
    made = parts[0] if len(parts) == 1 else torch.cat(parts)
    return made[: len(rows)]


class BlockLinear(nn.Linear):
    """nn.Linear in blocks, by a copy of the weight that lies as the product reads it: a third faster for few rows."""

    turned: Tensor

    @staticmethod
    def over(linear: nn.Linear) -> None:
        """Make a BlockLinear of `linear`, whose weight must not change any more."""
        linear.__class__ = BlockLinear
        linear.register_buffer("turned", linear.weight.detach().t().contiguous(), persistent=False)

    def forward(self, input: Tensor) -> Tensor:
        if input.dim() != 2:
            return super().forward(input)
        made = _in_blocks(input, lambda block: torch.mm(block, self.turned))
        return made if self.bias is None else made + self.bias


class Blocks(TorchFunctionMode):
    """Within it, every product of two matrices is computed in blocks, whoever asks for it."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        options = kwargs or {}
        if func in _PRODUCTS and len(args) > 1 and args[0].dim() == 2 and args[1].dim() == 2:
            return _in_blocks(args[0], lambda block: func(block, *args[1:], **options))
        return func(*args, **options)


_PRODUCTS = frozenset((F.linear, torch.matmul, torch.mm, Tensor.matmul, Tensor.mm, Tensor.__matmul__))


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
            BlockLinear.over(part)


def products_of(encoder: Encoder) -> str:
    """'layers': only the layers' own linear modules multiply. 'all': an aggregator has weights of linear modules too,
    and multiplies as it likes. 'other': it has weights of another kind (an LSTM); its nodes are computed one by one."""
    linear = {id(p) for part in encoder.modules() if isinstance(part, nn.Linear) for p in part.parameters()}
    if not all(id(p) in linear for p in encoder.parameters()):
        return "other"
    aggregators = [encoder.layer(k + 1).aggregator for k in range(len(encoder.layers))]
    return "all" if any(True for each in aggregators for _ in each.parameters()) else "layers"

"""A row's product with a weight is the same bits whatever rows it is computed with: always in blocks of one shape.

A matrix product of another height may add up in another order, so that a node embedded alone and in a batch would
differ in the last bits. Rows are padded to full blocks of ROWS instead: so few that a node alone wastes little, and
enough to keep the processor's registers full. Columns are padded to whole vectors of COLUMNS: with fewer, some
processors' kernels add up a block's first rows in another order than its last.
"""

import copy
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from graphsage.model.encoder import Encoder
from graphsage.model.heads import ClassHead

ROWS, COLUMNS = 16, 16


def _whole_columns(weight: Tensor) -> Tensor:
    return F.pad(weight, (0, -weight.shape[1] % COLUMNS))


def _in_blocks(rows: Tensor, weight: Tensor, bias: Tensor | None, width: int) -> Tensor:
    """`rows @ weight + bias` of ROWS rows at a time, the first `width` columns; `weight` has whole columns."""
    parts = []
    for start in range(0, len(rows), ROWS):
        block = rows[start : start + ROWS]
        if len(block) < ROWS:
            block = torch.cat([block, block.new_zeros(ROWS - len(block), block.shape[1])])
        parts.append(torch.mm(block, weight))
    if not parts:
        return rows.new_zeros(0, width)
    made = (parts[0] if len(parts) == 1 else torch.cat(parts))[: len(rows), :width]
    return made.contiguous() if bias is None else made + bias


class BlockLinear(nn.Linear):
    """nn.Linear in blocks, by a copy of the weight that lies as the product reads it: a third faster for few rows."""

    turned: Tensor

    @staticmethod
    def over(linear: nn.Linear) -> None:
        """Make a BlockLinear of `linear`, whose weight must not change any more."""
        linear.__class__ = BlockLinear
        turned = _whole_columns(linear.weight.detach().t()).contiguous()
        linear.register_buffer("turned", turned, persistent=False)

    def forward(self, input: Tensor) -> Tensor:
        if input.dim() != 2:
            return super().forward(input)
        return _in_blocks(input, self.turned, self.bias, self.out_features)


class Blocks(TorchFunctionMode):
    """Within it, every product of two matrices is computed in blocks, whoever asks for it."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        options = kwargs or {}
        if func in _PRODUCTS and len(args) > 1 and args[0].dim() == 2 and args[1].dim() == 2:
            rows, weight = args[0], args[1].t() if func is F.linear else args[1]
            bias = (*args[2:3], options.get("bias"))[0] if func is F.linear else None
            return _in_blocks(rows, _whole_columns(weight), bias, weight.shape[1])
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

"""Linear layers whose products have the same bits for a row, whatever rows it is computed with.

A matrix product of another height may add up in another order, so that a node embedded alone and in a batch would
differ in the last bits. `BlockLinear` pads rows to full blocks of ROWS instead: so few that a node alone wastes little,
and enough to keep the processor's registers full. Columns are padded to whole vectors of COLUMNS: with fewer, some
processors' kernels add up a block's first rows in another order than its last.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

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

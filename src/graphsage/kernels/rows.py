"""x_v of chosen nodes: rows of the input tables side by side, shifted and scaled (Algorithm 1, line 1)."""

from collections.abc import Sequence

import torch
from torch import Tensor

from graphsage.kernels.backend import on_triton


def scaled_rows(tables: Sequence[Tensor], nodes: Tensor, shift: Tensor, scale: Tensor, out: Tensor | None = None,
                ) -> Tensor:  # fmt: skip
    """tables (N, D_i) of any float type, nodes (R,) -> (R, D) on the device of `nodes`; `out` may be wider.

    A table may stay in the host's memory while `nodes` are on a GPU.
    """
    if out is None:
        out = torch.empty(len(nodes), len(shift), dtype=torch.float32, device=nodes.device)
    at = 0
    for table in tables:
        columns = slice(at, at + table.shape[1])
        into = out[:, columns]
        if on_triton(nodes):
            from graphsage.kernels.triton import rows as fast

            fast.scaled_rows(table, nodes, shift[columns], scale[columns], into)
        else:
            rows = table.index_select(0, nodes.to(table.device)).to(nodes.device).float()
            torch.mul(rows.sub_(shift[columns]), scale[columns], out=into)
        at += table.shape[1]
    return out

"""From edges to the CSR form of a graph."""

import torch
from torch import Tensor

from graphsage.kernels.backend import on_compiled
from graphsage.kernels.compiled import bindings


def neighbor_lists(rows: Tensor, columns: Tensor, n: int) -> tuple[Tensor, Tensor]:
    """Each row's columns, ascending and once each: indptr (n + 1,), indices. Rows and columns are int64."""
    if on_compiled(rows, columns) and n < 2**31:
        return bindings.neighbor_lists(rows, columns, n)
    return lists_of_codes(torch.unique(rows * n + columns), n)


def lists_of_codes(codes: Tensor, n: int) -> tuple[Tensor, Tensor]:
    """The same from row * n + column, ascending."""
    rows = torch.div(codes, n, rounding_mode="floor")
    counts = torch.bincount(rows, minlength=n)
    indptr = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
    indices = codes - rows * n
    return indptr, indices.int() if n < 2**31 else indices

"""What every aggregator is: a module from a table and a neighborhood to one vector a row."""

from typing import ClassVar

from torch import Tensor, nn

from graphsage.kernels.neighborhood import Neighborhood


class Aggregator(nn.Module):
    """Subclass it, set `self.out_dim` and define `forward`; `register_aggregator` gives it a name.

    It is given (table, neighborhood), not gathered rows, so that it can decide itself whether to transform the M
    rows of the table once or the gathered ones.
    """

    includes_self: ClassVar[bool] = False
    """True: the row itself is among what is averaged (Equation 2), and the layer does not concatenate it."""
    linear: ClassVar[bool] = False
    """True: the result is an average of the rows, so it commutes with scaling the table's columns."""
    padded: ClassVar[bool] = False
    """True: it takes rows of the input that are padded with zeros or of half precision, as a GPU likes them."""

    out_dim: int

    def __init__(self, in_dim: int, hidden_dim: int | None = None, depth: int = 1) -> None:
        super().__init__()
        self.out_dim = in_dim

    def forward(self, h: Tensor, neighborhood: Neighborhood, rows: Tensor) -> Tensor:
        """h (M, in_dim), R neighborhoods, rows (R,) of the table -> (R, out_dim); zero for a row without neighbors."""
        raise NotImplementedError(f"{type(self).__name__} must define forward(h, neighborhood, rows)")

    acts_on_rows: ClassVar[bool] = False
    """True: it is `reduce` after `on_rows`, which acts on each row alone, so once is enough for a whole graph."""

    def on_rows(self, h: Tensor) -> Tensor:
        """h (M, in_dim) -> (M, out_dim)."""
        return h

    def reduce(self, table: Tensor, neighborhood: Neighborhood, rows: Tensor) -> Tensor:
        """`forward`, given what `on_rows` made of the table."""
        result: Tensor = self(table, neighborhood, rows)
        return result

    partial: ClassVar[str | None] = None
    """'sum' or 'max': `reduce` is `from_partial` after that of the neighbors' rows, which can therefore be taken over
    some of them at a time. None: it wants whole neighbor lists."""

    def from_partial(self, combined: Tensor, counts: Tensor, own: Tensor | None) -> Tensor:
        """combined (R, out_dim), zero where a row has no neighbor; counts (R,); `own` (R, out_dim) are the rows' own
        rows of the table, given where `includes_self`."""
        raise NotImplementedError(f"{type(self).__name__} must define from_partial(combined, counts, own)")

"""AGGREGATE_k: from a table h and neighborhoods in it to one vector for each row."""

from typing import ClassVar

from torch import Tensor, nn

from graphsage.kernels.neighborhood import Neighborhood


class Aggregator(nn.Module):
    """Subclass it, define `forward`, and give it a name with `register_aggregator`.

    It receives the table and the neighborhoods, not gathered rows, so that it can transform each row of h once.
    """

    reduction: ClassVar[str] = "sequence"
    """How `forward` reduces the neighbors' messages: 'mean', 'max', or 'sequence' for any other function."""
    includes_self: ClassVar[bool] = False
    """True: the node is one of its own neighbors (Equation 2), and the layer does not concatenate it."""

    reads_weights: ClassVar[bool] = False
    """Whether `forward` reads the weights of the neighbors, `hood.weight`."""

    out_dim: int

    def __init__(self, in_dim: int, hidden_dim: int | None = None, depth: int = 1) -> None:
        super().__init__()
        self.out_dim = in_dim

    def reset_parameters(self) -> None:
        """Called by the layer once its own weight exists. By default weights stay as `__init__` made them."""

    def message(self, h: Tensor) -> Tensor:
        """h (M, in_dim) -> (M, out_dim): what `forward` does to each row before it reduces."""
        return h

    def forward(self, h: Tensor, hood: Neighborhood) -> Tensor:
        """h (M, in_dim), R neighborhoods -> (R, out_dim); zero for a row without neighbors."""
        raise NotImplementedError(f"{type(self).__name__} must define forward(h, hood)")

"""The ranks that share a training step, each with its part of every batch; one process has a single rank.

Every rank holds the same weights and makes the same updates, but computes other targets of a step. `Ranks` is the
communication that this needs; `graphsage.cluster` implements it over a network.
"""

from collections.abc import Callable
from typing import Protocol

from torch import Tensor


class Ranks(Protocol):
    """Rank `rank` of `count`; rank 0 also validates, reports and writes."""

    rank: int
    count: int

    def add(self, tensor: Tensor) -> None:
        """Replace `tensor` by its sum over all ranks."""

    def any(self, flag: bool) -> bool:
        """Whether `flag` is set on any rank; a barrier for all of them."""

    def first(self, call: Callable[[], bytes]) -> bytes:
        """The result of `call` on rank 0; if it raises a GraphSageError there, every rank raises it."""


class SingleProcess:
    """Training without other ranks."""

    rank = 0
    count = 1

    def add(self, tensor: Tensor) -> None:
        pass

    def any(self, flag: bool) -> bool:
        return flag

    def first(self, call: Callable[[], bytes]) -> bytes:
        return call()


SINGLE_PROCESS = SingleProcess()

"""Who shares the work of a step: one process alone, or several ranks that each take a part of every batch.

Every rank holds the same weights and does the same updates; what differs is which targets of a step it computes. What
they need of each other is here; `graphsage.cluster` gives it to them over a network.
"""

from collections.abc import Callable
from typing import Protocol

from torch import Tensor


class Ranks(Protocol):
    """This process among `count`; number 0 also validates, reports and writes."""

    rank: int
    count: int

    def add(self, tensor: Tensor) -> None:
        """Replace `tensor` by its sum over all ranks."""

    def any(self, flag: bool) -> bool:
        """Whether `flag` is set on some rank; also a moment that all of them have reached."""

    def first(self, call: Callable[[], bytes]) -> bytes:
        """What `call` returns on rank 0; an error that it raises there on purpose is raised everywhere."""


class Alone:
    """One process that does everything."""

    rank = 0
    count = 1

    def add(self, tensor: Tensor) -> None:
        pass

    def any(self, flag: bool) -> bool:
        return flag

    def first(self, call: Callable[[], bytes]) -> bytes:
        return call()


ALONE = Alone()

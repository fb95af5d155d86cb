"""What sampling hands to the model: for each of R rows, which rows of a table are its neighbors."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Neighborhood:
    """Neighbors of R rows, in one of four forms; the constructors below say which.

    dense        index (R, S): every row has S neighbors, or none where `present` is False.
    consecutive  dense, and index[r, s] == start + r * S + s, so that gathering is a reshape.
    ragged       index (E,), offsets (R + 1,): row r has index[offsets[r]:offsets[r + 1]].
    stacked      several of these, the rows of one after those of the other.

    `keys` (R,) int64 names each row's draw, for aggregators that need randomness of their own (LSTM's permutation).
    """

    _index: Tensor | None
    offsets: Tensor | None
    present: Tensor
    keys: Tensor
    size: int
    start: int | None = None
    stack: tuple["Neighborhood", ...] = ()

    @classmethod
    def dense(cls, index: Tensor, present: Tensor, keys: Tensor) -> "Neighborhood":
        return cls(index, None, present, keys, index.shape[1])

    @classmethod
    def consecutive(cls, start: int, size: int, present: Tensor, keys: Tensor) -> "Neighborhood":
        return cls(None, None, present, keys, size, start)

    @classmethod
    def ragged(cls, index: Tensor, offsets: Tensor, keys: Tensor) -> "Neighborhood":
        return cls(index, offsets, offsets[1:] > offsets[:-1], keys, 0)

    @classmethod
    def stacked(cls, stack: Sequence["Neighborhood"]) -> "Neighborhood":
        if len(stack) == 1:
            return stack[0]
        present, keys = (torch.cat(rows) for rows in ([n.present for n in stack], [n.keys for n in stack]))
        return cls(None, None, present, keys, 0, None, tuple(stack))

    @property
    def parts(self) -> tuple["Neighborhood", ...]:
        """What is stacked; of any other form, itself alone."""
        return self.stack or (self,)

    @property
    def num_rows(self) -> int:
        return self.present.shape[0]

    @property
    def index(self) -> Tensor:
        """The neighbors' table rows: (R, S), or (E,) when ragged."""
        if self._index is not None:
            return self._index
        assert not self.stack, "ask the parts"
        assert self.start is not None
        count = self.num_rows * self.size
        return torch.arange(self.start, self.start + count, device=self.keys.device).view(-1, self.size)

    @property
    def counts(self) -> Tensor:
        """How many neighbors each row has, (R,)."""
        if self.stack:
            return torch.cat([part.counts for part in self.stack])
        if self.offsets is not None:
            return self.offsets[1:] - self.offsets[:-1]
        return self.present * self.size

    def with_index(self, index: Tensor) -> "Neighborhood":
        """The same rows reading other table rows (after the table was compacted or reordered)."""
        return Neighborhood(index, self.offsets, self.present, self.keys, self.size)


@dataclass(frozen=True, eq=False)
class Minibatch:
    """Algorithm 2, lines 1-7, as plain index tensors.

    `rows` (R_1,) are the nodes whose h^1 is needed: the targets first. `neighborhoods[k - 1]` holds N_k: the first
    one indexes the graph's nodes, the others index the rows that iteration k - 1 returned, of which the first
    `neighborhoods[k - 1].num_rows` are also the rows of iteration k themselves.
    """

    rows: Tensor
    neighborhoods: tuple[Neighborhood, ...]

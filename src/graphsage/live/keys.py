"""What names a node's draws: 64 bits of its id, so that they do not change when rows are numbered anew."""

from collections.abc import Iterable
from hashlib import blake2b

import numpy as np
import numpy.typing as npt
import torch

from graphsage.kernels.random import GOLDEN, Stream, derive, mix_int

Rows = npt.NDArray[np.int64]


def node_key(id: str) -> int:
    return int.from_bytes(blake2b(id.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little", signed=True)


def node_keys(ids: Iterable[str]) -> Rows:
    return np.fromiter((node_key(id) for id in ids), np.int64)


class Priorities:
    """One random number for every edge, a function of the seed and the ids of its ends.

    `both_ways`: the same for (u, v) and (v, u). The degree cap keeps the edges with the smallest numbers.
    """

    def __init__(self, seed: int, both_ways: bool) -> None:
        self._stream, self._both_ways = Stream(seed, "degree cap"), both_ways

    def of(self, u: int, v: int) -> int:
        """That of one edge, by the keys of its ends."""
        low, high = (min(u, v), max(u, v)) if self._both_ways else (u, v)
        key = mix_int((low + 1) * GOLDEN + self._stream.key)
        return mix_int(key + (high + 1) * GOLDEN)

    def many(self, u: Rows, v: Rows) -> Rows:
        """The same for arrays of keys."""
        low, high = (np.minimum(u, v), np.maximum(u, v)) if self._both_ways else (u, v)
        return derive(self._stream.keys(torch.from_numpy(low)), torch.from_numpy(high)).numpy()

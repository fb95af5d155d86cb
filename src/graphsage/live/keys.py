"""Keys of nodes: 64-bit hashes of their ids, so that random draws do not change when rows are renumbered."""

from collections.abc import Iterable
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[np.int64]


def node_key(id: str) -> int:
    return int.from_bytes(blake2b(id.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little", signed=True)


def node_keys(ids: Iterable[str]) -> Rows:
    return np.fromiter((node_key(id) for id in ids), np.int64)

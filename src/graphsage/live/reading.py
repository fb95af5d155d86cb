"""The one way inference reads a live graph: lists of neighbors and rows of features through base + overlay.

In a micro-batch every node that is only asked about has an overlay of its own. A place is (overlay, row), coded as one
int64, so that nodes of different overlays never mix and those of one are shared.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from graphsage.features.degree import degree_features
from graphsage.live.keys import Rows
from graphsage.live.overlay import Overlay

_SHIFT = 40
_MASK = (1 << _SHIFT) - 1


@dataclass(frozen=True, eq=False)
class Target:
    """A node to embed: a row of the live graph's overlay, or of one on top of it."""

    overlay: Overlay
    row: int


class Reading:
    """Places of a micro-batch."""

    def __init__(self, targets: Sequence[Target]) -> None:
        numbers: dict[int, int] = {}
        self._overlays: list[Overlay] = []
        for target in targets:
            if id(target.overlay) not in numbers:
                numbers[id(target.overlay)] = len(self._overlays)
                self._overlays.append(target.overlay)
        first = self._overlays[0]
        self._main = first if first.below is None else first.below
        self.targets: Rows = np.array([numbers[id(t.overlay)] << _SHIFT | t.row for t in targets], np.int64)

    def neighbors(self, places: Rows) -> tuple[Rows, Rows]:
        """The capped lists of `places` one after the other, as places, and where each begins: (E,), (R + 1,)."""
        offsets = np.zeros(len(places) + 1, np.int64)
        lists = [self._overlays[p >> _SHIFT].adjacency.capped(p & _MASK) for p in places.tolist()]
        np.cumsum([len(each) for each in lists], out=offsets[1:])
        if not offsets[-1]:
            return np.zeros(0, np.int64), offsets
        flat = np.concatenate(lists).astype(np.int64, copy=False)
        flat += np.repeat(places & ~_MASK, np.diff(offsets))
        return flat, offsets

    def keys(self, places: Rows) -> Tensor:
        """What names each place's draws."""
        rows = places & _MASK
        keys = self._main.adjacency.keys_of(np.minimum(rows, self._main.num_rows - 1))
        for here in np.flatnonzero(rows >= self._main.num_rows).tolist():
            keys[here] = self._overlays[int(places[here]) >> _SHIFT].key_of(int(rows[here]))
        return torch.from_numpy(keys)

    def inputs(self, places: Rows, degrees: bool) -> Rows:
        """Places whose x_v differ: an overlay of one visitor changes no other node's features, only degrees."""
        return places if degrees else np.where((places & _MASK) < self._main.num_rows, places & _MASK, places)

    def tables(self, places: Rows, degrees: bool) -> list[Tensor]:
        """The tables whose rows, side by side, are x_v of `places`."""
        rows = places & _MASK
        table = self._main.feature_rows(np.minimum(rows, self._main.num_rows - 1))
        for here in np.flatnonzero(rows >= self._main.num_rows).tolist():
            own = self._overlays[int(places[here]) >> _SHIFT].features.get(int(rows[here]))
            if own is not None:
                table[here] = torch.from_numpy(own)
        tables = [table] if table.shape[1] else []
        if degrees:
            lists = (self._overlays[p >> _SHIFT].adjacency.neighbors(p & _MASK) for p in places.tolist())
            tables.append(degree_features(torch.tensor([len(each) for each in lists], dtype=torch.int64)))
        return tables

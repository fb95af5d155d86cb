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
        keys = np.empty(len(places), np.int64)
        for overlay, here, rows in self._by_overlay(places):
            keys[here] = overlay.adjacency.keys_of(rows)
        return torch.from_numpy(keys)

    def tables(self, places: Rows, degrees: bool) -> list[Tensor]:
        """The tables whose rows, side by side, are x_v of `places`."""
        width = self._overlays[0].base.graph.num_features
        table, counts = torch.empty(len(places), width), np.empty(len(places), np.int64)
        for overlay, here, rows in self._by_overlay(places):
            table[torch.from_numpy(here)] = overlay.feature_rows(rows)
            if degrees:
                counts[here] = overlay.adjacency.degrees(rows)
        tables = [table] if width else []
        return [*tables, degree_features(torch.from_numpy(counts))] if degrees else tables

    def _by_overlay(self, places: Rows) -> list[tuple[Overlay, Rows, Rows]]:
        numbers = places >> _SHIFT
        groups = []
        for number, overlay in enumerate(self._overlays):
            here = np.flatnonzero(numbers == number)
            if len(here):
                groups.append((overlay, here, places[here] & _MASK))
        return groups

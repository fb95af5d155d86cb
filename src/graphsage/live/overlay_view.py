"""How inference reads a live graph: neighbor lists and features through base and overlay.

In a micro-batch, every new node has an overlay of its own. A node number here is (overlay, row) in one int64, so nodes
of different overlays stay apart.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from graphsage.features.known_labels import label_features
from graphsage.features.structure import Structure
from graphsage.graph.ids import IntArray
from graphsage.kernels.neighborhood import Hoods, Minibatch, compact, each_relation, joined_rows, reindexed
from graphsage.live.overlay import Overlay
from graphsage.sampling.minibatch import Unweighted

_SHIFT = 40
_MASK = (1 << _SHIFT) - 1


@dataclass(frozen=True, eq=False)
class Target:
    """A node to embed: a row of the live graph's overlay, or of an overlay on top of it."""

    overlay: Overlay
    row: int


class OverlayView(Unweighted):
    """A `GraphView` of the overlays of a micro-batch.

    `structure`: the features by edges that the model reads. `by_key`: lists are in the order of the nodes' keys (see
    `inference.embed.order_matters`). `label_classes`: the number of classes that a model with label inputs knows.
    """

    num_nodes = 1 << 62

    def __init__(
        self, targets: Sequence[Target], structure: Structure, by_key: bool = False, label_classes: int | None = None
    ) -> None:
        numbers: dict[int, int] = {}
        self._overlays: list[Overlay] = []
        for target in targets:
            if id(target.overlay) not in numbers:
                numbers[id(target.overlay)] = len(self._overlays)
                self._overlays.append(target.overlay)
        first = self._overlays[0]
        self._main = first if first.below is None else first.below
        self._structure, self._by_key, self._label_classes = structure, by_key, label_classes
        self.targets = torch.tensor([numbers[id(t.overlay)] << _SHIFT | t.row for t in targets])

    @property
    def by_relation(self) -> "tuple[OverlayView]":
        return (self,)  # live graphs have one relation, without weights

    def neighbors_of(self, nodes: Tensor) -> tuple[Tensor, Tensor]:
        """Neighbors within the degree cap."""
        offsets = np.zeros(len(nodes) + 1, np.int64)
        lists = [self._overlays[v >> _SHIFT].adjacency.capped(v & _MASK) for v in nodes.tolist()]
        np.cumsum([len(each) for each in lists], out=offsets[1:])
        if not offsets[-1]:
            return torch.zeros(0, dtype=torch.int64), torch.from_numpy(offsets)
        flat = np.concatenate(lists).astype(np.int64, copy=False)
        flat += np.repeat(nodes.numpy() & ~_MASK, np.diff(offsets))
        if self._by_key:
            owners = np.repeat(np.arange(len(nodes)), np.diff(offsets))
            flat = flat[np.lexsort((self.draw_keys(torch.from_numpy(flat)).numpy(), owners))]
        return torch.from_numpy(flat), torch.from_numpy(offsets)

    def csr_of(self, nodes: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        flat, offsets = self.neighbors_of(nodes)
        return offsets, flat, torch.arange(len(nodes))

    def draw_keys(self, nodes: Tensor) -> Tensor:
        """Hashes of ids, which stay the same when rows are renumbered."""
        rows = nodes.numpy() & _MASK
        keys = self._main.adjacency.keys_of(np.minimum(rows, self._main.num_rows - 1))
        for here in np.flatnonzero(rows >= self._main.num_rows).tolist():
            keys[here] = self._overlays[int(nodes[here]) >> _SHIFT].key_of(int(rows[here]))
        return torch.from_numpy(keys)

    def inputs_of(self, batch: Minibatch) -> tuple[list[Tensor], tuple[Hoods, ...]]:
        """A copy of the features of the batch, so that the graph may change afterwards."""
        hoods = batch.neighborhoods[0]
        if len(self._overlays) > 1 and not self._structure.width:
            indices = [self._of_main(hood.index.flatten()) for hood in each_relation(hoods)]
            hoods = reindexed(hoods, indices, self._of_main(joined_rows(hoods)))
        nodes, first = compact(hoods, self.num_nodes)
        return self._tables(nodes.numpy()), (first, *batch.neighborhoods[1:])

    def tables_of(self, nodes: Tensor) -> tuple[list[Tensor], Tensor]:
        """A copy of the features of `nodes`."""
        return self._tables(nodes.numpy()), torch.arange(len(nodes))

    def _of_main(self, nodes: Tensor) -> Tensor:
        """One number for a node of the live graph in all overlays: a new node changes degrees but no features."""
        rows = nodes & _MASK
        return torch.where(rows < self._main.num_rows, rows, nodes)

    def _tables(self, nodes: IntArray) -> list[Tensor]:
        rows = nodes & _MASK
        table = self._main.feature_rows(rows)
        for here in np.flatnonzero(rows >= self._main.num_rows).tolist():
            own = self._overlays[int(nodes[here]) >> _SHIFT].features.get(int(rows[here]))
            if own is not None:
                table[here] = torch.from_numpy(own)
        tables = [table] if table.shape[1] else []
        if self._structure.width:
            tables += self._structure.of_lists(*self._neighbor_keys(nodes))
        if self._label_classes is not None:
            tables.append(self._labels(rows, self._label_classes))
        return tables

    def _labels(self, rows: IntArray, num_classes: int) -> Tensor:
        """The stored labels of `rows` as features; those of a request's new nodes are not known."""
        found = {int(row): self._main.label_of(int(row)) for row in np.unique(rows[rows < self._main.num_rows])}
        marks = torch.zeros(len(rows), num_classes)
        known = []
        for place, row in enumerate(rows.tolist()):
            if (label := found.get(row)) is not None:
                known.append(place)
                own = label if isinstance(label, tuple) else (label,)
                marks[place, [number for number in own if number < num_classes]] = 1.0
        return label_features(marks, torch.tensor(known, dtype=torch.int64), len(rows), num_classes)

    def _neighbor_keys(self, nodes: IntArray) -> tuple[Tensor, Tensor]:
        """The keys of all neighbors of `nodes`, one node after the other, and where each begins; keys are 0 where the
        model reads only degrees."""
        lists = [self._overlays[v >> _SHIFT].adjacency.neighbors(v & _MASK) for v in nodes.tolist()]
        counts = np.array([len(each) for each in lists], np.int64)
        offsets = torch.from_numpy(np.concatenate([[0], counts.cumsum()]))
        if not self._structure.projections or not offsets[-1]:
            return torch.zeros(int(offsets[-1]), dtype=torch.int64), offsets
        flat = np.concatenate(lists).astype(np.int64) + np.repeat(nodes & ~_MASK, counts)
        return self.draw_keys(torch.from_numpy(flat)), offsets

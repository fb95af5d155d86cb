"""The overlay: nodes, edges, features and attributes that differ from its base, and reads through both.

The base is a generation or, for a new node of a request, the overlay of the live graph. Rows of new nodes follow those
of the base; a deleted node keeps an empty row until the next generation.
"""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from graphsage.graph.ids import IntArray, node_key
from graphsage.live.adjacency import Adjacency, BaseCap
from graphsage.live.change import Change, Floats, NodeChange
from graphsage.live.generation import Generation


class Overlay:
    def __init__(self, base: Generation, cap: BaseCap, below: "Overlay | None" = None) -> None:
        self.base, self.cap, self.below = base, cap, below
        self.num_rows: int = base.num_nodes if below is None else below.num_rows
        self.keys: dict[int, int] = {}
        self.adjacency: Adjacency = Adjacency(base, cap, self.keys, None if below is None else below.adjacency)
        self.features: dict[int, Floats] = {}
        self.attributes: dict[int, dict[str, Any]] = {}
        self.labels: dict[int, int | tuple[int, ...]] = {}
        self.rows: dict[str, int | None] = {}
        self.ids: dict[int, str] = {}
        self.gone: set[int] = set()

    def visitor(self, key: int, features: Floats | None, neighbors: Iterable[int]) -> tuple["Overlay", int]:
        """An overlay with a new node of a request and its row; its vector is as if the node were in the graph."""
        child = Overlay(self.base, self.cap, self)
        row, child.num_rows = child.num_rows, child.num_rows + 1
        child.keys[row] = key
        child.adjacency.new_row(row)
        if features is not None:
            child.features[row] = child._rounded(features)
        child.adjacency.visit(row, list(dict.fromkeys(neighbors)))
        return child, row

    def snapshot(self) -> "Overlay":
        """A copy that later changes do not affect: they replace arrays and never write into them."""
        copied = Overlay(self.base, self.cap)
        copied.num_rows = self.num_rows
        copied.keys.update(self.keys)
        copied.adjacency.lists, copied.adjacency.shown = dict(self.adjacency.lists), dict(self.adjacency.shown)
        for name in ("features", "attributes", "labels", "rows", "ids", "gone"):
            setattr(copied, name, getattr(self, name).copy())
        return copied

    def staged(self, change: Change) -> "Overlay":
        """An overlay with a checked change on top of this one, which stays as it is until it takes the new one."""
        above = Overlay(self.base, self.cap, self)
        above.apply(change)
        return above

    def take(self, above: "Overlay") -> None:
        """Make an overlay that was staged on top of this one part of it. Arrays are not copied, so this is fast."""
        self.num_rows = above.num_rows
        self.adjacency.take(above.adjacency)
        for row in above.gone:
            for held in (self.features, self.attributes, self.labels):
                held.pop(row, None)
        for name in ("keys", "features", "attributes", "labels", "rows", "ids", "gone"):
            getattr(self, name).update(getattr(above, name))

    def changed_ids(self) -> list[str]:
        """Of a staged overlay: nodes that were added, deleted, or whose features, labels or neighbors differ."""
        own = (self.adjacency.lists, self.adjacency.shown, self.features, self.attributes, self.labels, self.gone)
        return [self.id_of(row) for row in set().union(*own)]

    # Reading

    def find(self, id: str) -> int | None:
        """The row of a node; None if it does not exist."""
        if id in self.rows:
            return self.rows[id]
        return self.base.find(id) if self.below is None else self.below.find(id)

    def id_of(self, row: int) -> str:
        if row in self.ids:
            return self.ids[row]
        return self.base.id_of(row) if self.below is None else self.below.id_of(row)

    def key_of(self, row: int) -> int:
        return self.adjacency.key_of(row)

    @property
    def num_nodes(self) -> int:
        return self.num_rows - len(self.gone)

    def attributes_of(self, row: int) -> dict[str, Any]:
        found = self.attributes.get(row)
        if found is None and self.below is not None:
            return self.below.attributes_of(row)
        return self.base.attributes(row) if found is None and row < self.base.num_nodes else found or {}

    def label_of(self, row: int) -> int | tuple[int, ...] | None:
        """The class of a node, all its labels for multi-label data, or None if unknown."""
        if row in self.labels:
            return self.labels[row]
        if self.below is not None:
            return self.below.label_of(row)
        return self.base.label_of(row) if row < self.base.num_nodes else None

    def targets_of(self, row: int) -> dict[str, float | None] | None:
        """The numbers of a node that a regression predicts, by name, None for unknown; None if the graph has none, and
        for a node that arrived later."""
        found = self.base.targets_of(row) if row < self.base.num_nodes else None
        if found is None:
            return None
        names = self.base.graph.class_names or tuple(map(str, range(len(found))))
        return {name: None if math.isnan(value) else value for name, value in zip(names, found, strict=True)}

    def feature_rows(self, rows: IntArray) -> Tensor:
        """x_v of `rows`, (R, D) float32; anything for rows that do not exist."""
        out = self.base.feature_rows(rows)
        view = out.numpy()
        layers = [self] if self.below is None else [self.below, self]
        for layer in layers:
            if layer.features:
                for place, row in enumerate(rows.tolist()):
                    changed = layer.features.get(row)
                    if changed is not None:
                        view[place] = changed
        return out

    # Changing

    def add_node(self, node: NodeChange) -> int:
        """Add a node, or change features, attributes or label of one; return its row."""
        row = self.find(node.id)
        if row is None:
            row, self.num_rows = self.num_rows, self.num_rows + 1
            self.rows[node.id], self.ids[row] = row, node.id
            self.keys[row] = node_key(node.id)
            self.adjacency.new_row(row)
        if node.features is not None:
            self.features[row] = self._rounded(node.features)
        if node.attributes is not None:
            self.attributes[row] = {**self.attributes_of(row), **node.attributes}
        if node.label is not None:
            self.labels[row] = node.label
        return row

    def _rounded(self, features: Floats) -> Floats:
        """Attributes as the next generation stores them."""
        table = self.base.graph.features
        if table is None or table.dtype == torch.float32:
            return features
        return torch.from_numpy(features.copy()).to(table.dtype).float().numpy()

    def remove_node(self, id: str) -> None:
        row = self.find(id)
        assert row is not None
        self.adjacency.isolate(row)
        self.rows[id] = None
        self.gone.add(row)
        for held in (self.features, self.attributes, self.labels):
            held.pop(row, None)

    def apply(self, change: Change) -> None:
        """Apply a checked change: all nodes that it names exist."""
        if self._is_arrival(change):
            row = self.add_node(change.nodes[0])
            self.adjacency.visit(row, list(dict.fromkeys(self._row(other) for other, _ in change.edges)))
            return
        for node in change.nodes:
            self.add_node(node)
        if change.edges:
            rows = {id: self._row(id) for id in {id for pair in change.edges for id in pair}}
            ends = np.array([(rows[source], rows[target]) for source, target in change.edges])
            self.adjacency.join(ends[:, 0], ends[:, 1])
        for source, target in change.removed_edges:
            self.adjacency.cut(self._row(source), self._row(target))
        for id in change.removed_nodes:
            self.remove_node(id)

    def _is_arrival(self, change: Change) -> bool:
        """Apply the most frequent change, one new node with its edges, by adding all edges at once."""
        if len(change.nodes) != 1 or change.removed_edges or change.removed_nodes:
            return False
        id = change.nodes[0].id
        return self.find(id) is None and all(target == id != source for source, target in change.edges)

    def _row(self, id: str) -> int:
        row = self.find(id)
        assert row is not None
        return row

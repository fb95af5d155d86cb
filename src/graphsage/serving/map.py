"""The map: one point per node, and the changes since it was laid out; new nodes are placed as they arrive."""

import json
import threading
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from graphsage.inference.nearest import Vectors
from graphsage.inference.projection import NEAREST
from graphsage.serving.layouts import Layout

UNKNOWN = 0xFFFF  # color of a node without a class


@dataclass(frozen=True)
class Point:
    id: str
    x: float
    y: float
    color: int
    gone: bool = False


@dataclass
class NodeMap:
    """Points of the nodes `ids`, and a numbered list of later changes. Folding the changes into the points increases
    `epoch`; a page with an earlier epoch loads the whole map again."""

    ids: tuple[str, ...]
    xy: Vectors
    colors: npt.NDArray[np.uint16]
    classes: tuple[str, ...]
    method: str
    epoch: int = 0
    coming: str = ""  # the method that is being computed to replace the positions

    def __post_init__(self) -> None:
        self._guard = threading.Lock()
        self._place = {id: place for place, id in enumerate(self.ids)}
        self._moved: dict[str, tuple[int, Point]] = {}  # ordered by number
        self._count = 0

    def put(self, id: str, near: list[tuple[str, float]], color: int) -> None:
        """Place a node at the mean position of its nearest nodes, weighted by similarity."""
        spots = [
            (spot, max(cosine, 0.0) ** 8 + 1e-9)
            for other, cosine in near[:NEAREST]
            if other != id and (spot := self.place(other)) is not None
        ]
        total = sum(weight for _, weight in spots)
        x = sum(spot[0] * weight for spot, weight in spots) / total if spots else 0.0
        y = sum(spot[1] * weight for spot, weight in spots) / total if spots else 0.0
        self._note(Point(id, float(x), float(y), color))

    def remove(self, id: str) -> None:
        self._note(Point(id, 0.0, 0.0, UNKNOWN, gone=True))

    def _note(self, point: Point) -> None:
        with self._guard:
            self._count += 1
            self._moved.pop(point.id, None)
            self._moved[point.id] = (self._count, point)

    def place(self, id: str) -> tuple[float, float] | None:
        moved = self._moved.get(id)
        if moved is not None:
            return None if moved[1].gone else (moved[1].x, moved[1].y)
        at = self._place.get(id)
        return None if at is None else (float(self.xy[at, 0]), float(self.xy[at, 1]))

    def since(self, number: int) -> dict[str, Any]:
        """Changes after change `number`."""
        with self._guard:
            rest = []
            for at, point in reversed(self._moved.values()):
                if at <= number:
                    break
                rest.append(point)
            count = self._count
        changes = [
            {"id": p.id, "gone": True} if p.gone else {"id": p.id, "x": p.x, "y": p.y, "color": p.color}
            for p in reversed(rest)
        ]
        return {"epoch": self.epoch, "next": count, "changes": changes}

    def folded(self, ids: tuple[str, ...], colors: npt.NDArray[np.uint16]) -> "NodeMap":
        """A map of the present nodes `ids` at their present positions, without a list of changes."""
        xy = np.array([self.place(id) or (0.0, 0.0) for id in ids], np.float32).reshape(-1, 2)
        return NodeMap(ids, xy, colors, self.classes, self.method, self.epoch + 1, self.coming)

    def follow(self, other: "NodeMap", id: str) -> None:
        """Take over the last change of a node in `other`."""
        changed = other._moved.get(id)
        if changed is not None:
            self._note(changed[1])

    def laid_out(self, layout: Layout) -> tuple["NodeMap", list[str]]:
        """A map with the positions of `layout`, and the present nodes without one, which are to be placed among their
        nearest."""
        colors = dict(zip(self.ids, self.colors.tolist(), strict=True))
        colors |= {id: point.color for id, (_, point) in self._moved.items()}
        gone = {id for id, (_, point) in self._moved.items() if point.gone}
        places = [at for at, id in enumerate(layout.ids) if id in colors and id not in gone]
        ids = tuple(layout.ids[at] for at in places)
        kept = np.array([colors[id] for id in ids], np.uint16)
        made = NodeMap(ids, layout.xy[places], kept, self.classes, layout.method, self.epoch + 1)
        return made, [id for id in colors if id not in made._place and id not in gone]

    def packed(self) -> bytes:
        """Count (uint32), x and y (float32), colors (uint16), little-endian, then the ids as a JSON list."""
        head = np.array([len(self.ids)], "<u4").tobytes()
        columns = [self.xy[:, 0].astype("<f4"), self.xy[:, 1].astype("<f4"), self.colors.astype("<u2")]
        ids = json.dumps(self.ids, ensure_ascii=True).encode()
        return head + b"".join(column.tobytes() for column in columns) + ids

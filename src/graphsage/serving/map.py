"""The map: one point per node. Positions are computed once and stored; new nodes are placed as they arrive."""

import json
import threading
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from graphsage.atomic import atomic_file, caching
from graphsage.errors import DataError
from graphsage.graph.storage import load_array
from graphsage.inference.nearest import Vectors, best, normalized
from graphsage.inference.projection import project

UNKNOWN = 0xFFFF  # color of a node without a class
NEAREST = 5


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
        return NodeMap(ids, xy, colors, self.classes, self.method, self.epoch + 1)

    def packed(self) -> bytes:
        """Count (uint32), x and y (float32), colors (uint16), little-endian, then the ids as a JSON list."""
        head = np.array([len(self.ids)], "<u4").tobytes()
        columns = [self.xy[:, 0].astype("<f4"), self.xy[:, 1].astype("<f4"), self.colors.astype("<u2")]
        ids = json.dumps(self.ids, ensure_ascii=True).encode()
        return head + b"".join(column.tobytes() for column in columns) + ids


def positions(z: Vectors, method: str) -> Vectors:
    """(N, 2), most of them between -1 and 1; outliers are clipped to 1.2."""
    xy = project(z, method)
    low, high = np.quantile(xy, [0.001, 0.999], axis=0)
    xy = xy - (low + high) / 2
    reach = float((high - low).max()) / 2
    placed: Vectors = np.clip(xy / (reach or 1.0), -1.2, 1.2).astype(np.float32)
    return placed


def stored_positions(folder: Path, ids: tuple[str, ...], z: Vectors, model: str, method: str) -> Vectors:
    """Positions from `folder`; new nodes are placed near their nearest stored nodes.
    If none are stored for this model, or most nodes are new, all positions are computed again."""
    path, about = folder / "map.npy", folder / "map.json"
    kept = _kept(path, about, model, method)
    old = np.array([id in kept for id in ids], bool)
    if 2 * int(old.sum()) < max(len(ids), 1):
        made = positions(z, method)
    else:
        made = np.array([kept.get(id, (0.0, 0.0)) for id in ids], np.float32).reshape(-1, 2)
        if old.all() and len(kept) == len(ids):
            return made
        made[~old] = _among(z[~old], z[old], made[old])
    with caching(path):
        with atomic_file(path) as temporary, temporary.open("wb") as file:
            np.save(file, made)
        with atomic_file(about) as temporary:
            facts = {"model": model, "method": method, "ids": ids, "sum": _sum(json.dumps(ids).encode(), path)}
            temporary.write_text(json.dumps(facts), encoding="utf-8")
    return made


def _kept(path: Path, about: Path, model: str, method: str) -> dict[str, tuple[float, float]]:
    """Stored positions by id; empty if the files are missing, damaged or of another model."""
    try:
        facts = json.loads(about.read_text(encoding="utf-8"))
        if [facts["model"], facts["method"]] != [model, method]:
            return {}
        if facts["sum"] != _sum(json.dumps(facts["ids"]).encode(), path):
            return {}
        xy = load_array(path).tolist()
        return {id: (x, y) for id, (x, y) in zip(facts["ids"], xy, strict=True)}
    except (OSError, ValueError, DataError, KeyError, TypeError):
        return {}


def _among(new: Vectors, old: Vectors, xy: Vectors) -> Vectors:
    """Mean position of the `NEAREST` old nodes by cosine, computed in batches of new nodes."""
    found = np.empty((len(new), 2), np.float32)
    unit = normalized(old)
    for start in range(0, len(new), 256):
        places, _ = best(normalized(new[start : start + 256]) @ unit.T, NEAREST)
        found[start : start + 256] = xy[places].mean(axis=1)
    return found


def _sum(ids: bytes, path: Path) -> str:
    return sha256(ids + path.read_bytes()).hexdigest()

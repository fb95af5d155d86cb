"""Nearest nodes of a changing graph: an index, an exact search over later nodes, and the thread that updates both."""

import ctypes
import gc
import logging
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from graphsage.errors import DamageError, DataError, GraphSageError
from graphsage.features.known_labels import label_features
from graphsage.inference.embed import embed_exact, kept_features
from graphsage.inference.model import input_tables
from graphsage.inference.nearest import NearestIndex, Vectors, best, normalized
from graphsage.live.materialize import whole, within_cap
from graphsage.live.overlay import Overlay
from graphsage.live.overlay_view import Target
from graphsage.live.store import LiveGraph
from graphsage.serving.answers import Problem
from graphsage.serving.batcher import Answer, Batcher, Job
from graphsage.serving.layouts import Layouts
from graphsage.serving.map import UNKNOWN, NodeMap
from graphsage.serving.metrics import Metrics
from graphsage.serving.served_model import ServedModel
from graphsage.serving.settings import Settings


@dataclass
class SearchIndex:
    """`base` has one row per id. `delta` holds nodes added or changed later; `stale` are rows of `base` to ignore."""

    ids: Sequence[str]
    base: NearestIndex
    delta: dict[str, Vectors] = field(default_factory=dict)
    stale: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._place = {id: place for place, id in enumerate(self.ids)}
        self._guard = threading.Lock()
        self._held: tuple[list[str], Vectors] | None = None

    @property
    def recall(self) -> float:
        return self.base.recall

    @property
    def outdated(self) -> int:
        """Number of entries that a rebuild would remove from each search."""
        return len(self.delta) + len(self.stale)

    def put(self, id: str, z: Vectors) -> None:
        with self._guard:
            if id in self._place:
                self.stale.add(self._place[id])
            self.delta[id] = normalized(z[None])[0]
            self._held = None

    def remove(self, id: str) -> None:
        with self._guard:
            if id in self._place:
                self.stale.add(self._place[id])
            self.delta.pop(id, None)
            self._held = None

    def follow(self, other: "SearchIndex", id: str) -> None:
        """Take over what was made of a changed node in `other`: its vector or its removal."""
        vector = other.delta.get(id)
        if vector is None:
            self.remove(id)
        else:
            self.put(id, vector)

    def search(self, z: Vectors, k: int, without: str | None = None) -> list[tuple[str, float]]:
        """The `k` nodes closest to `z` (D,) by cosine, best first."""
        return self.search_all(z[None], k, [without])[0]

    def search_all(self, z: Vectors, k: int, without: Sequence[str | None]) -> list[list[tuple[str, float]]]:
        """`search` for each row of `z` (Q, D), reading the base once."""
        asked = normalized(z)
        with self._guard:
            if self._held is None:
                table = np.stack([*self.delta.values()]) if self.delta else np.zeros((0, z.shape[1]), np.float32)
                self._held = ([*self.delta], table)
            names, table = self._held
            base = self.base.search(asked, k + 1, self.stale)
        delta = best(asked @ table.T, k + 1)
        return [self._merged(row, names, k, own) for *row, own in zip(*base, *delta, without, strict=True)]

    def _merged(
        self, row: Sequence[npt.NDArray[Any]], names: Sequence[str], k: int, own: str | None
    ) -> list[tuple[str, float]]:
        """The best results of base and delta for one query."""
        old, old_cosines, new, new_cosines = (each.tolist() for each in row)
        pairs = [(self.ids[place], c) for place, c in zip(old, old_cosines, strict=True) if place >= 0]
        pairs += [(names[place], c) for place, c in zip(new, new_cosines, strict=True) if place >= 0]
        return [pair for pair in sorted(pairs, key=lambda pair: -pair[1]) if pair[0] != own][:k]


def give_back() -> None:
    """Return free memory to the system (glibc only)."""
    gc.collect()
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (OSError, AttributeError, TypeError):
        return


_log = logging.getLogger("graphsage.serving")
_SLICE = 32  # nodes refreshed at once; a small number keeps requests from waiting
_PAUSE = 0.2
_ROUNDS = 8  # of catching up with changes during a build
REBUILD_SHARE, REBUILD_LEAST = 0.1, 2_000
_REST = 9  # pauses between builds, in durations of a build, unless half of the index is outdated


@dataclass(frozen=True)
class _Built:
    """A finished build. `map` is None if the present map continues; `changed` are nodes that it has not placed."""

    model: ServedModel
    index: SearchIndex
    colors: npt.NDArray[np.uint16]
    map: NodeMap | None
    changed: dict[str, None]


class _Stopped(Exception):
    """The service ends."""


class IndexUpdater:
    """`index` and `map` belong to the model `of`; all three are None until the first build."""

    def __init__(
        self,
        live: LiveGraph,
        batcher: Batcher,
        settings: Settings,
        metrics: Metrics,
        model: Callable[[], ServedModel],
        method: str,
        folder: Path,
    ) -> None:
        self._live, self._batcher, self._settings, self._metrics = live, batcher, settings, metrics
        self._model, self._layouts = model, Layouts(folder, method)
        self.index: SearchIndex | None = None
        self.map: NodeMap | None = None
        self.of: ServedModel | None = None
        self.trouble = ""
        self.missing = "is being built"
        """Why there is no index or map, if there is none."""
        self._touched: dict[str, None] = {}
        self._late: dict[str, None] = {}  # changed since a build began
        self._building: Future[_Built | None] | None = None
        self._builder = ThreadPoolExecutor(1, "graphsage-build")
        self._rested = 0.0  # when the pause after the last build ends
        self._busy = False  # with nodes taken from `_touched`
        self._guard, self._stop = threading.Lock(), threading.Event()
        self._thread = threading.Thread(target=self._follow, name="graphsage-index", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()
        self._builder.shutdown()
        self._layouts.close()

    @property
    def searched(self) -> tuple[SearchIndex | None, ServedModel | None]:
        """The index and the model of its vectors."""
        with self._guard:
            return self.index, self.of

    def touch(self, ids: Iterable[str]) -> None:
        """Report nodes that were added, changed or deleted."""
        with self._guard:
            self._touched.update(touched := dict.fromkeys(ids))
            self._late.update(touched if self._building is not None else {})

    def caught_up(self) -> bool:
        with self._guard:
            done = not self._touched and not self._busy and self._building is None
        return done and self.index is not None and self.of is self._model()

    def _follow(self) -> None:
        while not self._stop.is_set():
            try:
                self._build_aside()
                self._take_layout()
                began, sequence = time.monotonic(), self._live.version.sequence
                worked = self._refresh()
                if worked and self._live.version.sequence > sequence:  # leave half of the time to further changes
                    self._stop.wait(min(time.monotonic() - began, _PAUSE))
                self._compact()
                self.trouble = ""
            except Exception as error:  # such as a full disk: reported in /readyz and tried again
                known = isinstance(error, GraphSageError)
                _log.error("work in the background failed: %s", error, exc_info=not known)
                self.trouble, worked = type(error).__name__, False
                self._stop.wait(5)
            self._busy = False
            if not worked:
                self._stop.wait(_PAUSE)

    def _needs_building(self) -> bool:
        if self.index is None or self.of is not self._model():
            return True
        share = REBUILD_SHARE if time.monotonic() >= self._rested else 0.5
        return self.index.outdated > max(REBUILD_LEAST, share * len(self.index.ids))

    def _build_aside(self) -> None:
        """Build, where needed, in another thread, so that changes still reach the present index and map meanwhile."""
        if self._building is not None and self._building.done():
            done, self._building = self._building, None
            try:
                self._take(done.result())
            except Exception as error:
                damaged = isinstance(error, DamageError)
                self.missing = (
                    "could not be built" + (" from the damaged live graph" if damaged else "") + "; see the log"
                )
                raise
        if self._building is None and self._needs_building():
            with self._guard:
                self._late = dict(self._touched)
                self._building = self._builder.submit(self._build)

    def _go_on(self) -> None:
        """Called often during a build, so that it does not keep a service from ending."""
        if self._stop.is_set():
            raise _Stopped

    def _build(self) -> _Built | None:
        began, model = time.monotonic(), self._model()
        overlay, _ = self._live.frozen()
        try:
            ids, z, colors = embed_everything(overlay, model, self._go_on)
            index = SearchIndex(ids, NearestIndex.build(z, self._settings.exact_up_to, self._go_on))
        except _Stopped:
            return None
        self._rested = time.monotonic() + _REST * (time.monotonic() - began)
        if self.map is not None and self.of is model:
            return _Built(model, index, colors, None, {})
        layout = self._layouts.first(ids, z, model.version)
        epoch = 0 if self.map is None else self.map.epoch + 1
        drawn = NodeMap(ids, layout.xy, colors, model.classes, layout.method, epoch, layout.coming)
        return _Built(model, index, colors, drawn, self._catch_up(index, model))

    def _take(self, built: _Built | None) -> None:
        """Replace index and map by those of a build, and bring them to the state of the present ones."""
        if built is None:
            return
        drawn = built.map
        if drawn is None:
            assert self.index is not None
            assert self.map is not None
            drawn = self.map.folded(tuple(built.index.ids), built.colors)
            with self._guard:
                refreshed = [id for id in self._late if id not in self._touched]
            for id in refreshed:
                built.index.follow(self.index, id)
                drawn.follow(self.map, id)
        self._metrics.recall.set(built.index.recall)
        with self._guard:
            if built.map is not None:
                self._touched.update(built.changed | self._late)  # the map has not placed them
            self.index, self.map, self.of = built.index, drawn, built.model
        give_back()

    def _take_layout(self) -> None:
        """Replace the map's positions by those that were computed in the background."""
        if self._building is not None or self.map is None:
            return  # the build makes a map of the present one
        layout = self._layouts.finished()
        if layout is None:
            return
        if not layout.ids:  # it failed
            self.map.coming = ""
            return
        self.map, missing = self.map.laid_out(layout)
        self.touch(missing)

    def _catch_up(self, index: SearchIndex, model: ServedModel) -> dict[str, None]:
        """Bring nodes that changed during the build for another model into its index; return them."""
        changed: dict[str, None] = {}
        for _ in range(_ROUNDS):  # each takes less time than the one before
            with self._guard:
                ids, self._late = list(self._late), {}
            changed.update(dict.fromkeys(ids))
            for start in range(0, len(ids), _SLICE):
                self._put(index, model, ids[start : start + _SLICE])
            if len(ids) <= _SLICE or self._stop.is_set():
                break
        return changed

    def _put(self, index: SearchIndex, model: ServedModel, ids: list[str]) -> dict[str, Answer]:
        """Put nodes into an index, or remove those that do not exist or have no vector; return the others' answers."""
        with self._live.reading() as (overlay, _):
            known = [id for id in ids if overlay.find(id) is not None]
        made = self._answers(model, known) if known else {}
        for id in ids:
            if id in made:
                index.put(id, made[id].z[0].numpy())
            else:
                index.remove(id)
        return made

    def _answers(self, model: ServedModel, ids: list[str]) -> dict[str, Answer]:
        try:
            job = Job(ids, predict=True, model=model, look=partial(_labels, ids=ids))
            answer = self._batcher.submit(job).result()
        except (Problem, DataError):  # one was deleted, or its features overflow
            if len(ids) == 1:
                return {}
            return {id: each for one in ids for id, each in self._answers(model, [one]).items()}
        outputs = answer.outputs
        return {
            id: replace(
                answer,
                z=answer.z[at : at + 1],
                outputs=None if outputs is None else outputs[at : at + 1],
                seen=answer.seen[at],
            )
            for at, id in enumerate(ids)
        }

    def _refresh(self) -> bool:
        with self._guard:
            index, drawn, of = self.index, self.map, self.of
            if index is None or drawn is None or of is None:
                return False
            ids = list(self._touched)[:_SLICE]
            for id in ids:
                del self._touched[id]
            self._busy = self._busy or bool(ids)
        if not ids:
            return False
        try:
            made = self._put(index, of, ids)
        except Exception:
            self.touch(ids)
            raise
        if made:
            nearest = index.search_all(np.concatenate([answer.z.numpy() for answer in made.values()]), 6, list(made))
            for (id, answer), near in zip(made.items(), nearest, strict=True):
                color = answer.seen if isinstance(answer.seen, int) else UNKNOWN
                if color == UNKNOWN and answer.outputs is not None:
                    guess = answer.model.class_of(answer.outputs[0])
                    color = UNKNOWN if guess is None else guess
                drawn.put(id, near, color)
        for id in {*ids} - {*made}:
            drawn.remove(id)
        self._metrics.delta.set(index.outdated)
        return True

    def _compact(self) -> None:
        after = self._settings.compact_after
        if after and self._live.waiting >= after:
            self._live.compact()
            give_back()


def _labels(overlay: Overlay, _: ServedModel, ids: list[str]) -> list[int | tuple[int, ...] | None]:
    rows = (overlay.find(id) for id in ids)
    return [None if row is None else overlay.label_of(row) for row in rows]


@torch.no_grad()
def embed_everything(
    overlay: Overlay, model: ServedModel, go_on: Callable[[], None] = lambda: None
) -> tuple[tuple[str, ...], Vectors, "np.ndarray[tuple[int], np.dtype[np.uint16]]"]:
    """Ids, z and colors of all nodes. Exact inference runs layer by layer, which may change the last bits of z. `go_on`
    is called often; what it raises ends the work."""
    made = whole(overlay)
    encoder, labels = model.encoder, made.graph.labels
    if encoder.inference == "exact":
        tables = input_tables(made.graph, encoder.structure)
        if encoder.label_classes is not None:
            known = made.graph.labeled(torch.arange(made.graph.num_nodes))
            tables.append(label_features(labels, known, made.graph.num_nodes, encoder.label_classes))
        capped = within_cap(overlay, made)
        z = embed_exact(encoder.encoder, capped, tables, seed=encoder.seed, on_block=lambda *_: go_on())
        if encoder.keep_features:
            z = torch.cat([z, kept_features(encoder.encoder, tables, torch.arange(len(z)))], dim=1)
    else:
        parts = []
        for start in range(0, len(made.rows), 256):
            go_on()
            parts.append(encoder.embed([Target(overlay, row) for row in made.rows[start : start + 256].tolist()]))
        z = torch.cat(parts) if parts else torch.zeros(0, encoder.dim)
    z = z.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0)  # overflowed vectors; requests for them get an error
    p = encoder.outputs(z) if len(z) and model.classes else None
    colors = torch.full((len(z),), UNKNOWN) if p is None else p.argmax(dim=1)
    if labels is not None and labels.dim() == 1:
        known = labels[: len(z)]
        colors = torch.where(known >= 0, known, colors)
    return tuple(map(str, made.graph.ids or ())), z.numpy(), colors.numpy().astype(np.uint16)

"""A live graph, owned by one process. Acknowledged changes survive any crash.

One writing thread checks the queued changes, journals them with one fsync per group, applies them to the overlay and
acknowledges them. Compaction writes the next generation in the meantime.
"""

import logging
import queue
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graphsage.errors import DamageError, DataError, GraphSageError, StoreError, UnknownNodeError, setting
from graphsage.graph.graph import Graph
from graphsage.live.adjacency import BaseCap, Cap
from graphsage.live.change import LARGEST_ATTRIBUTES, LONGEST_ID, Change, attributes_size
from graphsage.live.faults import fault
from graphsage.live.generation import Generation, open_generation, with_text_ids, write_generation
from graphsage.live.journal import JOURNAL, START, Journal, open_journal
from graphsage.live.manifest import Manifest, clean, is_store, lock_store, read_manifest, write_manifest
from graphsage.live.mark import Mark
from graphsage.live.materialize import whole
from graphsage.live.node_state import Expected
from graphsage.live.overlay import Overlay

GROUP = 256  # changes journaled with one fsync at most
KEPT = 10_000  # changes of earlier generations that the journal keeps for readers of the feed
_CATCH_UP = 64  # changes that may remain for the pause of a swap

_log = logging.getLogger("graphsage.live")


@dataclass(frozen=True)
class Version:
    """The version of a graph: `sequence` counts all changes ever made, `generation` the compactions."""

    generation: int
    sequence: int


_Item = tuple[Change, Expected | None, "Future[Version]"]


def create_store(
    folder: Path, graph: Graph, attributes: Iterable[Mapping[str, Any]] | None = None, features: str = ""
) -> None:
    """A new live graph that begins as `graph`. `features` identifies the recipes of its features."""
    if is_store(folder):
        raise StoreError(f"{folder} is a live graph already; choose another folder")
    if graph.weighted:
        raise StoreError(
            f"a live graph has no edge weights, and this graph has; leave {setting('edge_weight')} out in training"
        )
    if graph.relations or graph.direction == "out":
        raise StoreError(
            f"a live graph has one relation, merged or in, and this graph has "
            f"{', '.join(graph.relations) or graph.direction}; "
            f"read its edges with {setting('direction', 'merged')} or in"
        )
    folder.mkdir(parents=True, exist_ok=True)
    manifest = Manifest(1)
    if (folder / JOURNAL).exists():
        raise StoreError(f"{folder} holds the journal of another live graph; choose another folder")
    files = write_generation(folder / manifest.folder, with_text_ids(graph), attributes or [{}] * graph.num_nodes)
    Journal(folder / JOURNAL, 0, START).close()  # from now on, a missing journal is an error
    Mark(folder, 0, START).close()
    write_manifest(folder, Manifest(1, features=features, files=files))


class LiveGraph:
    def __init__(self, folder: Path, cap: Cap) -> None:
        """Open a live graph and replay its journal. `cap` is the degree cap of the model that will read it."""
        self.folder, self._cap = folder, cap
        self.manifest = read_manifest(folder)
        self._lock, journal = lock_store(folder), None
        try:
            self._base = open_generation(folder / self.manifest.folder, self.manifest.files)
            journal = open_journal(folder, self.manifest.sequence, bytes.fromhex(self.manifest.check))
            self._journal = journal
            self._sequence = self._journal.sequence
            self._overlay = self._over(self._base)
            self._catch_up(self._overlay, self.manifest.sequence)
            clean(folder, self.manifest)  # last: only a store that can be read says what is left over
        except BaseException:
            self._lock.release()
            if journal is not None:
                journal.give_up()
            raise
        self._broken: Exception | None = None
        self._guard = threading.RLock()  # the overlay is read, or replaced
        self._applying = threading.Lock()  # a change is applied; held before `_guard`, and longer
        self.on_change: Callable[[list[str]], None] = lambda ids: None  # told of nodes that a change affects
        self._compacting = threading.Lock()
        self._queue: queue.SimpleQueue[_Item | None] = queue.SimpleQueue()
        self._closed = False
        self._writer = threading.Thread(target=self._write_all, name="graphsage-journal", daemon=True)
        self._writer.start()

    def _over(self, base: Generation) -> Overlay:
        return Overlay(base, BaseCap(base, self._cap))

    # Reading

    @contextmanager
    def reading(self) -> Iterator[tuple[Overlay, Version]]:
        """The present graph; it does not change within the block. DamageError if no part of it can be trusted."""
        with self._guard:
            self._refuse_broken()
            self._base.check()
            yield self._overlay, Version(self.manifest.generation, self._sequence)

    def _refuse_broken(self) -> None:
        if self._broken is not None:
            raise StoreError(f"{self.folder} must be opened again: a change could not be applied ({self._broken})")

    @property
    def base(self) -> Generation:
        """The generation on disk."""
        return self._base

    @property
    def version(self) -> Version:
        """The present version, without waiting for a lock."""
        return Version(self.manifest.generation, self._sequence)

    @property
    def num_nodes(self) -> int:
        """As `version`, without waiting for a lock."""
        return self._overlay.num_nodes

    @property
    def direction(self) -> str:
        return self._base.graph.direction

    @property
    def classes(self) -> tuple[tuple[str, ...], bool]:
        """The names of the graph's classes, and whether a node may have several. They never change."""
        graph = self._base.graph
        if graph.regression:
            return (), False
        return graph.class_names or tuple(map(str, range(graph.num_classes))), graph.multilabel

    @property
    def waiting(self) -> int:
        """Changes since the last compaction."""
        return self._sequence - self.manifest.sequence

    def frozen(self) -> tuple[Overlay, Version]:
        """A copy that later changes do not affect."""
        with self.reading() as (overlay, version):
            return overlay.snapshot(), version

    def changes(self, after: int, limit: int, size: int = 1 << 22) -> list[tuple[int, Change]]:
        """Acknowledged changes after number `after`, oldest first: at most `limit`, fewer if they exceed `size` bytes.
        ChangesGoneError if the journal no longer has them."""
        last = self._sequence
        if after > last:
            raise DataError(f"the graph has {last} changes, none after number {after}")
        return [(number, change) for number, change in self._journal.page(after, limit, size) if number <= last]

    # Changing

    def submit(self, change: Change, expected: Expected | None = None) -> "Future[Version]":
        """Queue a change; the future holds the version that has it, once it is durable. A change whose node is not in
        the `expected` state then is refused with NodeStateError."""
        done: Future[Version] = Future()
        if self._closed:
            raise StoreError(f"{self.folder} is closed")
        self._queue.put((change, expected, done))
        return done

    def apply(self, change: Change, expected: Expected | None = None) -> Version:
        """`submit` and wait."""
        return self.submit(change, expected).result()

    def _write_all(self) -> None:
        while (first := self._queue.get()) is not None:
            group = [first]
            stop = False
            while len(group) < GROUP and not self._queue.empty():
                item = self._queue.get()
                if item is None:
                    stop = True
                    break
                group.append(item)
            self._write(group)
            if stop:
                return

    def _write(self, group: list[_Item]) -> None:
        """Write a group. A change that expects a state is journaled alone, so that it sees all changes before it."""
        start = 0
        for place, (_, expected, _) in enumerate(group):
            if expected is not None:
                self._write_together(group[start:place])
                self._write_together(group[place : place + 1])
                start = place + 1
        self._write_together(group[start:])

    def _write_together(self, group: list[_Item]) -> None:
        checker, good = Checker(self._overlay), []
        damage = self._damage()
        for change, expected, done in group:
            if not done.set_running_or_notify_cancel():  # cancelled; otherwise it can no longer be cancelled
                continue
            try:
                if damage is not None:
                    raise damage
                if expected is not None:
                    expected.check(self._overlay)
                checker.check(change)
                good.append((change, done))
            except GraphSageError as error:
                done.set_exception(error)
            except Exception as error:  # an unforeseen error must not end the writing thread
                done.set_exception(error)
        if not good:
            return
        fault("write.checked")
        try:
            last, _ = self._journal.append([change for change, _ in good])
        except Exception as error:
            if self._journal.sequence > self._sequence:  # the changes are durable, but the mark could not be written
                self._broken = error
            for _, done in good:
                done.set_exception(error)
            return
        fault("write.journaled")
        for place, (change, done) in enumerate(good):
            number = last - len(good) + 1 + place
            try:
                with self._applying:
                    staged = self._overlay.staged(change)  # takes long for a large change; readers need not wait
                    with self._guard:
                        self._overlay.take(staged)
                        self._sequence = number
                    generation = self.manifest.generation
            except Exception as error:  # the changes are durable, and are there when the graph is opened again
                self._broken = error
                for _, rest in good[place:]:
                    rest.set_exception(StoreError(f"{self.folder} must be opened again: {error}"))
                return
            fault("write.applied")
            try:
                self.on_change(staged.changed_ids())
                if group[-1][1] is not None:
                    group[-1][1].note(self._overlay)
            except DamageError as error:  # the change is made; what cannot be read is not told
                _log.error("%s", error)
            done.set_result(Version(generation, number))

    def _damage(self) -> GraphSageError | None:
        """Why no change can be made. A change may read any edge, and after it is journaled is too late to find out."""
        try:
            self._refuse_broken()
            self._base.check()
            self._base.check_edges()
            self._base.check_keys()
        except GraphSageError as error:
            return error
        return None

    # Upkeep

    def compact(self) -> Version:
        """Write the next generation without stopping reads and writes, then swap it in; return its version."""
        with self._compacting:
            self._base.verify()  # damage must not reach the next generation, where nothing would show it
            old, version = self.frozen()
            fault("compact.copied")
            made = whole(old)
            attributes = (old.attributes_of(row) for row in made.rows.tolist())
            name = Manifest(version.generation + 1).folder
            files = write_generation(self.folder / name, made.graph, attributes)
            fault("compact.written")
            check = self.manifest.check
            if version.sequence > self.manifest.sequence:
                check = self._journal.check_of(version.sequence).hex()
            manifest = Manifest(version.generation + 1, version.sequence, check, self.manifest.features, files)
            base = open_generation(self.folder / name, files)
            fresh, sequence = self._over(base), version.sequence
            while self._sequence - sequence > _CATCH_UP:
                sequence = self._catch_up(fresh, sequence)
            write_manifest(self.folder, manifest)  # the same graph as before, so no lock is needed
            fault("compact.manifest")
            with self._applying:
                self._catch_up(fresh, sequence)
                with self._guard:
                    self._overlay, self._base, self.manifest = fresh, base, manifest
            fault("compact.swapped")
            self._journal.trim(version.sequence, KEPT)
            fault("compact.trimmed")
            clean(self.folder, manifest)
            fault("compact.cleaned")
            return Version(manifest.generation, version.sequence)

    def _catch_up(self, overlay: Overlay, after: int) -> int:
        """Apply the acknowledged changes after `after`; return the number of the last."""
        for number, change, _ in self._journal.since(after):
            if number > self._sequence:  # journaled, and about to be applied
                break
            overlay.apply(change)
            after = number
        return after

    def use(self, cap: Cap, swap: Callable[[], None] = lambda: None) -> None:
        """Read from now on with the degree cap of another model; `swap` is called under the same lock."""
        with self._compacting:
            fresh, sequence = self._overlay, self._sequence
            if cap != self._cap:
                self._cap = cap
                fresh = self._over(self._base)
                sequence = self._catch_up(fresh, self.manifest.sequence)
            with self._applying:
                if fresh is not self._overlay:
                    self._catch_up(fresh, sequence)
                with self._guard:
                    self._overlay = fresh
                    swap()

    def backup(self, folder: Path) -> Version:
        """Copy the store as it is now into a new folder, without stopping reads and writes."""
        from graphsage.live.backup import copy_store

        with self._compacting:
            self._base.verify()
            return copy_store(self.folder, self.manifest, self._journal, folder)

    def check_journal(self) -> None:
        """Read the changes since the last compaction again. StoreError if one was altered or lost."""
        with self._compacting:
            reached, check = self.manifest.sequence, bytes.fromhex(self.manifest.check)
            while not self._closed and reached < self._sequence:
                reached, check = self._journal.verify_page(reached, check)

    def close(self) -> None:
        """Finish the waiting changes and release the store."""
        if self._closed:
            return
        self._closed = True
        self._queue.put(None)
        self._writer.join()
        with self._compacting:
            self._journal.close()
            self._lock.release()

    def __enter__(self) -> "LiveGraph":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Checker:
    """Checks the changes of one group, each as if the ones before it had been applied."""

    def __init__(self, overlay: Overlay) -> None:
        self._overlay = overlay
        self._pending: dict[str, bool] = {}
        self._attributes: dict[str, dict[str, Any]] = {}  # of nodes that the group changes
        graph = overlay.base.graph
        self._width, self._many = graph.num_features, graph.multilabel
        self._classes = 0 if graph.regression else graph.num_classes

    def check(self, change: Change) -> None:
        """Refuse a faulty change; the message names the place of the fault, never its content."""
        pending: dict[str, bool] = {}
        attributes: dict[str, dict[str, Any]] = {}

        def there(id: str) -> bool:
            for known in (pending, self._pending):
                if id in known:
                    return known[id]
            return self._overlay.find(id) is not None

        self._check_nodes(change, there, pending)
        self._check_attributes(change, attributes)
        for what, pairs, hint in (
            ("edges", change.edges, "; add it first"),
            ("removed_edges", change.removed_edges, ""),
        ):
            for place, pair in enumerate(pairs):
                for end, id in zip(("source", "target"), pair, strict=True):
                    if not there(id):
                        raise UnknownNodeError(f"{what}[{place}] has a {end} that is not in the graph{hint}")
        for place, id in enumerate(change.removed_nodes):
            if not there(id):
                raise UnknownNodeError(f"removed_nodes[{place}] is not in the graph")
            pending[id] = False
            attributes[id] = {}
        self._pending |= pending
        self._attributes |= attributes

    def _check_attributes(self, change: Change, pending: dict[str, dict[str, Any]]) -> None:
        """Refuse growth beyond the limit. A node of the data may be larger; it may shrink."""
        for place, node in enumerate(change.nodes):
            if node.attributes is None:
                continue
            row = self._overlay.find(node.id)
            stored = {} if row is None else self._overlay.attributes_of(row)
            old = pending.get(node.id, self._attributes.get(node.id, stored))
            new = {**old, **node.attributes}
            size = attributes_size(new)
            if size > LARGEST_ATTRIBUTES and size > attributes_size(old):
                raise DataError(
                    f"nodes[{place}] would have {size:,} bytes of attributes; at most {LARGEST_ATTRIBUTES:,} are stored"
                )
            pending[node.id] = new

    def _check_nodes(self, change: Change, there: Callable[[str], bool], pending: dict[str, bool]) -> None:
        for place, node in enumerate(change.nodes):
            if not node.id or len(node.id) > LONGEST_ID:
                raise DataError(f"nodes[{place}] must have an id of 1 to {LONGEST_ID} characters")
            if node.features is None:
                if self._width and not there(node.id):
                    raise DataError(f"nodes[{place}] is new and needs features")
            elif len(node.features) != self._width:
                raise DataError(f"nodes[{place}] must have {self._width} features; got {len(node.features)}")
            row = None if node.attributes is None or node.id in pending else self._overlay.find(node.id)
            if row is not None:
                self._overlay.attributes_of(row)  # damage is found before the change is journaled
            if node.label is not None:
                labels = node.label if isinstance(node.label, tuple) else (node.label,)
                if isinstance(node.label, tuple) != self._many or not all(0 <= c < self._classes for c in labels):
                    raise DataError(f"nodes[{place}] has a label that is not a class of the graph")
            pending[node.id] = True

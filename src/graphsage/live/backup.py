"""Backup, restore, verification and recovery of a store. The source is never written to."""

import fcntl
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

from graphsage.atomic import atomic_folder
from graphsage.errors import DataError, GraphSageError, LostChangesError, OutputError, StoreError, setting
from graphsage.graph.build import check_graph
from graphsage.graph.ids import node_key
from graphsage.live.adjacency import BaseCap, Cap
from graphsage.live.change import Change
from graphsage.live.faults import fault
from graphsage.live.generation import Generation, names_below, open_generation
from graphsage.live.journal import JOURNAL, Journal, cut_journal, lost, reading_journal
from graphsage.live.manifest import (
    RESTORE,
    Manifest,
    lock_store,
    read_manifest,
    reading_store,
    sync_folder,
    write_manifest,
)
from graphsage.live.mark import Mark
from graphsage.live.overlay import Overlay
from graphsage.regular_files import is_regular

if TYPE_CHECKING:
    from graphsage.live.store import Version

_WORK = "backup.lock"  # held while a backup is written: without an owner, the folder is what a killed one left


@dataclass(frozen=True)
class Report:
    """Counts of a store. `changes` are those in the journal since the generation."""

    generation: int
    sequence: int
    nodes: int
    edges: int
    changes: int


def copy_store(source: Path, manifest: Manifest, journal: Journal, target: Path) -> "Version":
    """Copy a generation and a journal that were verified; the copy is verified too."""
    from graphsage.live.store import Version

    if target.exists():
        raise OutputError(f"{target} already exists; choose another folder")
    remove_unfinished(target.parent)
    with atomic_folder(target) as temporary, _owned(temporary):
        shutil.copytree(source / manifest.folder, temporary / manifest.folder)
        fault("backup.half")
        journal.copy_to(temporary / JOURNAL)
        copied = Journal(temporary / JOURNAL, manifest.sequence, bytes.fromhex(manifest.check))
        sequence = copied.sequence
        copied.close()
        Mark(temporary, sequence, copied.check).close()
        write_manifest(temporary, manifest)
        verify(temporary)
    sync_folder(target.parent)
    return Version(manifest.generation, sequence)


@contextmanager
def _owned(folder: Path) -> Iterator[None]:
    with (folder / _WORK).open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
        (folder / _WORK).unlink()


def remove_unfinished(folder: Path) -> None:
    """Remove the incomplete copies of backups that were killed."""
    for path in folder.glob(".*.part") if folder.is_dir() else ():
        if is_regular(path / _WORK) and not path.is_symlink():
            with (path / _WORK).open("rb") as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    continue  # being written now
                shutil.rmtree(path, ignore_errors=True)


def backup(store: Path, target: Path) -> "Version":
    """Copy a store that no process owns, also from a read-only disk; a running service makes backups over HTTP."""
    manifest = read_manifest(store)
    with reading_store(store), reading_journal(store, manifest.sequence, bytes.fromhex(manifest.check)) as journal:
        open_generation(store / manifest.folder, manifest.files).verify()
        return copy_store(store, manifest, journal, target)


def restore(source: Path, target: Path) -> Report:
    """Verify a backup and copy it into a new store."""
    if target.exists():
        raise OutputError(f"{target} already exists; move it away first, or choose another folder")
    backup(source, target)
    return verify(target)


def verify(store: Path, deep: bool = False) -> Report:
    """Check the checksums of the generation, the structure of its graph and the chain of the journal. `deep`: also
    what each node holds, and the changes of the journal, as if there were no checksums."""
    manifest = read_manifest(store)
    with reading_store(store):
        for name in names_below(store / manifest.folder):
            if name not in manifest.files:
                raise StoreError(f"{store / manifest.folder / name} is no file of a generation; move it away")
        base = open_generation(store / manifest.folder, manifest.files)
        base.verify()
        try:
            check_graph(base.graph)
        except DataError as error:
            raise StoreError(f"{store}: {error}") from error
        with reading_journal(store, manifest.sequence, bytes.fromhex(manifest.check)) as journal:
            changes = journal.since(manifest.sequence)
            if deep:
                _verify_nodes(base, store)
                _verify_changes(base, [change for _, change, _ in changes], manifest.sequence)
            return Report(manifest.generation, journal.sequence, base.num_nodes, base.graph.num_edges, len(changes))


def _verify_nodes(base: Generation, store: Path) -> None:
    """Ids, keys, order, attributes and features of a generation."""
    keys = base.sorted_keys
    ordered = np.array_equal(np.sort(base.order), np.arange(base.num_nodes)) and bool((keys[1:] >= keys[:-1]).all())
    if not ordered:
        raise StoreError(f"{store}: order.npy does not sort the nodes; {RESTORE}")
    seen: set[str] = set()
    for row in range(base.num_nodes):
        try:
            id, attributes = base.id_of(row), base.attributes(row)
        except ValueError as error:
            raise StoreError(f"{store}: id or attributes of node {row} cannot be read ({error}); {RESTORE}") from error
        if node_key(id) != int(base.keys[row]) or id in seen or not isinstance(attributes, dict):
            raise StoreError(f"{store}: node {row} has a wrong key, a repeated id or wrong attributes; {RESTORE}")
        seen.add(id)
    features = base.graph.features
    for start in range(0, base.num_nodes, 1 << 16):
        if features is not None and not bool(torch.isfinite(features[start : start + (1 << 16)].float()).all()):
            raise StoreError(f"{store}: features.npy holds NaN or infinity after row {start}; {RESTORE}")


def _verify_changes(base: Generation, changes: list[Change], after: int) -> None:
    """Each change can be made after the ones before it."""
    from graphsage.live.store import Checker

    overlay = Overlay(base, BaseCap(base, Cap(None, "symmetric", 0)))
    for number, change in enumerate(changes, after + 1):
        try:
            Checker(overlay).check(change)
            overlay.apply(change)
        except GraphSageError as error:
            raise lost(f"change {number} of the journal cannot be made ({error})", number - 1) from error


def recover(store: Path, last_good: int) -> Path:
    """Accept the loss of all changes after `last_good`, which must be the last good one of a damaged journal. Return
    the folder that the files of the old journal are kept in."""
    manifest = read_manifest(store)
    check = bytes.fromhex(manifest.check)
    with lock_store(store):
        open_generation(store / manifest.folder, manifest.files).verify()
        try:
            with reading_journal(store, manifest.sequence, check):
                raise StoreError(f"{store} has lost no change; it can be opened as it is")
        except LostChangesError as error:
            if error.last != last_good:
                raise DataError(
                    f"the last good change of {store} is {error.last}, not {last_good}; "
                    f"to accept the loss of later ones, give {setting('last_good', error.last)}"
                ) from None
        return cut_journal(store, manifest.sequence, check, last_good)

"""Backup, restore and verification of a store."""

import shutil
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from graphsage.atomic import atomic_folder
from graphsage.errors import DataError, OutputError, StoreError
from graphsage.graph.build import check_graph
from graphsage.live.generation import names_below, open_generation
from graphsage.live.journal import JOURNAL, Journal, open_journal
from graphsage.live.manifest import Manifest, lock_store, read_manifest, sync_folder, write_manifest

if TYPE_CHECKING:
    from graphsage.live.store import Version


@dataclass(frozen=True)
class Report:
    """Counts of a store. `changes` are those in the journal since the generation."""

    generation: int
    sequence: int
    nodes: int
    edges: int
    changes: int


def copy_store(source: Path, manifest: Manifest, journal: Journal, target: Path) -> "Version":
    from graphsage.live.store import Version

    if target.exists():
        raise OutputError(f"{target} already exists; choose another folder")
    with atomic_folder(target) as temporary:
        shutil.copytree(source / manifest.folder, temporary / manifest.folder)
        journal.copy_to(temporary / JOURNAL)
        write_manifest(temporary, manifest)
        copied = open_journal(temporary, manifest.sequence, bytes.fromhex(manifest.check))
        sequence = copied.sequence
        copied.close()
    sync_folder(target.parent)
    return Version(manifest.generation, sequence)


def backup(store: Path, target: Path) -> "Version":
    """Copy a store that no process owns; a running service makes backups over HTTP."""
    manifest = read_manifest(store)
    with lock_store(store), closing(open_journal(store, manifest.sequence, bytes.fromhex(manifest.check))) as journal:
        return copy_store(store, manifest, journal, target)


def restore(source: Path, target: Path) -> Report:
    """Verify a backup and copy it into a new store."""
    verify(source)
    if target.exists():
        raise OutputError(f"{target} already exists; move it away first, or choose another folder")
    backup(source, target)
    (target / "lock").unlink(missing_ok=True)
    return verify(target)


def verify(store: Path) -> Report:
    """Check the checksums of the generation, the structure of its graph and the chain of the journal."""
    manifest = read_manifest(store)
    with lock_store(store):
        for name in names_below(store / manifest.folder):
            if name not in manifest.files:
                raise StoreError(f"{store / manifest.folder / name} is no file of a generation; move it away")
        base = open_generation(store / manifest.folder, manifest.files)
        base.verify()
        try:
            check_graph(base.graph)
        except DataError as error:
            raise StoreError(f"{store}: {error}") from error
        with closing(open_journal(store, manifest.sequence, bytes.fromhex(manifest.check))) as journal:
            changes = journal.since(manifest.sequence)
            return Report(manifest.generation, journal.sequence, base.num_nodes, base.graph.num_edges, len(changes))

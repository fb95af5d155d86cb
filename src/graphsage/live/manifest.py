"""The current generation and its last change, in one file that is replaced atomically; and the lock on a store."""

import os
import shutil
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path

from graphsage.checksummed_blocks import FileSums
from graphsage.checksummed_json import CHECKSUM, read_checksummed, write_checksummed
from graphsage.errors import StoreError
from graphsage.file_lock import FileLock, lock_folder, shared_lock
from graphsage.live.journal import START
from graphsage.regular_files import is_regular, read_json

FORMAT = 3  # 3: checksums of the manifest and of each block of a generation, and a mark of the last change
NAME = "manifest.json"
RESTORE = "restore a backup"
_ONE_OWNER = "one process owns a live graph, stop that one or ask it over HTTP"


@dataclass(frozen=True)
class Manifest:
    """`sequence` is the last change in the generation, `check` its check in the journal (hex), `features` identifies
    the recipes of the features, and `files` are the checksums of the generation's files."""

    generation: int
    sequence: int = 0
    check: str = START.hex()
    features: str = ""
    files: Mapping[str, FileSums] = field(default_factory=dict)

    @property
    def folder(self) -> str:
        return f"generation-{self.generation:06d}"


def write_manifest(store: Path, manifest: Manifest) -> None:
    files = {name: sums.as_json() for name, sums in manifest.files.items()}
    write_checksummed(store / NAME, {"format": FORMAT, **vars(manifest), "files": files})
    sync_folder(store)


def read_manifest(store: Path) -> Manifest:
    """A manifest that is not as it was written is refused: every file of the store is judged by it."""
    path = store / NAME
    try:
        _refuse_other_formats(store)
        fields = read_checksummed(path, StoreError, RESTORE)
        if fields.pop("format") != FORMAT:
            raise ValueError("its format changed")
        manifest = Manifest(**{**fields, "files": {n: FileSums.from_json(each) for n, each in fields["files"].items()}})
        numbers = (manifest.generation, manifest.sequence)
        if any(type(n) is not int or n < 0 for n in numbers) or len(bytes.fromhex(manifest.check)) != len(START):
            raise ValueError("a value of the wrong type")
    except (FileNotFoundError, NotADirectoryError):
        raise StoreError(f"{store} is not a live graph: {NAME} is missing") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise StoreError(f"{path} is damaged ({error}); {RESTORE}") from error
    return manifest


def _refuse_other_formats(store: Path) -> None:
    fields = read_json(store / NAME, StoreError)
    version = fields.get("format")
    if type(version) is int and (version > FORMAT or (version < FORMAT and CHECKSUM not in fields)):
        what = "upgrade graphsage" if version > FORMAT else "make it again from the run"
        raise StoreError(f"{store} has format {version}, and this version reads format {FORMAT}; {what}")


def is_store(folder: Path) -> bool:
    return is_regular(folder / NAME)


def sync_folder(folder: Path) -> None:
    """Make renames in `folder` durable."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def lock_store(store: Path) -> FileLock:
    """The lock of the process that owns a store."""
    return lock_folder(store, StoreError, _ONE_OWNER)


def reading_store(store: Path) -> AbstractContextManager[None]:
    """Within the block, no process owns the store. It may be on a read-only disk."""
    return shared_lock(store, StoreError, _ONE_OWNER)


def clean(store: Path, manifest: Manifest) -> None:
    """Remove generations that `manifest` does not name, and incomplete files of a crash."""
    for path in store.iterdir():
        left = path.name.startswith(".") and (".part" in path.suffixes or path.suffix == ".old")
        if path.is_symlink():
            continue
        if path.is_dir() and (left or (path.name.startswith("generation-") and path.name != manifest.folder)):
            shutil.rmtree(path)
        elif left and path.is_file():
            path.unlink()

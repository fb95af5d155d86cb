"""The current generation and its last change, in one file that is replaced atomically; and the lock on a store."""

import json
import os
import shutil
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from graphsage.atomic import atomic_file
from graphsage.errors import StoreError
from graphsage.file_lock import FileLock, lock_folder
from graphsage.live.journal import START

FORMAT = 2  # 2: keys of integer ids are the integers
NAME = "manifest.json"


@dataclass(frozen=True)
class Manifest:
    """`sequence` is the last change in the generation, `check` its check in the journal (hex), `features` identifies
    the recipes of the features, and `files` are the checksums of the generation's files."""

    generation: int
    sequence: int = 0
    check: str = START.hex()
    features: str = ""
    files: dict[str, str] = field(default_factory=dict)

    @property
    def folder(self) -> str:
        return f"generation-{self.generation:06d}"


def write_manifest(store: Path, manifest: Manifest) -> None:
    with atomic_file(store / NAME) as temporary:
        temporary.write_text(json.dumps({"format": FORMAT, **asdict(manifest)}, indent=1) + "\n", encoding="utf-8")
    sync_folder(store)


def read_manifest(store: Path) -> Manifest:
    try:
        fields: dict[str, Any] = json.loads((store / NAME).read_text(encoding="utf-8"))
        if (version := int(fields.pop("format"))) != FORMAT:
            what = "upgrade graphsage" if version > FORMAT else "make it again from the run"
            raise StoreError(f"{store} has format {version}, and this version reads format {FORMAT}; {what}")
        manifest = Manifest(**fields)
        whole = isinstance(manifest.generation, int) and isinstance(manifest.sequence, int)
        if not whole or not isinstance(manifest.files, dict) or len(bytes.fromhex(manifest.check)) != len(START):
            raise ValueError("a value of the wrong type")
    except (FileNotFoundError, NotADirectoryError):
        raise StoreError(f"{store} is not a live graph: {NAME} is missing") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise StoreError(f"{store / NAME} is damaged ({error}); restore a backup") from error
    return manifest


def is_store(folder: Path) -> bool:
    return (folder / NAME).is_file()


def sync_folder(folder: Path) -> None:
    """Make renames in `folder` durable."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def lock_store(store: Path) -> FileLock:
    """The lock of the process that owns a store."""
    return lock_folder(store, StoreError, "one process owns a live graph, stop that one or ask it over HTTP")


def clean(store: Path, manifest: Manifest) -> None:
    """Remove generations that `manifest` does not name, and incomplete files of a crash."""
    for path in store.iterdir():
        left = path.name.startswith(".") and path.name.endswith((".part", ".old", ".part.json"))
        if path.is_dir() and (left or (path.name.startswith("generation-") and path.name != manifest.folder)):
            shutil.rmtree(path)
        elif left and path.is_file():
            path.unlink()

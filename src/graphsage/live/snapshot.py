"""Small services of a store: a copy of an overlay that stays as it is, and the removal of what no manifest names."""

import shutil
from pathlib import Path

from graphsage.live.manifest import Manifest
from graphsage.live.overlay import Overlay


def snapshot(overlay: Overlay) -> Overlay:
    """Copies of the dictionaries; the arrays in them are replaced by changes, never changed."""
    copied = Overlay(overlay.base, overlay.cap)
    copied.num_rows = overlay.num_rows
    copied.keys.update(overlay.keys)
    copied.adjacency.lists = dict(overlay.adjacency.lists)
    copied.adjacency.shown = dict(overlay.adjacency.shown)
    copied.features, copied.attributes = dict(overlay.features), dict(overlay.attributes)
    copied.labels, copied.rows, copied.ids = dict(overlay.labels), dict(overlay.rows), dict(overlay.ids)
    copied.gone = set(overlay.gone)
    return copied


def clean(folder: Path, manifest: Manifest) -> None:
    """Remove generations that do not hold, and what a crash left half written."""
    for path in folder.iterdir():
        left = path.name.startswith(".") and path.name.endswith((".part", ".old", ".part.json"))
        if path.is_dir() and (left or (path.name.startswith("generation-") and path.name != manifest.folder)):
            shutil.rmtree(path)
        elif left and path.is_file():
            path.unlink()

"""Whether a file is still the one it was: its size, its modification time and a checksum."""

import hashlib
from io import BufferedReader
from pathlib import Path
from typing import Any, cast

from graphsage.regular_files import open_regular

WHOLE_BYTES = 1 << 30  # larger files are sampled, and their modification time must match too
_PIECES, _PIECE = 64, 4096


def _opened(path: Path) -> BufferedReader:
    """Users may link their data. A FIFO would block for ever."""
    return cast(BufferedReader, open_regular(path.resolve()))


def checksum(path: Path) -> str:
    with _opened(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sampled_fingerprint(path: Path) -> dict[str, Any]:
    """Size, modification time and a checksum of 64 evenly spaced pieces: fast for a file of any size."""
    facts, digest = path.stat(), hashlib.sha256()
    with _opened(path) as file:
        for piece in range(_PIECES):
            file.seek(piece * max(0, facts.st_size - _PIECE) // (_PIECES - 1))
            digest.update(file.read(_PIECE))
    return {"bytes": facts.st_size, "written": facts.st_mtime_ns, "pieces": digest.hexdigest()}


def file_fingerprint(path: Path) -> dict[str, Any]:
    """Size, modification time and a checksum, of the whole file up to WHOLE_BYTES."""
    facts = path.stat()
    if facts.st_size > WHOLE_BYTES:
        return sampled_fingerprint(path)
    return {"bytes": facts.st_size, "written": facts.st_mtime_ns, "sha256": checksum(path)}


def has_changed(path: Path, before: dict[str, Any]) -> bool:
    """Whether the file's content differs from `before`. It is read only if the size is the same and the time is not."""
    facts = path.stat()
    if facts.st_size != before["bytes"]:
        return True
    if "sha256" in before:
        return bool(facts.st_mtime_ns != before["written"] and checksum(path) != before["sha256"])
    return sampled_fingerprint(path) != before


def short(fingerprint: dict[str, Any]) -> str:
    """The first digits of the checksum, for messages."""
    return str(fingerprint.get("sha256") or fingerprint.get("pieces"))[:12]

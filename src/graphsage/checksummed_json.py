"""JSON records that hold a checksum of themselves: a record that was damaged or edited by hand is refused."""

import hashlib
import json
from pathlib import Path
from typing import Any

from graphsage.atomic import atomic_file
from graphsage.errors import DataError

CHECKSUM = "sha256"


def with_checksum(record: dict[str, Any]) -> dict[str, Any]:
    return {**record, CHECKSUM: _digest(record)}


def verified(text: str | bytes, name: str) -> dict[str, Any]:
    """The record in `text` without its checksum; a DataError with `name` if the two do not match."""
    try:
        record = json.loads(text)
        checksum = record.pop(CHECKSUM)
        if checksum != _digest(record):
            raise ValueError("its content does not match its checksum")
    except KeyError:
        raise DataError(f"{name} has no checksum; delete it, and it is made again") from None
    except (ValueError, AttributeError, TypeError) as error:
        raise DataError(f"{name} cannot be trusted ({error}); delete it, and it is made again") from error
    return dict(record)


def write_checksummed(path: Path, record: dict[str, Any]) -> None:
    with atomic_file(path) as temporary:
        text = json.dumps(with_checksum(record), indent=1, ensure_ascii=False, allow_nan=False)
        temporary.write_text(text + "\n", encoding="utf-8")


def read_checksummed(path: Path) -> dict[str, Any]:
    try:
        text = path.read_bytes()
    except OSError as error:
        raise DataError(f"{path} cannot be trusted ({error}); delete it, and it is made again") from error
    return verified(text, str(path))


def _digest(record: dict[str, Any]) -> str:
    """Of the record as JSON returns it: keys are strings, tuples are lists."""
    plain = json.loads(json.dumps(record, allow_nan=False))
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()

"""JSON files that are read back as they were written, or not at all: each holds a digest of the rest."""

import hashlib
import json
from pathlib import Path
from typing import Any

from graphsage.atomic import atomic_file
from graphsage.errors import DataError

SEAL = "sha256"


def write_sealed(path: Path, record: dict[str, Any]) -> None:
    with atomic_file(path) as temporary:
        text = json.dumps({**record, SEAL: _digest(record)}, indent=1, ensure_ascii=False, allow_nan=False)
        temporary.write_text(text + "\n", encoding="utf-8")


def read_sealed(path: Path) -> dict[str, Any]:
    """What was written; a DataError where that was damaged or changed by hand."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        seal = record.pop(SEAL)
        if seal != _digest(record):
            raise ValueError("it is not what was written there")
    except KeyError:
        raise DataError(f"{path} lacks its digest; delete it, and it is made again") from None
    except (OSError, ValueError, AttributeError, TypeError) as error:
        raise DataError(f"{path} cannot be trusted ({error}); delete it, and it is made again") from error
    return dict(record)


def _digest(record: dict[str, Any]) -> str:
    """Of the record as it is read back, where keys are text and lists are lists."""
    plain = json.loads(json.dumps(record, allow_nan=False))
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()

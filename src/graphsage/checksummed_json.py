"""JSON records that hold a checksum of themselves: a record that was damaged or edited by hand is refused."""

import hashlib
import json
from pathlib import Path
from typing import Any

from graphsage.atomic import atomic_file
from graphsage.errors import DataError, GraphSageError
from graphsage.regular_files import JSON_BYTES, parse_json, read_regular

CHECKSUM = "sha256"
_ADVICE = "delete it, and it is made again"


def with_checksum(record: dict[str, Any]) -> dict[str, Any]:
    return {**record, CHECKSUM: _digest(record)}


def verified(
    text: str | bytes, name: str, error: type[GraphSageError] = DataError, advice: str = _ADVICE
) -> dict[str, Any]:
    """The record in `text` without its checksum; an `error` with `name` and `advice` if the two do not match."""
    try:
        record = parse_json(text)
        checksum = record.pop(CHECKSUM)
        if checksum != _digest(record):
            raise ValueError("its content does not match its checksum")
    except KeyError:
        raise error(f"{name} has no checksum; {advice}") from None
    except (ValueError, AttributeError, TypeError) as problem:
        raise error(f"{name} cannot be trusted ({problem}); {advice}") from problem
    return dict(record)


def write_checksummed(path: Path, record: dict[str, Any]) -> None:
    with atomic_file(path) as temporary:
        text = json.dumps(with_checksum(record), indent=1, ensure_ascii=False, allow_nan=False)
        temporary.write_text(text + "\n", encoding="utf-8")


def read_checksummed(
    path: Path, error: type[GraphSageError] = DataError, advice: str = _ADVICE, most: int = JSON_BYTES
) -> dict[str, Any]:
    try:
        text = read_regular(path, error, most)
    except OSError as problem:
        raise error(f"{path} cannot be trusted ({problem}); {advice}") from problem
    return verified(text, str(path), error, advice)


def _digest(record: dict[str, Any]) -> str:
    """Of the record as JSON returns it: keys are strings, tuples are lists."""
    plain = json.loads(json.dumps(record, allow_nan=False))
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()

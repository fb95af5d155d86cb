"""Sizes in bytes, parsed and formatted."""

import math
import re

from graphsage.errors import ConfigError

_UNITS: dict[str, int] = {"": 1, "b": 1} | {
    f"{letter}{end}": base**power
    for power, letter in enumerate("kmgt", 1)
    for end, base in (("", 1000), ("b", 1000), ("ib", 1024))
}


def parse_size(text: str, name: str = "memory") -> int:
    """`4GB`, `1.5 GiB`, `500M`, `64e9` or a number of bytes -> bytes; GB is 10^9, GiB 2^30."""
    found = re.fullmatch(r"((?:\d+(?:\.\d+)?|\.\d+)(?:e\d{1,2})?)\s*([a-z]*)", text.strip().lower())
    if found is None or found[2] not in _UNITS:
        raise ConfigError(f"{name} must be a size such as 4GB, 500MB or 3GiB; got {text!r}")
    size = round(float(found[1]) * _UNITS[found[2]])
    if size < 1:
        raise ConfigError(f"{name} must be above 0, such as 4GB; got {text!r}")
    return size


def shown_size(size: float) -> str:
    """Three digits, rounded up so that the size is enough when it is typed back: 3.1 GB, 489 MB."""
    size, unit, scale = math.ceil(size), "B", 1
    for larger in ("kB", "MB", "GB", "TB"):
        if size >= 1000 * scale:
            unit, scale = larger, 1000 * scale
    parts = 100 if size < 10 * scale else 10 if size < 100 * scale else 1
    return f"{-(-size * parts // scale) / parts:.15g} {unit}"

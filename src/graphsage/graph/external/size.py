"""Amounts of memory as people write them."""

import re

from graphsage.errors import ConfigError

_UNITS: dict[str, int] = {"": 1, "b": 1} | {
    f"{letter}{end}": base**power
    for power, letter in enumerate("kmgt", 1)
    for end, base in (("", 1000), ("b", 1000), ("ib", 1024))
}


def parse_size(text: str, name: str = "memory") -> int:
    """`4GB`, `1.5 GiB`, `500M` or a number of bytes -> bytes; GB is 10^9, GiB 2^30."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?|\.\d+)\s*([a-z]*)", text.strip().lower())
    if found is None or found[2] not in _UNITS:
        raise ConfigError(f"{name} must be a size such as 4GB, 500MB or 3GiB; got {text!r}")
    size = round(float(found[1]) * _UNITS[found[2]])
    if size < 1:
        raise ConfigError(f"{name} must be more than nothing, such as 4GB; got {text!r}")
    return size


def shown_size(size: int) -> str:
    """Rounded up to two digits or more, so that it can be typed back: 3.1GB, 488MB."""
    for unit, scale in (("TB", 10**12), ("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if size >= scale:
            tenths = -(-size * 10 // scale)
            return f"{-(-size // scale)}{unit}" if tenths >= 100 or tenths % 10 == 0 else f"{tenths / 10}{unit}"
    return f"{size}B"

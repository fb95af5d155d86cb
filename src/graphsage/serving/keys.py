"""API keys for reading and writing. Stored as digests, compared in constant time, never logged."""

import base64
import binascii
import hmac
import os
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path

from graphsage.errors import ConfigError

READ, WRITE = "read", "write"
VARIABLES = {READ: "GRAPHSAGE_READ_KEYS", WRITE: "GRAPHSAGE_WRITE_KEYS"}
SHORTEST = 16


class ApiKeys:
    def __init__(self, read: Iterable[str] = (), write: Iterable[str] = ()) -> None:
        self._digests = [(_digest(key.encode()), role) for role, keys in ((READ, read), (WRITE, write)) for key in keys]

    def __bool__(self) -> bool:
        return bool(self._digests)

    def role(self, authorization: bytes, x_api_key: bytes) -> str | None:
        """The role of a request's key; None for an unknown key. Basic authentication takes the key as the password."""
        given = x_api_key or _from_header(authorization)
        if not given:
            return None
        digest_given, found = _digest(given), None
        for digest, role in self._digests:  # all of them: the time must not depend on the key
            if hmac.compare_digest(digest, digest_given):
                found = role if found is None or role == WRITE else found
        return found


def load_keys(path: Path | None) -> ApiKeys:
    """Keys from a file with lines `read KEY` and `write KEY`, and from the environment (comma-separated)."""
    found: dict[str, list[str]] = {READ: [], WRITE: []}
    for role, variable in VARIABLES.items():
        found[role] += [key.strip() for key in os.environ.get(variable, "").split(",") if key.strip()]
    if path is not None:
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"{path} cannot be read as a file of keys ({type(error).__name__})") from None
        for number, line in enumerate(lines, 1):
            words = line.split()
            if not words or words[0].startswith("#"):
                continue
            if len(words) != 2 or words[0] not in found:
                raise ConfigError(f"{path} line {number} must be `read KEY` or `write KEY`")
            found[words[0]].append(words[1])
    for role, keys in found.items():
        if any(len(key) < SHORTEST for key in keys):
            raise ConfigError(f"a {role} key has fewer than {SHORTEST} characters; make one: openssl rand -hex 24")
    return ApiKeys(found[READ], found[WRITE])


def _digest(key: bytes) -> bytes:
    return sha256(key).digest()


def _from_header(authorization: bytes) -> bytes:
    scheme, _, value = authorization.partition(b" ")
    if scheme.lower() == b"bearer":
        return value.strip()
    if scheme.lower() == b"basic":
        try:
            return base64.b64decode(value.strip(), validate=True).partition(b":")[2]
        except (binascii.Error, ValueError):
            return b""
    return b""

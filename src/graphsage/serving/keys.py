"""API keys: named, with scopes and an expiry. The file holds digests of them, never the keys.

A line per key: NAME SCOPES EXPIRES SHA-256. A changed file is read again while the service runs.
"""

import base64
import binascii
import hmac
import logging
import os
import re
import secrets
import stat
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from hashlib import sha256
from pathlib import Path

from graphsage.atomic import atomic_file
from graphsage.errors import ConfigError, setting
from graphsage.regular_files import read_regular

READ, WRITE, ADMIN = SCOPES = ("read", "write", "admin")
FORMAT = "graphsage-keys 2"
LARGEST = 1 << 20  # bytes of a file of keys
CHECKED_EVERY = 1.0  # seconds between looks at the file
OLD_VARIABLES = ("GRAPHSAGE_READ_KEYS", "GRAPHSAGE_WRITE_KEYS")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
_COLUMNS = "# name  scopes  expires (UTC)  SHA-256 of the key"
_log = logging.getLogger("graphsage.serving")


@dataclass(frozen=True, slots=True)
class Key:
    name: str
    scopes: tuple[str, ...]
    digest: bytes
    expires: date | None = None
    """The first day (UTC) on which the key is refused."""

    @property
    def expires_at(self) -> float:
        """Seconds since 1970; infinite for a key that does not expire."""
        if self.expires is None:
            return float("inf")
        return datetime(self.expires.year, self.expires.month, self.expires.day, tzinfo=UTC).timestamp()

    @property
    def expired(self) -> bool:
        return time.time() >= self.expires_at

    def line(self) -> str:
        expires = "never" if self.expires is None else self.expires.isoformat()
        return f"{self.name} {','.join(self.scopes)} {expires} {self.digest.hex()}"


class ApiKeys:
    """The keys of a service. It is open to everyone if it was started without a file of keys."""

    def __init__(self, keys: Sequence[Key] = (), path: Path | None = None) -> None:
        self.required = bool(keys) or path is not None
        self.refused = False  # the file was changed to something that cannot be read; the keys before it stay
        self._keys, self._path, self._guard = tuple(keys), path, threading.Lock()
        self._seen = None if path is None else _look(path)
        self._next_look = time.monotonic() + CHECKED_EVERY

    @property
    def keys(self) -> tuple[Key, ...]:
        self._refresh()
        return self._keys

    @property
    def several(self) -> bool:
        return len(self._keys) > 1

    def find(self, authorization: bytes, x_api_key: bytes) -> Key | None:
        """The key of a request; it may be expired. Basic authentication takes the key as the password."""
        given = x_api_key or _from_header(authorization)
        if not given:
            return None
        digest, found = _digest(given), None
        for key in self.keys:  # all of them: the time must not depend on the key
            if hmac.compare_digest(key.digest, digest):
                found = key
        return found

    def _refresh(self) -> None:
        """Read the file again if it has changed. A file that cannot be read changes nothing."""
        if self._path is None or time.monotonic() < self._next_look:
            return
        with self._guard:
            self._next_look = time.monotonic() + CHECKED_EVERY
            seen = _look(self._path)
            if seen == self._seen:
                return
            self._seen = seen
            try:
                self._keys, self.refused = read_keys(self._path), False
            except ConfigError as error:
                self.refused = True
                _log.error("the keys stay as they were: %s", error)
                return
            _log.warning("%s has changed; %d keys are known now", self._path, len(self._keys))


def load_keys(path: Path | None) -> ApiKeys:
    """The keys of a file that has at least one."""
    for variable in OLD_VARIABLES:
        if variable in os.environ:
            raise ConfigError(
                f"{variable} is no longer read; unset it, make a file of keys with `graphsage keys add FILE NAME`, "
                f"and pass it as {setting('api_keys')}"
            )
    if path is None:
        return ApiKeys()
    keys = read_keys(path)
    if not keys:
        raise ConfigError(f"{path} has no keys; add one: graphsage keys add {path} NAME")
    return ApiKeys(keys, path)


def read_keys(path: Path) -> tuple[Key, ...]:
    try:
        real = path.resolve(strict=True)  # container platforms mount secrets as links
        text = read_regular(real, ConfigError, LARGEST).decode()
        mode = real.stat().st_mode
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read as a file of keys ({type(error).__name__})") from None
    lines = text.splitlines()
    if not lines or lines[0].strip() != FORMAT:
        raise ConfigError(
            f"{path} is no file of keys of format 2, which begins with the line `{FORMAT}`; make one: "
            "graphsage keys add FILE NAME"
        )
    if mode & stat.S_IRWXO:
        _log.warning("%s is open to all users of this machine; run: chmod o= %s", path, path)
    keys: dict[str, Key] = {}
    for number, line in enumerate(lines[1:], 2):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        try:
            key = _key(words)
        except ValueError:
            raise ConfigError(f"{path} line {number} must be NAME SCOPES EXPIRES SHA-256") from None
        if key.name in keys:
            raise ConfigError(f"{path} line {number} has a name that another line has")
        keys[key.name] = key
    return tuple(keys.values())


def add_key(path: Path, name: str, scopes: Iterable[str], expires: date | None = None) -> str:
    """Make a key, add its digest to the file and return the key. The file is created if it is missing."""
    scopes = tuple(scopes)
    if not _NAME.fullmatch(name):
        raise ConfigError(
            "the name of a key has 1 to 64 letters, digits and . _ @ -, and begins with a letter or digit"
        )
    if not scopes or set(scopes) - {*SCOPES} or len(set(scopes)) < len(scopes):
        raise ConfigError(f"the scopes of a key are one or more of {', '.join(SCOPES)}")
    secret = f"gs_{secrets.token_urlsafe(32)}"
    key = Key(name, scopes, _digest(secret.encode()), expires)
    if key.expired:
        raise ConfigError(f"a key that expires on {expires} would be refused already; choose a later day")
    if any(each.name == name for each in (read_keys(path) if path.exists() else ())):
        raise ConfigError(f"{path} has a key of that name; choose another name, or remove it first")
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else [FORMAT, _COLUMNS]
    _write(path, [*lines, key.line()])
    return secret


def remove_key(path: Path, name: str) -> None:
    """Remove a key from the file; a running service refuses it within a second."""
    if name not in {key.name for key in read_keys(path)}:
        raise ConfigError(f"{path} has no key of that name")
    lines = path.read_text(encoding="utf-8").splitlines()
    _write(path, [line for line in lines if line.split()[:1] != [name]])


def _key(words: Sequence[str]) -> Key:
    name, scopes, expires, digest = words
    made = Key(
        name,
        tuple(scopes.split(",")),
        bytes.fromhex(digest),
        None if expires == "never" else date.fromisoformat(expires),
    )
    if not _NAME.fullmatch(name) or set(made.scopes) - {*SCOPES} or len(made.digest) != 32:
        raise ValueError
    return made


def _write(path: Path, lines: Sequence[str]) -> None:
    """Replace the file, and keep its owner and permissions."""
    path = path.resolve()
    before = path.stat() if path.exists() else None
    with atomic_file(path, 0o600 if before is None else stat.S_IMODE(before.st_mode)) as temporary:
        temporary.write_text("\n".join([*lines, ""]), encoding="utf-8")
        if before is not None and (before.st_uid, before.st_gid) != (os.geteuid(), os.getegid()):
            os.chown(temporary, before.st_uid, before.st_gid)


def _look(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def _digest(key: bytes) -> bytes:
    """Keys are 256 random bits, so a fast digest is as safe as a slow one."""
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

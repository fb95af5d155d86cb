"""Reads files that may have been swapped or damaged: regular files only, JSON of bounded size and depth.

A FIFO would block `open` for ever, a device may be endless, and a symlink leads out of the folder that was copied.
"""

import json
import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any

from graphsage.errors import DataError, GraphSageError

JSON_BYTES = 64 << 20
_DEPTH = 64  # nested lists and objects
_TYPES = {
    stat.S_IFDIR: "a folder",
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def open_regular(path: Path, error: type[GraphSageError] = DataError) -> IO[bytes]:
    """Open a regular file for reading; anything else is an `error`. It never blocks. FileNotFoundError passes."""
    _refuse(path, os.lstat(path).st_mode, error)  # before `open`, which has effects on some devices
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise
    except OSError as problem:
        raise error(f"{path} cannot be read ({problem.strerror}); check the disk and its permissions") from problem
    try:
        _refuse(path, os.fstat(handle).st_mode, error)
        return os.fdopen(handle, "rb")
    except BaseException:
        os.close(handle)
        raise


def _refuse(path: Path, mode: int, error: type[GraphSageError]) -> None:
    if not stat.S_ISREG(mode):
        what = _TYPES.get(stat.S_IFMT(mode), "no file")
        raise error(f"{path} is {what}, and only regular files are read; put a copy of the file there")


def is_regular(path: Path) -> bool:
    try:
        return stat.S_ISREG(os.lstat(path).st_mode)
    except OSError:
        return False


def read_regular(path: Path, error: type[GraphSageError] = DataError, most: int | None = None) -> bytes:
    """The content of a regular file of at most `most` bytes. FileNotFoundError passes."""
    with open_regular(path, error) as file:
        size = os.fstat(file.fileno()).st_size
        if most is not None and size > most:
            raise error(f"{path} has {size:,} bytes, and at most {most:,} are read; it is damaged or not ours")
        try:
            return file.read() if most is None else file.read(most + 1)
        except OSError as problem:
            raise error(f"{path} cannot be read ({problem.strerror}); check the disk") from problem


def read_json(path: Path, error: type[GraphSageError] = DataError, most: int = JSON_BYTES) -> Any:
    """The JSON value of a regular file. ValueError if it is not JSON or nested too deeply; FileNotFoundError passes."""
    return parse_json(read_regular(path, error, most))


def parse_json(text: str | bytes) -> Any:
    """The JSON value of `text`; ValueError if it is not JSON or nested too deeply."""
    try:
        value = json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    level = [value]
    for _ in range(_DEPTH):
        inner: list[Any] = []
        for each in level:
            members: Iterable[Any] = each.values() if isinstance(each, dict) else each if isinstance(each, list) else ()
            inner += [member for member in members if isinstance(member, dict | list)]
        if not inner:
            return value
        level = inner
    raise ValueError("it is nested too deeply")

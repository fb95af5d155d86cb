"""Files of JSON lines. A line that cannot be written is counted and never fails a request."""

import json
import logging
import os
import stat
import sys
import threading
from collections import deque
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from graphsage.errors import ConfigError, setting

STDOUT = Path("-")
WAITING = 10_000  # lines in memory at most while the file cannot take them
EVERY = 0.1  # seconds between writes
_log = logging.getLogger("graphsage.serving")


class JsonLog:
    """Appends lines to a file or to stdout in a thread, so that a slow disk or reader does not delay requests.

    A file that was moved away, as logrotate does, is created again.
    """

    def __init__(self, path: Path, name: str, lost: Callable[[int], object] = lambda lines: None) -> None:
        """`lost` gets the number of lines that could not be written."""
        self._path, self._name, self._lost = path, name, lost
        self._lines: deque[bytes] = deque()
        self._guard, self._stop, self._failing, self._torn = threading.Lock(), threading.Event(), False, False
        self._file = sys.stdout.fileno() if path == STDOUT else -1
        try:
            self._reopen()
        except OSError as error:
            raise ConfigError(
                f"{setting(f'{name}_log')}: {path} cannot be written ({type(error).__name__}); "
                "give a file in an existing folder, or - for stdout"
            ) from None
        self._thread = threading.Thread(target=self._follow, name=f"graphsage-{name}-log", daemon=True)
        self._thread.start()

    def write(self, fields: Mapping[str, Any], now: bool = False) -> None:
        """Queue a line; with `now`, return when the operating system has it."""
        time = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        if len(self._lines) >= WAITING:
            self._lost(1)
            return
        self._lines.append(json.dumps({"time": time, "log": self._name, **fields}).encode("ascii") + b"\n")
        if now:
            self._flush()

    def close(self) -> None:
        """Write what waits; a reader of stdout that does not read loses it."""
        self._stop.set()
        self._thread.join(5)
        if self._thread.is_alive():
            return
        self._flush()
        if self._path != STDOUT and self._file >= 0:
            os.close(self._file)

    def _follow(self) -> None:
        while not self._stop.wait(EVERY):
            self._flush()

    def _flush(self) -> None:
        with self._guard:
            lines: list[bytes] = []
            while self._lines:
                lines.append(self._lines.popleft())
            if not lines:
                return
            try:
                self._reopen()
                self._write(b"".join(lines))
                self._failing = False
            except OSError as error:
                self._lost(len(lines))
                if not self._failing:
                    _log.error(
                        "the %s log cannot be written (%s); its lines are lost", self._name, type(error).__name__
                    )
                self._failing = True

    def _write(self, data: bytes) -> None:
        rest = memoryview(b"\n" + data if self._torn else data)
        while rest:
            self._torn = True
            rest = rest[os.write(self._file, rest) :]
        self._torn = False

    def _reopen(self) -> None:
        """Open the file, unless it is the one that is open."""
        if self._path == STDOUT:
            return
        try:
            seen = self._path.stat()
        except FileNotFoundError:
            seen = None
        if seen is not None and not stat.S_ISREG(seen.st_mode):
            raise IsADirectoryError(str(self._path))
        if self._file >= 0:
            mine = os.fstat(self._file)
            if seen is not None and (seen.st_dev, seen.st_ino) == (mine.st_dev, mine.st_ino):
                return
            os.close(self._file)
            self._file, self._torn = -1, False
        self._file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o640)

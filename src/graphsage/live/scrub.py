"""Reads the files of an open live graph again and again at a limited rate, so that damage is found before it is needed.

A damaged block is refused from then on, also if it had been verified and read before.
"""

import logging
import threading
import time
from collections.abc import Callable
from functools import partial

from graphsage.checksummed_blocks import BLOCK
from graphsage.errors import GraphSageError
from graphsage.live.manifest import read_manifest
from graphsage.live.store import LiveGraph

_STEP = 16  # blocks between two waits: 1 MiB
_PAUSE = 60.0  # seconds between two passes, so that a small graph is not read all the time
_log = logging.getLogger("graphsage.live")


class Scrubber:
    """`done` of `total` bytes of the present pass are read, `passes` are complete. `damage` has a sentence for each
    damaged part."""

    def __init__(self, live: LiveGraph, rate: float) -> None:
        """`rate` in bytes per second; 0 reads nothing."""
        self._live, self._rate = live, rate
        self.done, self.total, self.passes = 0, 0, 0
        self.damage: set[str] = set()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work, name="graphsage-scrub", daemon=True)

    def start(self) -> None:
        if self._rate:
            self._thread.start()

    def close(self) -> None:
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    def _work(self) -> None:
        while not self._stop.is_set():
            began = time.monotonic()
            self.once()
            self._stop.wait(max(1.0, _PAUSE - (time.monotonic() - began)))

    def once(self) -> None:
        """One pass over the manifest, the generation and the journal."""
        base, found = self._live.base, set[str]()
        self.done, self.total = 0, sum(file.known.size for file in base.files.values())
        self._try(found, lambda: read_manifest(self._live.folder))
        for file in base.files.values():
            for block in range(len(file.known.sums)):
                if self._stop.is_set():
                    return
                if self._live.base is not base:  # compacted meanwhile
                    self.damage = set()
                    return
                self._try(found, partial(file.verify, block))
                if block % _STEP == _STEP - 1:
                    self._try(found, base.check)
                    self._stop.wait(_STEP * BLOCK / self._rate if self._rate else 0)
            self.done += file.known.size
            self._try(found, file.check)
        self._try(found, self._live.check_journal)
        self.damage = found
        self.passes += 1

    def _try(self, found: set[str], check: Callable[[], object]) -> None:
        try:
            check()
        except GraphSageError as error:
            if str(error) not in self.damage | found:
                _log.error("found while reading the live graph in the background: %s", error)
            found.add(str(error))
            self.damage = self.damage | found

"""Handles Ctrl-C between steps, never within one, so that a checkpoint written after it resumes bit for bit."""

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

ECHO_SECONDS = 1.0  # torchrun forwards the Ctrl-C that the terminal has already sent to every process


@dataclass
class Interrupt:
    requested: bool = False
    at: float = 0.0


@contextmanager
def postponed() -> Iterator[Interrupt]:
    """Within the block, the first Ctrl-C (or SIGTERM) only sets `requested`; a later one stops at once."""
    interrupt = Interrupt()
    if threading.current_thread() is not threading.main_thread():
        yield interrupt  # Python delivers signals to the main thread only
        return

    def handle(number: int, frame: FrameType | None) -> None:
        if not interrupt.requested:
            interrupt.requested, interrupt.at = True, time.monotonic()
        elif time.monotonic() - interrupt.at > ECHO_SECONDS:
            raise KeyboardInterrupt

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield interrupt
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

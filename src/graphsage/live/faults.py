"""Places where a crash test kills the process: each step of a write, a compaction and a reload has a name."""

import os
import signal

POINTS = (
    *(f"write.{step}" for step in ("checked", "journaled", "applied")),
    *(f"compact.{step}" for step in ("copied", "half", "written", "manifest", "swapped", "trimmed", "cleaned")),
    *(f"reload.{step}" for step in ("loaded", "swapped")),
)
_armed: dict[str, int] = {}


def arm(text: str) -> None:
    """`point`, or `point:N` for its N-th passage; empty for none."""
    point, _, count = text.partition(":")
    _armed.clear()
    if point:
        _armed[point] = int(count or 1)


def fault(point: str) -> None:
    """Kill this process, as by `kill -9`, if this point is armed."""
    if point in _armed:
        _armed[point] -= 1
        if _armed[point] <= 0:
            os.kill(os.getpid(), signal.SIGKILL)


arm(os.environ.get("GRAPHSAGE_FAULT", ""))

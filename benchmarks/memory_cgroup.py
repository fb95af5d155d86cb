"""A memory cgroup, version 1 or 2, below the one of this process: anonymous memory and page cache count."""

import os
import time
from pathlib import Path


class NoMemoryGroup(Exception):
    """This user may not limit memory here."""


class MemoryGroup:
    def __init__(self, limit: int) -> None:
        base, self.version = _own_group()
        self.path = base / f"graphsage-{os.getpid()}"
        try:
            self.path.mkdir()
            if self.version == 1:
                (self.path / "memory.limit_in_bytes").write_text(str(limit))
            else:
                (self.path / "memory.max").write_text(str(limit))
                (self.path / "memory.swap.max").write_text("0")
        except OSError as error:
            raise NoMemoryGroup(
                f"cannot limit memory with a cgroup below {base} ({error.strerror}); run as root or in "
                "a delegated cgroup (a ulimit does not count the page cache)"
            ) from error

    def enter(self) -> None:
        """Move the calling process in; for `preexec_fn`."""
        (self.path / "cgroup.procs").write_text(str(os.getpid()))

    def peak(self) -> int:
        """The most that was in use since this was asked last."""
        name = "memory.max_usage_in_bytes" if self.version == 1 else "memory.peak"
        peak = int((self.path / name).read_text())
        if self.version == 1:
            (self.path / name).write_text("0")
        return peak

    def remove(self) -> None:
        for _ in range(50):  # the last process may still be leaving
            try:
                self.path.rmdir()
                return
            except OSError:
                time.sleep(0.1)


def _own_group() -> tuple[Path, int]:
    mounts = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    groups = [line.split(":", 2) for line in Path("/proc/self/cgroup").read_text().splitlines()]
    for _, controllers, place in groups:
        if "memory" in controllers.split(","):
            mount = next(m[1] for m in mounts if m[2] == "cgroup" and "memory" in m[3].split(","))
            return Path(mount + place), 1
    for number, controllers, place in groups:
        if number == "0" and not controllers:
            mount = next((m[1] for m in mounts if m[2] == "cgroup2"), None)
            if mount is not None:
                return Path(mount + place), 2
    raise NoMemoryGroup("this system has no memory cgroups; there is nothing to measure with")

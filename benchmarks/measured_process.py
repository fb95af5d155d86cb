"""Processes that are measured: what a command took, and workers that answer questions over a pipe.

Needs nothing but the standard library, so that it also runs in a peer's environment.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


@dataclass
class Taken:
    seconds: float
    processor_seconds: float
    peak_bytes: int
    """The kernel's high-water mark of resident memory, mapped files included."""
    asked_bytes: int
    """Read calls, answered by the disk or by the system's file cache."""
    disk_read_bytes: int
    disk_written_bytes: int
    status: int

    def facts(self) -> dict[str, Any]:
        facts = asdict(self) | {"disk_bytes_per_second": self.disk_bytes_per_second}
        return {name: round(value, 2) if isinstance(value, float) else value for name, value in facts.items()}

    @property
    def disk_bytes_per_second(self) -> float:
        return (self.disk_read_bytes + self.disk_written_bytes) / max(self.seconds, 1e-9)


def graphsage(*words: object, until: Callable[[], bool] | None = None) -> Taken:
    """Run `graphsage WORDS`. Where `until` becomes true it is killed, as by a power cut: no handler runs."""
    begin = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-m", "graphsage", *map(str, words)], stdout=subprocess.DEVNULL)
    io: dict[str, int] = {}
    peak = 0
    while True:
        found, status, usage = os.wait4(process.pid, os.WNOHANG)
        if found:
            break
        io, peak = io_of(process.pid) or io, max(peak, high_water(process.pid))
        if until is not None and until():
            process.kill()
        time.sleep(0.02 if until is not None else 0.1)
    process.returncode = os.waitstatus_to_exitcode(status)
    return Taken(
        time.perf_counter() - begin,
        usage.ru_utime + usage.ru_stime,
        peak,
        io.get("rchar", 0),
        io.get("read_bytes", 0),
        io.get("write_bytes", 0),
        process.returncode,
    )


def io_of(pid: int) -> dict[str, int]:
    try:
        lines = Path(f"/proc/{pid}/io").read_text().splitlines()
    except OSError:
        return {}
    return {name: int(value) for name, value in (line.split(": ") for line in lines)}


def high_water(pid: int) -> int:
    """Peak resident memory of a process since its program started, in bytes; 0 if it has ended.

    getrusage's `ru_maxrss` is not it: the kernel carries the memory of the process that forked over into it.
    """
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:")), 0)


class Worker:
    """A process that answers each line it is sent with one line of JSON, by `answering`."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], folder: Path | None = None) -> None:
        self.process = subprocess.Popen(
            command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )

    def ask(self, line: str | int) -> dict[str, Any]:
        assert self.process.stdin is not None
        print(line, file=self.process.stdin, flush=True)
        return self.answer()

    def answer(self) -> dict[str, Any]:
        """The next answer. It is `{"error": sentence}` if the process has ended."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        answer: dict[str, Any] = json.loads(line) if line else {"error": "the process ended without an answer"}
        return answer

    def stop(self) -> None:
        """End the process, if need be after a minute."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()


def answering() -> Callable[..., None]:
    """A function that writes its arguments as one line of JSON to the standard output of this process.

    All other output goes to standard error from now on, also that of C code. Call this before importing a library:
    DGL prints on its first import.
    """
    pipe = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    sys.stdout = sys.stderr

    def answer(**found: Any) -> None:
        print(json.dumps(found), file=pipe, flush=True)

    return answer


def forget(*paths: Path) -> None:
    """Ask the system to drop files from its cache, so that the next command reads them from the disk."""
    for path in paths:
        for file in [path] if path.is_file() else [p for p in path.rglob("*") if p.is_file()]:
            with file.open("rb") as opened:
                os.fsync(opened.fileno())
                os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def disk_speed(folder: Path, size: int) -> dict[str, float]:
    """Bytes a second of one long write with fsync, and of reading it back from the disk."""
    path, chunk = folder / "speed.bin", os.urandom(1 << 22)
    count = max(1, size // len(chunk))
    begin = time.perf_counter()
    with path.open("wb") as file:
        for _ in range(count):
            file.write(chunk)
        file.flush()
        os.fsync(file.fileno())
    wrote = time.perf_counter() - begin
    forget(path)
    begin = time.perf_counter()
    with path.open("rb", buffering=0) as file:
        while file.read(1 << 22):
            pass
    read = time.perf_counter() - begin
    path.unlink()
    total = count * len(chunk)
    return {"write_bytes_per_second": round(total / wrote), "read_bytes_per_second": round(total / read)}

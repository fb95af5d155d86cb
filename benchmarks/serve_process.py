"""A service in its own process, and a lean HTTP/1.1 client to put load on it: what the serve benchmarks share."""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, cast

import psutil
import uvloop

from graphsage.experiments import record

ROOT = Path(__file__).resolve().parent.parent
LIBRARIES = ("fastapi", "uvicorn", "uvloop", "httptools", "apsw", "faiss-cpu")


@dataclass
class Server:
    process: subprocess.Popen[str]
    host: str
    port: int

    @property
    def cpu(self) -> float:
        """Seconds of processor time so far: says what a request costs also where other work takes the cores."""
        used = psutil.Process(self.process.pid).cpu_times()
        return float(used.user + used.system)

    @property
    def memory(self) -> float:
        """Resident megabytes."""
        return psutil.Process(self.process.pid).memory_info().rss / 1e6


@contextmanager
def serving(
    run: Path,
    graph: Path,
    *options: str,
    fault: str = "",
    ready: bool = True,
    runner: tuple[str, ...] = ("-m", "graphsage"),
    root: Path = ROOT,
) -> Iterator[Server]:
    """A server on a free port; on leaving, SIGTERM, and it must exit with 0 (unless it was killed)."""
    command = [
        sys.executable,
        *runner,
        "serve",
        str(run),
        "--graph",
        str(graph),
        "--port",
        "0",
        "--map",
        "pca",
        *options,
    ]
    env = {**os.environ, "OMP_WAIT_POLICY": "PASSIVE", "GRAPHSAGE_FAULT": fault}
    env["PYTHONPATH"] = os.pathsep.join([str(root / "src"), env.get("PYTHONPATH", "")])
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=env, start_new_session=True)
    try:
        assert process.stderr is not None
        said = []
        for line in process.stderr:
            said.append(line)
            found = re.search(r"on http://([\d.]+):(\d+)", line)
            if found:
                break
        else:
            raise RuntimeError("the service did not start:\n" + "".join(said))
        server = Server(process, found[1], int(found[2]))
        if ready:
            wait_ready(server)
        yield server
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            code = process.wait(30)
            assert code == 0, f"exit code {code}"
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        assert process.stderr is not None
        process.stderr.close()


def wait_ready(server: Server, seconds: float = 600) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        status, _ = uvloop.run(one(server, "GET", "/readyz"))
        if status == 200:
            return
        time.sleep(0.2)
    raise RuntimeError("the service did not become ready")


def request_bytes(method: str, path: str, body: Any = None) -> bytes:
    content = b"" if body is None else json.dumps(body).encode()
    kind = "content-type: application/json\r\n" if content else ""
    head = f"{method} {path} HTTP/1.1\r\nhost: localhost\r\n{kind}content-length: {len(content)}\r\n\r\n"
    return head.encode() + content


class Connection(asyncio.Protocol):
    """One connection, kept alive where the server keeps it. Lean: what it costs is measured along with the service."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._transport: asyncio.Transport | None = None
        self._answer: asyncio.Future[tuple[int, bytes]] | None = None
        self._came, self._head, self._length = b"", 0, 0

    async def ask(self, request: bytes) -> tuple[int, bytes]:
        loop = asyncio.get_running_loop()
        if self._transport is None:
            await loop.create_connection(lambda: self, self._server.host, self._server.port)
        assert self._transport is not None
        self._answer, self._came, self._length = loop.create_future(), b"", 0
        self._transport.write(request)
        return await self._answer

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._came = self._came + data if self._came else data
        if not self._length:
            end = self._came.find(b"\r\n\r\n")
            if end < 0:
                return
            length = re.search(rb"\r\ncontent-length: *(\d+)", self._came[:end], re.IGNORECASE)
            self._head = end + 4
            self._length = self._head + (int(length[1]) if length else 0)
        if len(self._came) >= self._length and self._answer is not None and not self._answer.done():
            if b"\r\nconnection: close" in self._came[: self._head].lower():
                self.close()
            self._answer.set_result((int(self._came[9:12]), self._came[self._head : self._length]))

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(ConnectionResetError("the service went away"))

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()
        self._transport = None


async def one(server: Server, method: str, path: str, body: Any = None) -> tuple[int, bytes]:
    connection = Connection(server)
    try:
        return await connection.ask(request_bytes(method, path, body))
    finally:
        connection.close()


def quantiles(seconds: list[float]) -> dict[str, float | None]:
    """Milliseconds."""
    if not seconds:
        return {"p50_ms": None, "p99_ms": None, "max_ms": None}
    ordered = sorted(seconds)
    at = {
        name: ordered[min(len(ordered) - 1, int(share * len(ordered)))]
        for name, share in (("p50_ms", 0.5), ("p99_ms", 0.99), ("max_ms", 1.0))
    }
    return {name: round(value * 1000, 2) for name, value in at.items()}


def surroundings() -> dict[str, Any]:
    """Where and when something was measured; `load_before` tells a quiet machine from a busy one."""
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "cores": os.cpu_count(),
        "load_before": round(os.getloadavg()[0], 2),
    }


def write_result(path: Path, about: str, command: str, result: dict[str, Any]) -> None:
    """As all results are written, with the versions of what serves besides."""
    libraries = {name: version(name) for name in LIBRARIES}
    path.parent.mkdir(parents=True, exist_ok=True)
    record.write_result(path, about, command, {"versions": {**record.versions(), **libraries}, **result})
    print(path.read_text(encoding="utf-8"))

"""A service in its own process, and a lean HTTP/1.1 client to put load on it: what the serve benchmarks share."""

import asyncio
import json
import os
import platform
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
from typing import Any

import psutil

ROOT = Path(__file__).resolve().parent.parent


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
def serving(run: Path, graph: Path, *options: str, fault: str = "", ready: bool = True,
            runner: tuple[str, ...] = ("-m", "graphsage")) -> Iterator[Server]:  # fmt: skip
    """A server on a free port; on leaving, SIGTERM, and it must exit with 0 (unless it was killed)."""
    command = [sys.executable, *runner, "serve", str(run), "--graph", str(graph), "--port", "0", *options]
    env = {**os.environ, "OMP_WAIT_POLICY": "PASSIVE", "GRAPHSAGE_FAULT": fault}
    env["PYTHONPATH"] = os.pathsep.join([str(ROOT / "src"), env.get("PYTHONPATH", "")])
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
        status, _ = asyncio.run(one(server, "GET", "/readyz"))
        if status == 200:
            return
        time.sleep(0.2)
    raise RuntimeError("the service did not become ready")


def request_bytes(method: str, path: str, body: Any = None) -> bytes:
    content = b"" if body is None else json.dumps(body).encode()
    kind = "content-type: application/json\r\n" if content else ""
    head = f"{method} {path} HTTP/1.1\r\nhost: localhost\r\n{kind}content-length: {len(content)}\r\n\r\n"
    return head.encode() + content


class Connection:
    """One connection, kept alive where the server keeps it."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def ask(self, request: bytes) -> tuple[int, bytes]:
        if self._writer is None or self._reader is None:
            self._reader, self._writer = await asyncio.open_connection(self._server.host, self._server.port)
        try:
            self._writer.write(request)
            head = await self._reader.readuntil(b"\r\n\r\n")
            status = int(head[9:12])
            length = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
            body = await self._reader.readexactly(int(length[1])) if length else b""
            if b"connection: close" in head.lower():
                self.close()
            return status, body
        except (OSError, asyncio.IncompleteReadError):
            self.close()
            raise

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
        self._reader = self._writer = None


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
    at = {name: ordered[min(len(ordered) - 1, int(share * len(ordered)))] for name, share in
          (("p50_ms", 0.5), ("p99_ms", 0.99), ("max_ms", 1.0))}  # fmt: skip
    return {name: round(value * 1000, 2) for name, value in at.items()}


def surroundings() -> dict[str, Any]:
    """Where and when something was measured; `load_before` tells a quiet machine from a busy one."""
    libraries = {name: version(name) for name in ("torch", "fastapi", "uvicorn", "apsw", "faiss-cpu")}
    return {"date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"), "cores": os.cpu_count(),
            "processor": platform.processor() or platform.machine(), "python": platform.python_version(),
            "libraries": libraries, "load_before": round(os.getloadavg()[0], 2)}  # fmt: skip


def write_result(path: Path, result: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(result, indent=1))

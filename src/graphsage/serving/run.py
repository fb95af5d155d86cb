"""The service as one process. On SIGTERM or SIGINT it finishes the requests in flight and exits with 0."""

import faulthandler
import gc
import ipaddress
import logging
import re
import signal
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch
import uvicorn

from graphsage.errors import ConfigError, setting
from graphsage.serving.app import make_app
from graphsage.serving.index import give_back
from graphsage.serving.keys import ApiKeys
from graphsage.serving.logs import JsonLog
from graphsage.serving.protocol import protocol_for
from graphsage.serving.request_limits import local_names
from graphsage.serving.service import Service
from graphsage.serving.settings import Settings

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,252}|\[[0-9A-Fa-f:.]+\]")  # a host name or an address
_log = logging.getLogger("graphsage.serving")
_OTHER_FILES = 128  # files and sockets besides connections
GRACE = 10  # seconds for requests in flight after a signal


class _Server(uvicorn.Server):
    """Exits with 0 after a signal; uvicorn's own server would raise the signal again and die of it."""

    on_start: Callable[[str], None]

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        before = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            host, port = self.servers[0].sockets[0].getsockname()[:2]
            self.on_start(f"http://{f'[{host}]' if ':' in host else host}:{port}")


def _open_files(connections: int) -> int:
    """Let this process open as many files as `connections` need; return how many connections it may have."""
    if sys.platform == "win32":
        return connections
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections + _OTHER_FILES
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    allowed = connections if soft == resource.RLIM_INFINITY else max(1, min(connections, soft - _OTHER_FILES))
    if allowed < connections:
        _log.warning("the limit on open files (%d) allows %d connections, not %d", soft, allowed, connections)
    return allowed


def check_address(host: str, keys: ApiKeys, allowed_hosts: Sequence[str] = ()) -> None:
    """Refuse addresses that other machines can reach without keys, and host names that are none."""
    for name in allowed_hosts:
        if not _NAME.fullmatch(name):
            raise ConfigError(f"{setting('allowed_host')} must be a host name without scheme and port; got {name!r}")
    try:
        local = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        local = False
    if not local and not keys.required:
        raise ConfigError(
            f"{host} can be reached from other machines; give keys with {setting('api_keys')}, or serve on 127.0.0.1"
        )


def serve(
    run: Path,
    folder: Path,
    *,
    host: str,
    port: int,
    keys: ApiKeys,
    settings: Settings,
    inference: str | None = None,
    map_method: str = "pca",
    threads: int = 1,
    allowed_hosts: Sequence[str] = (),
    access_log: Path | None = None,
    audit_log: Path | None = None,
    on_start: Callable[[str], None] = print,
) -> None:
    """Serve until a signal arrives. With keys, any host name is accepted unless there are `allowed_hosts`."""
    check_address(host, keys, allowed_hosts)
    torch.set_num_threads(threads)
    service = Service(run, folder, settings, inference=inference, map_method=map_method)
    logs: list[JsonLog] = []

    def opened(path: Path | None, name: str) -> JsonLog | None:
        if path is None:
            return None
        logs.append(JsonLog(path, name, service.metrics.lost_lines.labels(name).inc))
        return logs[-1]

    try:
        access, audit = opened(access_log, "access"), opened(audit_log, "audit")
        checked = not keys.required or allowed_hosts
        app = make_app(service, keys, local_names(host, allowed_hosts) if checked else None, access, audit)
        config = uvicorn.Config(
            app,
            host=host,
            port=port,
            log_level="warning",
            access_log=False,
            http=protocol_for(app, _open_files(settings.max_connections), settings.head_timeout),
            server_header=False,
            lifespan="off",
            backlog=2048,
            timeout_graceful_shutdown=GRACE,
            timeout_keep_alive=75,
        )
        server = _Server(config)
        server.on_start = on_start
        give_back()
        gc.freeze()  # excludes the model and the libraries from garbage collection
        sys.setswitchinterval(0.001)  # seconds; the answering thread must not wait long for the computing one
        faulthandler.enable()  # a mapped file that is cut may end the process: not without a line in the log
        server.run()
        if not server.started:
            raise ConfigError(f"cannot serve on {host} port {port}; is another process using it?")
    finally:
        service.close()
        for log in logs:
            log.close()

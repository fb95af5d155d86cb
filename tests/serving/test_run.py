"""The service as a process: it starts, turns away over real sockets, ends with 0, and comes back after a kill."""

import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from graphsage.serving.client import Client, Node, ServiceError
from small_service import NEW, SOURCE, Small, eventually, served


def test_it_serves_turns_away_ends_with_0_and_comes_back(small: Small, tmp_path: Path) -> None:
    copied = small.copy(tmp_path)
    limits = ("--max-waiting", "2", "--max-connections", "20", "--head-timeout", "60")
    with served(copied, *limits, "--deadline", "30") as (process, address):
        with Client(address) as client:
            stored = client.put_nodes([Node("new", **NEW)])  # type: ignore[arg-type]
            z = client.embed(ids=["new", "node-1"], nodes=[Node(**NEW)])  # type: ignore[arg-type]
            assert (stored.sequence, z.graph, z.vectors.shape) == (1, stored, (3, 8))
            assert client.predict(ids=["node-1"])[0].classes[0] in {"algebra", "logic", "topology"}
            assert client.node("new").neighbors == ["node-1", "node-4"]
            assert client.put_edges([("new", "node-2")]).sequence == 2
            assert client.delete_edge("new", "node-2").sequence == 3
            assert client.model()["dim"] == 8
            with pytest.raises(ServiceError, match=r"404: ids\[0\] is not in the graph"):
                client.embed(ids=["nobody"])
        host, port = address.removeprefix("http://").split(":")
        body = json.dumps({"ids": ["new"]}).encode()
        head = (
            b"POST /v1/embed HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
            b"content-length: %d\r\n\r\n"
        )
        slow = [socket.create_connection((host, int(port)), timeout=20) for _ in range(4)]
        for each in slow:  # more than there are places
            each.sendall(head % len(body) + body[:3])
        half = [socket.create_connection((host, int(port)), timeout=20) for _ in range(25)]
        for each in half:  # more than there may be connections
            each.sendall(head[:30])
        for each in slow[:2]:  # they made room for the others
            assert each.recv(4096).startswith(b"HTTP/1.1 408")
        with Client(address, retries=0) as client:
            for _ in range(3):
                assert client.embed(ids=["new"]).vectors.shape == (1, 8)
        eventually(lambda: len(select.select(half, [], [], 0)[0]) >= len(slow) + len(half) - 20)  # they were closed
        for path, status in ((b"/healthz", b"200"), (b"/metrics", b"403")):  # by another name only health is told
            with socket.create_connection((host, int(port)), timeout=20) as other:
                other.sendall(b"GET %b HTTP/1.1\r\nhost: x\r\n\r\n" % path)
                assert other.recv(4096).startswith(b"HTTP/1.1 " + status)
        process.send_signal(signal.SIGTERM)
        time.sleep(0.5)
        slow[3].sendall(body[3:])  # in flight when the signal came: finished all the same
        answer = b"".join(iter(lambda: slow[3].recv(65536), b""))
        for each in (*slow, *half):
            each.close()
        assert answer.startswith(b"HTTP/1.1 200")
        assert b'"embedding"' in answer
        assert process.wait(30) == 0
    with served(copied) as (_, address), Client(address) as client:
        assert client.node("new").neighbors == ["node-1", "node-4"]


def test_a_second_process_is_refused_by_name(small: Small, tmp_path: Path) -> None:
    copied = small.copy(tmp_path)
    with served(copied) as (process, _):
        second = subprocess.run(
            [sys.executable, "-m", "graphsage", "serve", str(copied.run), "--graph", str(copied.graph), "--port", "0"],
            env={**os.environ, "PYTHONPATH": SOURCE},
            capture_output=True,
            text=True,
            timeout=60,
        )
    assert second.returncode == 2
    assert f"is in use by process {process.pid}" in second.stderr
    assert "Traceback" not in second.stderr


@pytest.mark.parametrize("point", ["reload.loaded", "reload.swapped", "write.journaled"])
def test_killed_in_a_reload_or_a_write_it_comes_back_whole(small: Small, tmp_path: Path, point: str) -> None:
    copied = small.copy(tmp_path)
    with served(copied, fault=point) as (process, address), Client(address, retries=0) as client:
        add = partial(client.put_nodes, [Node("new", **NEW)])  # type: ignore[arg-type]
        act: Callable[[], object] = add if point.startswith("write") else client.reload
        with pytest.raises(ConnectionError):
            act()
        assert process.wait(20) == -9
    with served(copied) as (_, address), Client(address) as client:
        assert client.embed(ids=["node-1"]).vectors.shape == (1, 8)
        if point.startswith("write"):
            assert client.node("new").neighbors == ["node-1", "node-4"]


def test_the_end_of_the_process_by_a_cut_mapped_file_is_in_the_log(small: Small, tmp_path: Path) -> None:
    with served(small.copy(tmp_path)) as (process, _):
        process.send_signal(signal.SIGBUS)  # what the system sends when a mapped file has been cut
        assert process.stderr is not None
        said = process.stderr.read()
        assert process.wait(30) == -signal.SIGBUS
    assert "Bus error" in said

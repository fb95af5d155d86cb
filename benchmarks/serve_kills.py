"""The service killed while clients write to it over HTTP, started again, and asked for all that it acknowledged.

Part of `serve_crash.py`. The process is forked from this one instead of started anew, so that a hundred kills take
minutes; what it runs is the service itself.
"""

import http.client
import multiprocessing
import os
import random
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from serve_process import ROOT

from graphsage.live.backup import verify
from graphsage.live.faults import POINTS, arm
from graphsage.serving.client import Client, Node, ServiceError
from graphsage.serving.keys import ApiKeys
from graphsage.serving.run import serve
from graphsage.serving.settings import Settings

sys.path.append(str(ROOT / "tests" / "helpers"))
from small_service import N, Small, make_small, small_model

FORK = multiprocessing.get_context("fork")
WRITERS, EDGES = 4, 3
GONE = (OSError, http.client.HTTPException)  # what a client sees of a service that was killed
States = dict[str, str]  # by name: + acknowledged, - its deletion acknowledged, ? sent and not (yet) answered


def node(name: str) -> Node:
    """Everything about a node follows from its name, so that anybody can tell whether all of it is there."""
    around = sorted(random.Random(name).sample(range(N), EDGES))
    return Node(name, {"words": f"about {name}", "size": len(name)}, edges=[f"node-{row}" for row in around])


@contextmanager
def forked(small: Small, fault: str = "") -> Iterator[tuple[int, str]]:
    """The service in a child process: its number and address."""
    reading, writing = os.pipe()

    def run() -> None:
        arm(fault)
        serve(
            small.run,
            small.graph,
            host="127.0.0.1",
            port=0,
            keys=ApiKeys(),
            settings=Settings(compact_after=20),
            on_start=lambda at: [os.write(writing, at.encode()), None][1],
        )

    process = FORK.Process(target=run, daemon=True)
    process.start()
    os.close(writing)
    try:
        address = os.read(reading, 1000).decode()
        assert address, "the service did not start"
        assert process.pid is not None
        yield process.pid, address
    finally:
        os.close(reading)
        if process.is_alive():
            process.kill()
        process.join()
    assert process.exitcode == -9, f"exit code {process.exitcode}"


def write(address: str, prefix: str, states: States, first: threading.Event) -> None:
    """Add nodes, and delete every fourth again, until the service is gone."""
    with Client(address, retries=0) as client:
        for count in range(10**9):
            name = f"{prefix}-{count}"
            states[name] = "?"
            try:
                client.put_nodes([node(name)])
                states[name] = "+"
                first.set()
                if count % 4 == 3:
                    states[name] = "?"
                    client.delete_node(name)
                    states[name] = "-"
            except GONE:
                return


def compare(address: str, states: States) -> Counter[str]:
    """Ask for every node that was ever sent. What had no answer may be there or not, but whole; and then stay so."""
    found: Counter[str] = Counter()
    with Client(address) as client:
        for name, state in states.items():
            try:
                info = client.node(name)
            except ServiceError as error:
                if error.status != 404:
                    raise
                found["lost"] += state == "+"
                states[name] = "-"
                continue
            sent = node(name)
            whole = info.neighbors == list(sent.edges) and info.attributes == sent.attributes
            found["half_applied"] += not whole
            found["came_back"] += state == "-"
            states[name] = "+"
    return found


def http_kills(folder: Path, rounds: int) -> dict[str, Any]:
    """Each round starts the service on what the last kill left, asks for that round's nodes, writes, and kills."""
    folder.mkdir()
    torch.set_num_threads(1)
    small, draw = make_small(folder), random.Random(3)
    everything, last = States(), States()
    total, started = Counter[str](lost=0, came_back=0, half_applied=0, acknowledged=0), []
    for number in range(rounds):
        began, first = time.monotonic(), threading.Event()
        with forked(small) as (process, address):
            started.append(time.monotonic() - began)
            total += compare(address, last)
            everything |= last
            last = States()
            writers = [
                threading.Thread(target=write, args=(address, f"w{number}-{w}", last, first)) for w in range(WRITERS)
            ]
            for writer in writers:
                writer.start()
            assert first.wait(60), "nothing was acknowledged"
            time.sleep(draw.random() * 0.5)
            os.kill(process, signal.SIGKILL)
            for writer in writers:
                writer.join()
        total["acknowledged"] += sum(state in "+-" for state in last.values())
        if number % 20 == 19:
            print(f"{number + 1} kills of the service: {dict(total)}", file=sys.stderr, flush=True)
    with forked(small) as (_, address):
        total += compare(address, everything | last)
    verify(small.graph)
    counts = {name: total[name] for name in ("acknowledged", "lost", "came_back", "half_applied")}
    return {"kills": rounds, **counts, "slowest_start_s": round(max(started), 2)}


def reload_steps(folder: Path) -> dict[str, dict[str, int]]:
    """Killed at every step of a reload: started again, it serves the model in the run's folder and the whole graph."""
    found = {}
    torch.set_num_threads(1)
    for number, point in enumerate(p for p in POINTS if p.startswith("reload")):
        (folder / point).mkdir(parents=True)
        small, states = make_small(folder / point), {"kept": "+"}
        with forked(small, point) as (_, address), Client(address, retries=0) as client:
            client.put_nodes([node("kept")])
            before = client.embed(ids=["kept"])
            small_model(seed=number + 1)[0].save(small.run)
            try:
                client.reload()
            except GONE:
                pass
            else:
                raise AssertionError(f"{point} was not passed")
        with forked(small) as (_, address), Client(address) as client:
            seen = compare(address, states)
            after = client.embed(ids=["kept"])
            mixed = after.model == before.model or (after.vectors == before.vectors).all()
            mixed = mixed or client.reload() != after.model
        found[point] = {"lost": seen["lost"], "came_back": 0, "half_applied": seen["half_applied"] + bool(mixed)}
    return found

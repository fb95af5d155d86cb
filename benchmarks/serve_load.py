"""How fast and how steady is the service? One new node with 10 edges, 32 at a time, and ten times too many requests.

    python -m benchmarks.serve_load [RUN] [--seconds 10] [--out results/serve/load.json]

The load generator runs on the same machine as the service and shares its cores.
"""

import argparse
import asyncio
import random
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import uvloop

from benchmarks.serve_process import (
    Connection,
    Server,
    one,
    quantiles,
    request_bytes,
    serving,
    surroundings,
    write_result,
)
from graphsage.inference.model import load
from graphsage.inference.run_data import open_training_data

EDGES = 10


@dataclass
class Tally:
    """What one phase saw: times of accepted requests and of those turned away, and what else came back."""

    accepted: list[float] = field(default_factory=list)
    rejected: list[float] = field(default_factory=list)
    others: dict[str, int] = field(default_factory=dict)
    began: float = 0.0
    ended: float = 0.0
    cpu: float = 0.0

    def add(self, status: int | str, seconds: float) -> None:
        if status == 200:
            self.accepted.append(seconds)
        elif status == 429:
            self.rejected.append(seconds)
        else:
            self.others[str(status)] = self.others.get(str(status), 0) + 1

    def summary(self, nodes: int = 1) -> dict[str, Any]:
        span = self.ended - self.began
        said: dict[str, Any] = {
            "requests": len(self.accepted),
            "per_second": round(len(self.accepted) / span, 1),
            **quantiles(self.accepted),
            "service_cpu_ms": round(1000 * self.cpu / max(1, len(self.accepted)), 2),
        }
        if nodes > 1:
            said["nodes_per_second"] = round(nodes * len(self.accepted) / span, 1)
        return {**said, "errors": self.others} if self.others else said


def bodies(run: Path, nodes: int, count: int) -> list[bytes]:
    """Requests with nodes made of other nodes' texts and edges to random nodes, all different."""
    data = open_training_data(load(run).about)
    draw = random.Random(0)
    ids = [str(data.graph.id_of(row)) for row in range(data.graph.num_nodes)]
    made = []
    for number in range(count):
        sent = []
        for place in range(nodes):
            row = draw.randrange(len(ids))
            attributes = {name: str(column[row]) for name, column in data.columns.items()}
            sent.append({"id": f"new-{number}-{place}", "attributes": attributes, "edges": draw.sample(ids, EDGES)})
        made.append(request_bytes("POST", "/v1/embed", {"nodes": sent}))
    return made


async def client(server: Server, requests: list[bytes], tally: Tally, until: float, start: int, pause: float) -> None:
    connection, number = Connection(server), start
    while time.perf_counter() < until:
        began = time.perf_counter()
        try:
            status: int | str = (await connection.ask(requests[number % len(requests)]))[0]
        except OSError as error:
            status = type(error).__name__
        tally.add(status, time.perf_counter() - began)
        number += 7
        if status == 429 and pause:
            await asyncio.sleep(pause)
    connection.close()


async def phase(server: Server, requests: list[bytes], clients: int, seconds: float, pause: float = 0.0) -> Tally:
    tally, cpu = Tally(began=time.perf_counter()), server.cpu
    until = tally.began + seconds
    await asyncio.gather(*(client(server, requests, tally, until, c * 31, pause) for c in range(clients)))
    tally.ended, tally.cpu = time.perf_counter(), server.cpu - cpu
    return tally


async def watch_health(server: Server, tally: Tally, until: float) -> None:
    while time.perf_counter() < until:
        began = time.perf_counter()
        try:
            status: int | str = (await one(server, "GET", "/healthz"))[0]
        except OSError as error:
            status = type(error).__name__
        tally.add(status, time.perf_counter() - began)
        await asyncio.sleep(0.1)


async def overload(
    server: Server, requests: list[bytes], clients: int, seconds: float, capacity: float
) -> dict[str, Any]:
    """`clients` that come again at once when they were served, and after a short pause when turned away."""
    health, before = Tally(), server.memory
    watch = asyncio.create_task(watch_health(server, health, time.perf_counter() + seconds))
    tally = await phase(server, requests, clients, seconds, pause=0.1)
    await watch
    offered = (len(tally.accepted) + len(tally.rejected)) / (tally.ended - tally.began)
    goodput = len(tally.accepted) / (tally.ended - tally.began)
    return {
        "clients": clients,
        "offered_per_second": round(offered, 1),
        "goodput_per_second": round(goodput, 1),
        "goodput_share": round(goodput / capacity, 3),
        "service_cpu_share": round(tally.cpu / seconds, 2),
        "accepted": quantiles(tally.accepted),
        "rejections": len(tally.rejected),
        "rejected": quantiles(tally.rejected),
        "errors": tally.others,
        "health": {
            "asked": len(health.accepted) + sum(health.others.values()),
            "ok": len(health.accepted),
            **quantiles(health.accepted),
        },
        "memory_mb": {
            "before": round(before),
            "after": round(server.memory),
            "growth": round(server.memory / before - 1, 4),
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, nargs="?", default=Path("demo-out/model"), help="folder of a trained model")
    parser.add_argument("--seconds", type=float, default=10.0, help="length of each phase")
    parser.add_argument("--inference", default="exact")
    parser.add_argument("--out", type=Path, default=Path("results/serve/load.json"))
    options = parser.parse_args()
    where = surroundings()
    single, many = bodies(options.run, 1, 512), bodies(options.run, 32, 64)
    with (
        tempfile.TemporaryDirectory() as folder,
        serving(options.run, Path(folder) / "graph", "--inference", options.inference) as server,
    ):
        uvloop.run(phase(server, single, 4, 2.0))
        lone = uvloop.run(phase(server, single, 1, options.seconds))
        crowd = uvloop.run(phase(server, single, 32, options.seconds))
        bulk = uvloop.run(phase(server, many, 4, options.seconds))
        capacity = len(crowd.accepted) / (crowd.ended - crowd.began)
        too_many = uvloop.run(overload(server, single, 640, options.seconds, capacity))
    about = f"one new node with {EDGES} edges, not stored; service and load generator share the machine"
    write_result(
        options.out,
        about,
        "python -m benchmarks.serve_load",
        {
            "surroundings": where,
            "inference": options.inference,
            "seconds": options.seconds,
            "one_client": lone.summary(),
            "clients_32": crowd.summary(),
            "nodes_32_at_a_time": bulk.summary(32),
            "overload_x10": too_many,
        },
    )


if __name__ == "__main__":
    main()

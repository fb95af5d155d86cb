"""Does the service stay well under mixed load for an hour? Errors, latency and memory, minute by minute; deleted nodes.

    python -m benchmarks.serve_soak [RUN] [--minutes 60] [--rate 40] [--out results/serve/soak.json]

Clients embed new and known nodes, predict, search, look at nodes, add nodes, and delete nodes and edges, at a steady
rate; compactions and index rebuilds happen meanwhile. Half of the searches ask for the neighbors of a copy of a node
that was just deleted, which would be the nearest of all. Passes with no error, no deleted node in the answer to a
search that began after the deletion, and a memory slope below 1 MB a minute over the second half (Theil-Sen: the memory
that a rebuild needs for a moment is no slope).
"""

import argparse
import asyncio
import json
import random
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import uvloop
from scipy.stats import theilslopes

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

KEPT = 200  # nodes that a writer leaves in the graph before it deletes its oldest: the graph stays as large as it is


@dataclass
class Gone:
    """Nodes whose deletion was acknowledged. Their names never come back."""

    ids: set[str] = field(default_factory=set)
    last: dict[str, Any] | None = None
    """What the last of them was."""
    searches: int = 0
    """Answers that were checked for them."""


@dataclass
class Errand:
    what: str
    request: bytes
    deletes: str = ""


class Mixed:
    """One client's endless errand."""

    def __init__(self, number: int, ids: list[str], columns: dict[str, Any], gone: Gone) -> None:
        self._draw, self._number, self._ids, self._columns = random.Random(number), number, ids, columns
        self._mine: dict[str, dict[str, Any]] = {}
        self._count = 0
        self.gone = gone

    def node(self) -> dict[str, Any]:
        row = self._draw.randrange(len(self._ids))
        said = {name: str(column[row]) for name, column in self._columns.items()}
        return {"attributes": said, "edges": self._draw.sample(self._ids, 10)}

    def next(self) -> Errand:
        draw = self._draw.random()
        known = self._draw.choice(self._ids)
        if draw < 0.45:
            return Errand("embed", request_bytes("POST", "/v1/embed", {"nodes": [self.node()], "ids": [known]}))
        if draw < 0.55:
            return Errand(
                "predict", request_bytes("POST", "/v1/predict", {"ids": [known, self._draw.choice(self._ids)]})
            )
        if draw < 0.70:
            near = {"id": known} if self.gone.last is None or draw < 0.62 else {"node": self.gone.last}
            return Errand("search", request_bytes("POST", "/v1/search", near))
        if draw < 0.75:
            return Errand("look", request_bytes("GET", f"/v1/nodes/{known}"))
        if self._mine and 0.93 < draw < 0.95:
            name = self._draw.choice(list(self._mine))
            edges = self._mine[name]["edges"]
            if edges:
                return Errand("cut", request_bytes("DELETE", f"/v1/edges?source={edges.pop()}&target={name}"))
        if len(self._mine) >= KEPT or (self._mine and draw > 0.95):
            name = next(iter(self._mine))
            return Errand("delete", request_bytes("DELETE", f"/v1/nodes/{name}"), name)
        self._count += 1
        name = f"soak-{self._number}-{self._count}"
        self._mine[name] = self.node()
        return Errand("put", request_bytes("PUT", "/v1/nodes", {"nodes": [{"id": name, **self._mine[name]}]}))

    def deleted(self, name: str) -> None:
        self.gone.last = self._mine.pop(name)
        self.gone.ids.add(name)


async def run_errands(
    server: Server,
    mixed: Mixed,
    until: float,
    pause: float,
    counts: Counter[str],
    errors: Counter[str],
    times: dict[str, list[float]],
) -> None:
    """One request every `pause` seconds; later ones wait for one that takes longer, and are not made up for."""
    connection, due = Connection(server), time.monotonic()
    while due < until:
        await asyncio.sleep(due - time.monotonic())
        due = max(due + pause, time.monotonic())
        errand = mixed.next()
        what, gone = errand.what, set(mixed.gone.ids) if errand.what == "search" else set()
        began = time.perf_counter()
        try:
            status, body = await connection.ask(errand.request)
        except OSError as error:
            errors[f"{what} {type(error).__name__}"] += 1
            continue
        times.setdefault(what, []).append(time.perf_counter() - began)
        counts[what] += 1
        if status != 200:
            errors[f"{what} {status}"] += 1
        elif errand.deletes:
            mixed.deleted(errand.deletes)
        elif what == "search" and gone:
            found = {each["id"] for each in json.loads(body)["results"]}
            mixed.gone.searches += 1
            if found & gone:
                errors["search returned a deleted node"] += 1
    connection.close()


async def soak(server: Server, mixed: list[Mixed], minutes: float, rate: float) -> dict[str, Any]:
    counts: Counter[str] = Counter()
    errors: Counter[str] = Counter()
    began = time.monotonic()
    until = began + 60 * minutes
    times: dict[str, list[float]] = {}
    pause = len(mixed) / rate
    tasks = [asyncio.create_task(run_errands(server, each, until, pause, counts, errors, times)) for each in mixed]
    memory, rows, step = [], [], max(1.0, min(10.0, 6 * minutes))
    while time.monotonic() < until:
        await asyncio.sleep(step)
        memory.append(((time.monotonic() - began) / 60, server.memory))
        if len(memory) % max(1, int(60 / step)) == 0:
            status, body = await one(server, "GET", "/v1/stats")
            stats = json.loads(body) if status == 200 else {}
            flat = [seconds for each in times.values() for seconds in each]
            rows.append(
                {
                    "minute": round(memory[-1][0], 1),
                    "memory_mb": round(memory[-1][1], 1),
                    "requests": len(flat),
                    **quantiles(flat),
                    "errors": sum(errors.values()),
                    "graph": stats.get("graph"),
                }
            )
            print(rows[-1], flush=True)
            times.clear()
    await asyncio.gather(*tasks)
    later = np.array([point for point in memory if point[0] >= minutes / 2])
    slope = float(theilslopes(later[:, 1], later[:, 0])[0]) if len(later) > 1 else 0.0
    squares = float(np.polyfit(later[:, 0], later[:, 1], 1)[0]) if len(later) > 1 else 0.0
    return {
        "minutes": minutes,
        "requests": dict(counts),
        "errors": dict(errors),
        "deleted_nodes": len(mixed[0].gone.ids),
        "searches_after_a_deletion": mixed[0].gone.searches,
        "memory_slope_mb_per_minute": round(slope, 3),
        "least_squares_slope": round(squares, 3),
        "by_minute": rows,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, nargs="?", default=Path("demo-out/model"), help="folder of a trained model")
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--rate", type=float, default=40.0, help="requests a second of all clients together")
    parser.add_argument("--out", type=Path, default=Path("results/serve/soak.json"))
    options = parser.parse_args()
    where = surroundings()
    data = open_training_data(load(options.run).about)
    ids = [str(data.graph.id_of(row)) for row in range(data.graph.num_nodes)]
    gone = Gone()
    mixed = [Mixed(number, ids, data.columns, gone) for number in range(options.clients)]
    with (
        tempfile.TemporaryDirectory() as folder,
        serving(options.run, Path(folder) / "graph", "--compact-after", "500") as server,
    ):
        result = uvloop.run(soak(server, mixed, options.minutes, options.rate))
    passed = not result["errors"] and result["memory_slope_mb_per_minute"] < 1
    about = "mixed reads, writes and deletions at a steady rate"
    body = {"surroundings": where, "clients": options.clients, "offered_per_second": options.rate, "passed": passed}
    write_result(options.out, about, "python -m benchmarks.serve_soak", {**body, **result})
    raise SystemExit(not passed)


if __name__ == "__main__":
    main()

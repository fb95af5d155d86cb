"""Do clients that are slow, or too many, harm the others? Health and the latency of well-behaved clients meanwhile.

    python -m benchmarks.serve_slow_clients [RUN] [--seconds 8] [--rounds 5] [--out results/serve/slow-clients.json]

Well-behaved clients ask 40 times a second for the vector of a new node. Beside them, in turn: no other client; 300
connections with half a head that grows by a byte a second; 200 bodies of another key that grow by a byte every half
second; 1,500 connections, more than there may be; and 256 clients of another key that ask without a pause. The
conditions alternate, so that other work on the machine meets all of them. Then the service is flooded with and
without the refusal of requests before they are parsed. The load generator runs on the same machine and shares its
cores.
"""

import argparse
import asyncio
import multiprocessing
import resource
import secrets
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager, closing, suppress
from hashlib import sha256
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any, cast

import uvloop

from benchmarks.serve_load import Tally, bodies, overload, phase, watch_health
from benchmarks.serve_process import Connection, Server, quantiles, serving, surroundings, write_result
from graphsage.serving.keys import FORMAT, Key

GOOD, RATE = 4, 40  # well-behaved clients, and their requests per second together
HALF_HEADS, SLOW_BODIES, IDLE, FLOOD = 300, 200, 1500, 256
_PARSE_ALL = (
    "import graphsage.serving.protocol as p; p.is_whole_request = lambda data: False; "
    "from graphsage.cli.main import main; main()"
)


def with_key(request: bytes, key: str) -> bytes:
    line, _, rest = request.partition(b"\r\n")
    return line + b"\r\nx-api-key: " + key.encode() + b"\r\n" + rest


def write_keys(path: Path, *names: str) -> list[str]:
    """A file of keys that may read; their secrets."""
    made = [secrets.token_hex(16) for _ in names]
    keys = [Key(name, ("read",), sha256(key.encode()).digest(), None) for name, key in zip(names, made, strict=True)]
    path.write_text("\n".join([FORMAT, *(key.line() for key in keys), ""]), encoding="utf-8")
    path.chmod(0o600)
    return made


async def good_client(server: Server, requests: list[bytes], tally: Tally, until: float, start: int) -> None:
    """Asks at a steady rate, on one connection."""
    connection, number, due = Connection(server), start, time.perf_counter() + start / RATE / GOOD
    while due < until:
        await asyncio.sleep(due - time.perf_counter())
        due = max(due + GOOD / RATE, time.perf_counter())
        began = time.perf_counter()
        try:
            status: int | str = (await asyncio.wait_for(connection.ask(requests[number % len(requests)]), 10))[0]
        except (OSError, TimeoutError) as error:
            status = type(error).__name__
            connection.close()
        tally.add(status, time.perf_counter() - began)
        number += 7
    connection.close()


async def drip(server: Server, first: bytes, pause: float) -> None:
    """Begin a request and go on with it a byte at a time; begin another one where the service ends it."""
    while True:
        with suppress(OSError):
            reader, writer = await asyncio.open_connection(server.host, server.port)
            with closing(writer):
                writer.write(first)
                answered = asyncio.create_task(reader.read(1))
                while not answered.done():
                    await asyncio.wait([answered], timeout=pause)
                    writer.write(b"x")
                    await writer.drain()
                answered.exception()
        await asyncio.sleep(pause)


async def sit(server: Server) -> None:
    """Connect, say nothing, and connect again."""
    while True:
        with suppress(OSError):
            reader, writer = await asyncio.open_connection(server.host, server.port)
            with closing(writer):
                await reader.read(1)
        await asyncio.sleep(1)


def flood(host: str, port: int, requests: list[bytes], on: Event) -> None:
    """In a process of its own: while `on` is set, clients that keep their connections and ask again as soon as they are
    answered."""
    server = Server(cast(Any, None), host, port)

    async def burst(connections: list[Connection]) -> None:
        until = time.perf_counter() + 0.2
        await asyncio.gather(*(ask(each, place * 31, until) for place, each in enumerate(connections)))

    async def ask(connection: Connection, number: int, until: float) -> None:
        while time.perf_counter() < until:
            status, _ = await connection.ask(requests[number % len(requests)])
            number += 7
            if status == 429:
                await asyncio.sleep(0.02)

    async def phases() -> None:
        while True:
            await asyncio.to_thread(on.wait)
            connections = [Connection(server) for _ in range(FLOOD)]
            while on.is_set():
                await burst(connections)
            for each in connections:
                each.close()

    uvloop.run(phases())


async def while_on(on: Event) -> None:
    on.set()
    try:
        await asyncio.sleep(3600)
    finally:
        on.clear()


@asynccontextmanager
async def beside(*tasks: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """The tasks run during the block."""
    running = [asyncio.create_task(each) for each in tasks]
    try:
        await asyncio.sleep(1)
        yield
    finally:
        for each in running:
            each.cancel()
        await asyncio.gather(*running, return_exceptions=True)


class Condition:
    def __init__(self, about: str, attack: Callable[[], list[Coroutine[Any, Any, None]]]) -> None:
        self.about, self.attack = about, attack
        self.good, self.health = Tally(), Tally()

    async def run(self, server: Server, requests: list[bytes], seconds: float) -> None:
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(beside(*self.attack()))
            until = time.perf_counter() + seconds
            clients = (good_client(server, requests, self.good, until, start) for start in range(GOOD))
            await asyncio.gather(*clients, watch_health(server, self.health, until))

    def summary(self, quiet: "Condition") -> dict[str, Any]:
        seen, normal = quantiles(self.good.accepted), quantiles(quiet.good.accepted)
        others = {**({"429": len(self.good.rejected)} if self.good.rejected else {}), **self.good.others}
        asked = len(self.health.accepted) + sum(self.health.others.values())
        return {
            "about": self.about,
            "requests": len(self.good.accepted) + sum(others.values()),
            "errors": others,
            **seen,
            "p99_to_quiet": round((seen["p99_ms"] or 0) / (normal["p99_ms"] or 1), 2),
            "p50_to_quiet": round((seen["p50_ms"] or 0) / (normal["p50_ms"] or 1), 2),
            "health": {"asked": asked, "ok": len(self.health.accepted), **quantiles(self.health.accepted)},
        }


def slow_clients(run: Path, folder: Path, seconds: float, rounds: int) -> dict[str, Any]:
    good_key, bad_key = write_keys(folder / "keys.txt", "good", "bad")
    sent = bodies(run, 1, 512)
    requests, bad = [with_key(each, good_key) for each in sent], [with_key(each, bad_key) for each in sent]
    with serving(run, folder / "graph", "--api-keys", str(folder / "keys.txt"), "--map", "pca") as server:
        head = b"POST /v1/embed HTTP/1.1\r\nhost: localhost\r\nx-filler: "
        body = with_key(
            b"POST /v1/embed HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
            b"content-length: 1000\r\n\r\n{",
            bad_key,
        )

        context = multiprocessing.get_context("spawn")
        on = context.Event()
        process = context.Process(target=flood, args=(server.host, server.port, bad, on), daemon=True)
        process.start()
        conditions = {
            "quiet": Condition("no other client", list),
            "half_heads": Condition(
                f"{HALF_HEADS} connections with half a head, a byte a second",
                lambda: [drip(server, head, 1.0) for _ in range(HALF_HEADS)],
            ),
            "slow_bodies": Condition(
                f"{SLOW_BODIES} bodies of another key, two bytes a second",
                lambda: [drip(server, body, 0.5) for _ in range(SLOW_BODIES)],
            ),
            "connections": Condition(
                f"{IDLE:,} silent connections, more than there may be", lambda: [sit(server) for _ in range(IDLE)]
            ),
            "overload": Condition(f"{FLOOD} clients of another key without a pause", lambda: [while_on(on)]),
        }
        uvloop.run(phase(server, requests, 4, 2.0))
        before = server.memory
        for number in range(rounds):
            order = list(conditions.values())
            for condition in order if number % 2 == 0 else reversed(order):
                uvloop.run(condition.run(server, requests, seconds))
        process.kill()
        process.join()
        memory = {"before": round(before), "after": round(server.memory)}
    quiet = conditions["quiet"]
    return {**{name: each.summary(quiet) for name, each in conditions.items()}, "memory_mb": memory}


def refusals(run: Path, folder: Path, seconds: float, rounds: int) -> dict[str, Any]:
    """640 clients at once, with and without the refusal before parsing; the median of each number over the rounds."""
    sent = bodies(run, 1, 512)
    found: dict[str, list[dict[str, Any]]] = {"before_parsing": [], "after_parsing": []}
    for _ in range(rounds):
        for name, seen in found.items():
            runner = ("-m", "graphsage") if name == "before_parsing" else ("-c", _PARSE_ALL)
            with serving(run, folder / "graph-2", "--map", "pca", runner=runner) as server:
                crowd = uvloop.run(phase(server, sent, 32, seconds))
                capacity = len(crowd.accepted) / (crowd.ended - crowd.began)
                seen.append(uvloop.run(overload(server, sent, 640, seconds, capacity)))
                seen[-1]["capacity_per_second"] = round(capacity, 1)
            with serving(run, folder / "graph-2", "--map", "pca", "--max-waiting", "1", runner=runner) as server:
                lone = uvloop.run(phase(server, sent, 1, seconds))
                many = uvloop.run(phase(server, sent, 64, seconds))
                accepted = len(many.accepted) * lone.cpu / len(lone.accepted)
                seen[-1]["cpu_ms_per_refusal"] = round(1000 * (many.cpu - accepted) / len(many.rejected), 4)

    def middle(rows: list[dict[str, Any]], *path: str) -> float:
        values = []
        for row in rows:
            value: Any = row
            for name in path:
                value = value[name]
            values.append(float(value or 0))
        return sorted(values)[len(values) // 2]

    return {
        name: {
            "capacity_per_second": middle(rows, "capacity_per_second"),
            "goodput_per_second": middle(rows, "goodput_per_second"),
            "goodput_share": middle(rows, "goodput_share"),
            "cpu_ms_per_refusal": middle(rows, "cpu_ms_per_refusal"),
            "rejections": middle(rows, "rejections"),
            "rejected_p50_ms": middle(rows, "rejected", "p50_ms"),
            "accepted_p99_ms": middle(rows, "accepted", "p99_ms"),
            "health_p99_ms": middle(rows, "health", "p99_ms"),
            "health_failed": sum(row["health"]["asked"] - row["health"]["ok"] for row in rows),
            "rounds": rows,
        }
        for name, rows in found.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, nargs="?", default=Path("demo-out/model"), help="folder of a trained model")
    parser.add_argument("--seconds", type=float, default=8.0, help="length of each phase")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path("results/serve/slow-clients.json"))
    options = parser.parse_args()
    where = surroundings()
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(8192, most), most))
    with tempfile.TemporaryDirectory() as name:
        slow = slow_clients(options.run, Path(name), options.seconds, options.rounds)
        refused = refusals(options.run, Path(name), options.seconds, min(3, options.rounds))
    body = {"surroundings": where, "seconds": options.seconds, "rounds": options.rounds}
    about = f"{GOOD} clients that ask {RATE} times a second, beside slow and too many others"
    result = {**body, "clients": slow, "refusal": refused}
    write_result(options.out, about, "python -m benchmarks.serve_slow_clients", result)


if __name__ == "__main__":
    main()

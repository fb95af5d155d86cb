"""Is a reader kept waiting while a bulk load runs, how fast is the load, and what do the logs cost?

    python -m benchmarks.serve_ingest [RUN] [--nodes 3000] [--out results/serve/ingest.json]

The load generator runs on the same machine as the service and shares its cores.
"""

import argparse
import random
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import uvloop

from benchmarks.serve_load import EDGES, Tally, bodies, client, phase
from benchmarks.serve_process import Server, serving, surroundings, write_result
from graphsage.inference.model import load
from graphsage.inference.run_data import open_training_data
from graphsage.serving.client import Client, Ingested, Node

ROUNDS = 3


def lines(run: Path, nodes: int) -> Iterator[Node]:
    """New nodes made of other nodes' texts, with edges to random nodes."""
    data = open_training_data(load(run).about)
    draw = random.Random(1)
    ids = [str(data.graph.id_of(row)) for row in range(data.graph.num_nodes)]
    for number in range(nodes):
        row = draw.randrange(len(ids))
        attributes = {name: str(column[row]) for name, column in data.columns.items()}
        yield Node(f"bulk-{number}", attributes, edges=draw.sample(ids, EDGES))


def loading(server: Server, sent: list[Node], requests: list[bytes]) -> dict[str, Any]:
    """A bulk load, and one client that reads meanwhile."""
    done: list[Ingested] = []

    def load_all() -> None:
        with Client(f"http://{server.host}:{server.port}", timeout=600) as own:
            done.append(own.ingest(sent))

    async def read(tally: Tally) -> None:
        number = 0
        while thread.is_alive():
            await client(server, requests, tally, time.perf_counter() + 0.2, number, 0)
            number += 1

    thread, tally = threading.Thread(target=load_all), Tally(began=time.perf_counter())
    cpu = server.cpu
    thread.start()
    uvloop.run(read(tally))
    thread.join()
    tally.ended = time.perf_counter()
    said = tally.summary()
    del said["service_cpu_ms"]  # it includes the load's
    seconds = tally.ended - tally.began
    return {
        "lines": done[0].lines,
        "refused": done[0].refused,
        "changes": done[0].graph.sequence,
        "lines_per_second": round(done[0].nodes / seconds, 1),
        "service_cpu_ms_per_line": round(1000 * (server.cpu - cpu) / done[0].lines, 2),
        "reads": said,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, nargs="?", default=Path("demo-out/model"), help="folder of a trained model")
    parser.add_argument("--nodes", type=int, default=3_000, help="nodes of the bulk load")
    parser.add_argument("--seconds", type=float, default=4.0, help="length of each phase without a load")
    parser.add_argument("--out", type=Path, default=Path("results/serve/ingest.json"))
    options = parser.parse_args()
    where = surroundings()
    requests, sent = bodies(options.run, 1, 512), list(lines(options.run, options.nodes))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        logs = ("--access-log", str(folder / "access.jsonl"), "--audit-log", str(folder / "audit.jsonl"))
        with (
            serving(options.run, folder / "plain") as plain,
            serving(options.run, folder / "logged", *logs) as logged,
        ):
            costs: dict[str, list[dict[str, Any]]] = {"without_logs": [], "with_logs": []}
            for server in (plain, logged):
                uvloop.run(phase(server, requests, 1, 1.0))
            for _ in range(ROUNDS):
                for kind, server in zip(costs, (plain, logged), strict=True):
                    costs[kind].append(uvloop.run(phase(server, requests, 1, options.seconds)).summary())
        with serving(options.run, folder / "plain") as server:
            before = uvloop.run(phase(server, requests, 1, options.seconds)).summary()
            during = loading(server, sent, requests)
            server.process.kill()  # the index is being rebuilt, and its end would take long
            server.process.wait()
    about = f"reads: one new node with {EDGES} edges, not stored, one client; the load generator shares the machine"
    write_result(
        options.out,
        about,
        "python -m benchmarks.serve_ingest",
        {"surroundings": where, "reads_before": before, "load": during, **costs},
    )


if __name__ == "__main__":
    main()

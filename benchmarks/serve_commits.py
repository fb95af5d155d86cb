"""Is the service of this checkout slower than that of an older one? Both run, and short phases alternate between them.

    python -m benchmarks.serve_commits OLD OLD_RUN [RUN] [--seconds 2] [--rounds 12] [--out results/serve/commits.json]

OLD is a checkout of the older commit (`git worktree add --detach OLD COMMIT`), OLD_RUN a run that its `graphsage demo`
trained. RUN must have the same degree cap; for 52bbd43: `graphsage train setmm --max-degree 128 --cap symmetric`.
Each phase is measured as the ratio new / old of neighboring phases, so that other work on the machine meets both; a
number of the result is the median over the rounds. Processor time is the service's own.
"""

import argparse
import json
import statistics
import subprocess
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import uvloop

from benchmarks.serve_load import Tally, bodies, phase
from benchmarks.serve_process import ROOT, Server, quantiles, request_bytes, serving, surroundings, write_result

NAMES = ("old", "new")


@dataclass
class Row:
    """One kind of load. `requests` makes those of one round."""

    about: str
    clients: int
    requests: Callable[[int], list[bytes]]
    nodes: int = 1
    seen: dict[str, list[dict[str, float]]] = field(default_factory=lambda: {name: [] for name in NAMES})

    def measure(self, name: str, server: Server, number: int, seconds: float) -> None:
        tally = uvloop.run(phase(server, self.requests(number), self.clients, seconds))
        self.seen[name].append(numbers(tally, self.nodes))

    def summary(self) -> dict[str, Any]:
        said: dict[str, Any] = {"about": self.about}
        for what in self.seen["old"][0]:
            old, new = ([row[what] for row in self.seen[name]] for name in NAMES)
            ratios = [b / a for a, b in zip(old, new, strict=True) if a]
            said[what] = {
                "old": round(statistics.median(old), 3),
                "new": round(statistics.median(new), 3),
                "ratio": round(statistics.median(ratios), 3) if ratios else None,
            }
        return said


def numbers(tally: Tally, nodes: int) -> dict[str, float]:
    done = len(tally.accepted)
    times = quantiles(tally.accepted)
    return {
        "p50_ms": times["p50_ms"] or 0.0,
        "p99_ms": times["p99_ms"] or 0.0,
        "nodes_per_second": nodes * done / (tally.ended - tally.began),
        "cpu_ms_per_node": 1000 * tally.cpu / max(1, done * nodes),
        "errors": float(sum(tally.others.values()) + len(tally.rejected)),
    }


def writes(number: int, single: list[bytes]) -> list[bytes]:
    """Nodes to store, whose names no other round has."""
    made = []
    for place, request in enumerate(single):
        node = json.loads(request.partition(b"\r\n\r\n")[2])["nodes"][0]
        made.append(request_bytes("PUT", "/v1/nodes", {"nodes": [{**node, "id": f"stored-{number}-{place}"}]}))
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=Path, help="checkout of the older commit")
    parser.add_argument("old_run", type=Path, help="run of the older commit")
    parser.add_argument("run", type=Path, nargs="?", default=Path("demo-out/model"), help="run of this checkout")
    parser.add_argument("--seconds", type=float, default=2.0, help="length of each phase")
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--out", type=Path, default=Path("results/serve/commits.json"))
    options = parser.parse_args()
    where = surroundings()
    single, many = bodies(options.run, 1, 512), bodies(options.run, 32, 64)
    rows = {
        "one_client": Row("embed a new node with 10 edges, one client", 1, lambda _: single),
        "clients_32": Row("the same, 32 clients", 32, lambda _: single),
        "nodes_32_at_a_time": Row("32 nodes a request, 4 clients", 4, lambda _: many, 32),
        "writes": Row("store a new node with 10 edges, 4 clients", 4, lambda number: writes(number, single)),
    }
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        servers = {}
        for name, root, run in (("old", options.old.resolve(), options.old_run), ("new", ROOT, options.run)):
            graph = Path(folder) / f"graph-{name}"
            servers[name] = stack.enter_context(serving(run, graph, "--map", "pca", root=root))
        for server in servers.values():
            uvloop.run(phase(server, single, 4, 2.0))
        for row in rows.values():  # the writes last: their index rebuilds would slow the reads down
            for number in range(options.rounds):
                for name in NAMES if number % 2 == 0 else NAMES[::-1]:
                    row.measure(name, servers[name], number, options.seconds)
    commits = {
        name: subprocess.run(
            ["git", "-C", str(root), "rev-parse", "HEAD"], capture_output=True, text=True, check=True
        ).stdout.strip()
        for name, root in (("old", options.old), ("new", ROOT))
    }
    body = {"surroundings": where, "commits": commits, "seconds": options.seconds, "rounds": options.rounds}
    about = "two commits of the service, phases alternating; ratio is new / old, the median over the rounds"
    result = {**body, "rows": {name: row.summary() for name, row in rows.items()}}
    write_result(options.out, about, "python -m benchmarks.serve_commits", result)


if __name__ == "__main__":
    main()

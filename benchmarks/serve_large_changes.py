"""Do reads wait for a large change, and how long does a restart with large changes in the journal take?

    python -m benchmarks.serve_large_changes [--nodes 20000] [--changes 4] [--out results/serve/large-changes.json]

Each change adds 256 nodes with 500 edges each to random nodes, many more than the service takes in one request. A
thread reads meanwhile, a thousand times a second.
"""

import argparse
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.serve_process import surroundings, write_result
from graphsage.graph.build import from_edges
from graphsage.live.adjacency import Cap
from graphsage.live.change import Change, NodeChange
from graphsage.live.store import LiveGraph, create_store

NODES, EDGES, WIDTH, DEGREE = 256, 500, 16, 20


def change(number: int, ids: list[str], draw: np.random.Generator) -> Change:
    names = [f"new-{number}-{place}" for place in range(NODES)]
    nodes = tuple(NodeChange(name, draw.normal(size=WIDTH).astype(np.float32)) for name in names)
    picked = (draw.choice(len(ids), EDGES, replace=False).tolist() for _ in names)
    return Change(nodes, tuple((ids[row], name) for name, rows in zip(names, picked, strict=True) for row in rows))


def longest_wait(live: LiveGraph, stop: threading.Event, waits: list[float]) -> None:
    while not stop.is_set():
        began = time.perf_counter()
        with live.reading() as (overlay, _):
            overlay.adjacency.capped(5)
        waits.append(time.perf_counter() - began)
        time.sleep(0.001)


def measured(folder: Path, nodes: int, changes: int, kind: str) -> dict[str, Any]:
    draw = np.random.default_rng(0)
    pairs = draw.integers(0, nodes, (DEGREE // 2 * nodes, 2))
    ids = [f"n{row}" for row in range(nodes)]
    features = draw.normal(size=(nodes, WIDTH)).astype(np.float32)
    create_store(folder, from_edges(pairs[pairs[:, 0] != pairs[:, 1]], nodes, features=features, ids=ids))
    cap = Cap(128, kind, 1)
    waits: list[float] = []
    applied = []
    stop = threading.Event()
    with LiveGraph(folder, cap) as live:
        reader = threading.Thread(target=longest_wait, args=(live, stop, waits))
        reader.start()
        for number in range(changes):
            large = change(number, ids, draw)
            began = time.perf_counter()
            live.apply(large)
            applied.append(time.perf_counter() - began)
        stop.set()
        reader.join()
    began, cpu = time.perf_counter(), time.process_time()
    with LiveGraph(folder, cap):
        again = time.perf_counter() - began
    return {
        "changes": changes,
        "longest_read_ms": round(1000 * max(waits), 1),
        "apply_s": [round(each, 2) for each in applied],
        "reopen_s": round(again, 2),
        "reopen_cpu_s": round(time.process_time() - cpu, 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=20_000)
    parser.add_argument("--changes", type=int, default=4)
    parser.add_argument("--out", type=Path, default=Path("results/serve/large-changes.json"))
    options = parser.parse_args()
    where = surroundings()
    with tempfile.TemporaryDirectory() as name:
        caps = {
            kind: measured(Path(name) / kind, options.nodes, options.changes, kind) for kind in ("row", "symmetric")
        }
    about = f"changes of {NODES} nodes with {EDGES} edges each, on a graph of {options.nodes:,} nodes, by degree cap"
    write_result(options.out, about, "python -m benchmarks.serve_large_changes", {"surroundings": where, "caps": caps})


if __name__ == "__main__":
    main()

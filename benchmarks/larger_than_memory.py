"""Training from a feature table several times larger than the memory it may use, as a user who may make memory cgroups:
`PYTHONPATH=src python -m benchmarks.larger_than_memory --folder DISK`.

Makes a graph of communities with float16 features, once with its nodes shuffled and once community by community, and
trains on both within a memory cgroup, where the page cache counts. Writes
results/scale/larger-than-memory.json.
"""

import argparse
import json
import os
import platform
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.memory_cgroup import MemoryGroup, NoMemoryGroup
from benchmarks.node_order import InRuns, renumbered
from graphsage.execution.adam import Adam
from graphsage.execution.step import make_step
from graphsage.graph.graph import Graph
from graphsage.graph.paging import read_ahead
from graphsage.graph.split import TRAIN, Split
from graphsage.graph.storage import open_graph, open_splits, save_graph
from graphsage.training.config import Config
from graphsage.training.train import set_up

WAYS = (
    ("shuffled", 1, False, True),
    ("shuffled", 1, True, True),
    ("shuffled", 32, True, True),
    ("communities", 1, True, True),
    ("communities", 32, True, True),
    ("shuffled", 1, False, False),
)
"""Order of nodes, rows that stay together in a batch, read-ahead off, memory limited."""
DONE = "done"
COMMUNITY, DEGREE, INSIDE, CLASSES, CHUNK = 1000, 6, 0.8, 16, 20_000


def make(folder: Path, nodes: int, width: int) -> None:
    """Two folders: `shuffled`, as data comes, and `communities`, with the nodes of a community side by side: a better
    order than any that could be found from the edges. One that is there is kept."""
    generator = torch.Generator().manual_seed(0)
    community = torch.randint(max(1, nodes // COMMUNITY), (nodes,), generator=generator)
    members = torch.argsort(community, stable=True)
    sizes = torch.bincount(community)
    first = torch.cat([sizes.new_zeros(1), sizes.cumsum(0)])
    u = torch.randint(nodes, (nodes * DEGREE // 2,), generator=generator)
    v = torch.randint(nodes, u.shape, generator=generator)
    inside = torch.rand(len(u), generator=generator) < INSIDE
    here = community[u[inside]]
    v[inside] = members[first[here] + v[inside] % sizes[here]]
    graph = Graph.from_edges(torch.stack([u, v], 1), nodes, labels=community % CLASSES)
    noise = np.random.default_rng(0).standard_normal((CHUNK, width), dtype=np.float32).astype(np.float16)
    split = Split(torch.full((nodes,), TRAIN, dtype=torch.uint8))
    for name, rows in (("shuffled", torch.arange(nodes)), ("communities", members)):
        if (folder / name / DONE).exists():
            continue
        kept = graph if name == "shuffled" else renumbered(graph, rows)
        save_graph(kept.replace(features=torch.zeros(nodes, 1).half()), folder / name, {"given": split})
        table = np.lib.format.open_memmap(folder / name / "features.npy", "w+", np.float16, (nodes, width))
        for start in range(0, nodes, CHUNK):
            group = community[rows[start : start + CHUNK], None].numpy() % CLASSES
            table[start : start + CHUNK] = noise[: len(group)]  # the same for every chunk: what is measured is reading
            table[start : start + CHUNK] += group == np.arange(width) % CLASSES
        table.flush()
        del table
        (folder / name / DONE).touch()


def described(folder: Path) -> dict[str, Any]:
    graphs = {name: open_graph(folder / name) for name in ("shuffled", "communities")}
    features = graphs["shuffled"].features
    assert features is not None
    return {
        "nodes": len(features),
        "features": features.shape[1],
        "table_bytes": features.numel() * 2,
        "stored_edges": graphs["shuffled"].num_stored_edges,
        "community": COMMUNITY,
        "edges_inside_a_community": INSIDE,
        "median_distance_of_neighbors": {name: _gap(graph) for name, graph in graphs.items()},
    }


def _gap(graph: Graph) -> int:
    return int((graph.edge_rows - graph.indices).abs().median())


def forget(folder: Path) -> None:
    """Drop what the page cache holds of the files, so that every read begins at the disk."""
    for path in folder.iterdir():
        with path.open("rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def train(folder: Path, together: int, at_random: bool, batch: int, seconds: float, steps: int) -> dict[str, Any]:
    """Steps of training in this process, after a first one; how long, and how much was read."""
    graph, split = open_graph(folder), open_splits(folder)["given"]
    config = Config(batch_size=batch, sample_sizes=(10, 5), dim=64, max_degree=None, standardize=False).resolved()
    run = set_up(graph, split, config, torch.device("cpu"), {})
    run.objective.epochs = InRuns(**vars(run.objective.epochs), together=together)
    assert graph.features is not None
    read_ahead(graph.features, not at_random)
    step = make_step(run.objective, run.module, Adam(run.module, 0.01))
    run.module.train()
    step.run(0)
    begin, read, faults, done = time.monotonic(), _read_bytes(), _faults(), 1
    while done <= steps and time.monotonic() - begin < seconds:
        step.run(done)
        done += 1
    taken = time.monotonic() - begin
    count = done - 1
    loss = float(step.take_loss()) / done
    return {
        "steps": count,
        "steps_per_second": round(count / taken, 3),
        "targets_per_second": round(count * batch / taken, 1),
        "bytes_read_per_step": round((_read_bytes() - read) / count),
        "major_faults_per_step": round((_faults() - faults) / count, 1),
        "mean_loss": round(loss, 4),
    }


def _read_bytes() -> int:
    """Bytes that this process has made the disk deliver, page faults included."""
    lines = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return int(lines["read_bytes"])


def _faults() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_majflt


def in_group(group: MemoryGroup | None, words: list[str]) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.larger_than_memory", *words]
    enter = None if group is None else group.enter
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, preexec_fn=enter, check=False)
    if done.returncode:
        return {"failed": done.returncode}
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result if group is None else result | {"peak_bytes": group.peak()}


def sequential(path: Path) -> float:
    """Bytes a second that the disk delivers in order."""
    begin, total = time.monotonic(), 0
    with path.open("rb", buffering=0) as file:
        while chunk := file.read(1 << 24):
            total += len(chunk)
    return total / (time.monotonic() - begin)


def system_read_ahead(path: Path) -> int | None:
    """Kilobytes that the system reads ahead on the disk of `path`."""
    device = path.stat().st_dev
    block = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}").resolve()
    for place in (block, block.parent):  # a partition has its disk's
        if (place / "queue" / "read_ahead_kb").exists():
            return int((place / "queue" / "read_ahead_kb").read_text())
    return None


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--folder", type=Path, help="where the tables go, on the disk to be measured")
    options.add_argument("--nodes", type=int, default=1_000_000)
    options.add_argument("--width", type=int, default=768)
    options.add_argument("--limit", type=int, default=480 << 20, help="bytes of memory allowed")
    options.add_argument("--batch", type=int, default=64)
    options.add_argument("--seconds", type=float, default=20.0, help="for each way, at most")
    options.add_argument("--steps", type=int, default=300, help="for each way, at most")
    options.add_argument("--out", default="results/scale/larger-than-memory.json")
    options.add_argument("--resume", action="store_true", help="measure only what --out does not have yet")
    options.add_argument("--train", nargs=3, metavar=("FOLDER", "TOGETHER", "RANDOM"), help=argparse.SUPPRESS)
    asked = options.parse_args()
    if asked.train:
        folder, together, at_random = asked.train
        found = train(Path(folder), int(together), at_random == "1", asked.batch, asked.seconds, asked.steps)
        print(json.dumps(found))
        return 0
    if asked.folder is None:
        options.error("say where the tables may go: --folder DISK")
    try:
        group = MemoryGroup(asked.limit)
    except NoMemoryGroup as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    scratch = asked.folder / "larger-than-memory"
    scratch.mkdir(parents=True, exist_ok=True)
    try:
        print("making two tables", file=sys.stderr, flush=True)
        make(scratch, asked.nodes, asked.width)
        report = {
            "what": "training steps from a float16 table larger than the memory allowed, page cache included",
            "limit_bytes": asked.limit,
            "batch": asked.batch,
            "sample_sizes": [10, 5],
            **described(scratch),
            "system_read_ahead_kb": system_read_ahead(scratch),
            "hardware": {"cores": os.cpu_count(), "machine": platform.machine()},
            "torch": torch.__version__,
            "ways": [],
        }
        known = json.loads(Path(asked.out).read_text())["ways"] if asked.resume else []
        forget(scratch / "shuffled")
        report["disk_bytes_per_second_in_order"] = round(sequential(scratch / "shuffled" / "features.npy"))
        limits = ["--batch", str(asked.batch), "--seconds", str(asked.seconds), "--steps", str(asked.steps)]
        for name, together, no_read_ahead, limited in WAYS:
            if limited:
                forget(scratch / name)
            else:
                sequential(scratch / name / "features.npy")
            words = ["--train", str(scratch / name), str(together), str(int(no_read_ahead)), *limits]
            way = {"nodes": name, "together": together, "no_read_ahead": no_read_ahead, "limited": limited}
            before = next((old for old in known if way.items() <= old.items()), None)
            report["ways"].append(before or way | in_group(group if limited else None, words))
            print(json.dumps(report["ways"][-1]), file=sys.stderr, flush=True)
            write(report, Path(asked.out))
    finally:
        group.remove()
    shutil.rmtree(scratch)
    return 0


def write(report: dict[str, Any], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())

"""Training from a feature table several times larger than the memory it may use, as a user who may make memory cgroups:
`PYTHONPATH=src python -m benchmarks.larger_than_memory --folder DISK`.

Makes a graph with float16 features and trains on it within a memory cgroup, where the page cache counts: with the
system's read-ahead, without it, and without the limit. Writes results/scale/larger-than-memory.json.
"""

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.measured_process import forget, io_of
from graphsage.checksummed_json import read_checksummed
from graphsage.execution.adam import Adam
from graphsage.execution.step import make_step
from graphsage.experiments.record import write_result
from graphsage.graph.graph import Graph
from graphsage.graph.paging import read_ahead
from graphsage.graph.split import TRAIN, Split
from graphsage.graph.storage import open_graph, open_splits, save_graph, write_about
from graphsage.training.config import Config
from graphsage.training.train import set_up


class NoMemoryGroup(Exception):
    """This user may not limit memory here."""


class MemoryGroup:
    def __init__(self, limit: int) -> None:
        base, self.version = _own_group()
        self.path = base / f"graphsage-{os.getpid()}"
        try:
            self.path.mkdir()
            if self.version == 1:
                (self.path / "memory.limit_in_bytes").write_text(str(limit))
            else:
                (self.path / "memory.max").write_text(str(limit))
                (self.path / "memory.swap.max").write_text("0")
        except OSError as error:
            raise NoMemoryGroup(
                f"cannot limit memory with a cgroup below {base} ({error.strerror}); run as root or in "
                "a delegated cgroup (a ulimit does not count the page cache)"
            ) from error

    def enter(self) -> None:
        """Move the calling process in; for `preexec_fn`."""
        (self.path / "cgroup.procs").write_text(str(os.getpid()))

    def peak(self) -> int:
        """The most that was in use since this was asked last."""
        name = "memory.max_usage_in_bytes" if self.version == 1 else "memory.peak"
        peak = int((self.path / name).read_text())
        if self.version == 1:
            (self.path / name).write_text("0")
        return peak

    def remove(self) -> None:
        for _ in range(50):  # the last process may still be leaving
            try:
                self.path.rmdir()
                return
            except OSError:
                time.sleep(0.1)


def _own_group() -> tuple[Path, int]:
    mounts = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    groups = [line.split(":", 2) for line in Path("/proc/self/cgroup").read_text().splitlines()]
    for _, controllers, place in groups:
        if "memory" in controllers.split(","):
            mount = next(m[1] for m in mounts if m[2] == "cgroup" and "memory" in m[3].split(","))
            return Path(mount + place), 1
    for number, controllers, place in groups:
        if number == "0" and not controllers:
            mount = next((m[1] for m in mounts if m[2] == "cgroup2"), None)
            if mount is not None:
                return Path(mount + place), 2
    raise NoMemoryGroup("this system has no memory cgroups; there is nothing to measure with")


WAYS = ((False, True), (True, True), (False, False))
"""Read-ahead off, memory limited."""
DONE = "done"
DEGREE, CLASSES, CHUNK = 6, 16, 20_000


def make(folder: Path, nodes: int, width: int) -> None:
    """A graph folder with random edges. One that is there is kept."""
    if (folder / DONE).exists():
        return
    generator = torch.Generator().manual_seed(0)
    labels = torch.randint(CLASSES, (nodes,), generator=generator)
    edges = torch.randint(nodes, (nodes * DEGREE // 2, 2), generator=generator)
    graph = Graph.from_edges(edges, nodes, labels=labels, features=torch.zeros(nodes, 1).half())
    save_graph(graph, folder, {"given": Split(torch.full((nodes,), TRAIN, dtype=torch.uint8))})
    noise = np.random.default_rng(0).standard_normal((CHUNK, width), dtype=np.float32).astype(np.float16)
    table = np.lib.format.open_memmap(folder / "features.npy", "w+", np.float16, (nodes, width))
    for start in range(0, nodes, CHUNK):
        group = labels[start : start + CHUNK, None].numpy()
        table[start : start + CHUNK] = noise[: len(group)]  # the same for every chunk: what is measured is reading
        table[start : start + CHUNK] += group == np.arange(width) % CLASSES
    table.flush()
    about = read_checksummed(folder / "graph.json")
    write_about(folder, {key: about[key] for key in about if key not in ("format", "files")})
    (folder / DONE).touch()


def described(folder: Path) -> dict[str, Any]:
    graph = open_graph(folder)
    assert graph.features is not None
    return {
        "nodes": graph.num_nodes,
        "features": graph.num_features,
        "table_bytes": graph.features.numel() * 2,
        "stored_edges": graph.num_stored_edges,
    }


def train(folder: Path, at_random: bool, batch: int, seconds: float, steps: int) -> dict[str, Any]:
    """Steps of training in this process, after a first one; how long, and how much was read."""
    graph, split = open_graph(folder), open_splits(folder)["given"]
    config = Config(batch_size=batch, sample_sizes=(10, 5), dim=64, max_degree=None, standardize=False).resolved()
    run = set_up(graph, split, config, torch.device("cpu"), {})
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
    return io_of(os.getpid())["read_bytes"]


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
    options.add_argument("--folder", type=Path, help="where the table goes, on the disk to be measured")
    options.add_argument("--nodes", type=int, default=1_000_000)
    options.add_argument("--width", type=int, default=768)
    options.add_argument("--limit", type=int, default=480 << 20, help="bytes of memory allowed")
    options.add_argument("--batch", type=int, default=64)
    options.add_argument("--seconds", type=float, default=20.0, help="for each way, at most")
    options.add_argument("--steps", type=int, default=300, help="for each way, at most")
    options.add_argument("--out", type=Path, default=Path("results/scale/larger-than-memory.json"))
    options.add_argument("--resume", action="store_true", help="measure only what --out does not have yet")
    options.add_argument("--train", nargs=2, metavar=("FOLDER", "RANDOM"), help=argparse.SUPPRESS)
    asked = options.parse_args()
    if asked.train:
        folder, at_random = asked.train
        found = train(Path(folder), at_random == "1", asked.batch, asked.seconds, asked.steps)
        print(json.dumps(found))
        return 0
    if asked.folder is None:
        options.error("say where the table may go: --folder DISK")
    try:
        group = MemoryGroup(asked.limit)
    except NoMemoryGroup as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    scratch = asked.folder / "larger-than-memory"
    scratch.mkdir(parents=True, exist_ok=True)
    try:
        print("making the table", file=sys.stderr, flush=True)
        make(scratch, asked.nodes, asked.width)
        report = {
            "limit_bytes": asked.limit,
            "batch": asked.batch,
            "sample_sizes": [10, 5],
            **described(scratch),
            "system_read_ahead_kb": system_read_ahead(scratch),
            "ways": [],
        }
        known = json.loads(asked.out.read_text())["ways"] if asked.resume else []
        forget(scratch)
        report["disk_bytes_per_second_in_order"] = round(sequential(scratch / "features.npy"))
        limits = ["--batch", str(asked.batch), "--seconds", str(asked.seconds), "--steps", str(asked.steps)]
        for no_read_ahead, limited in WAYS:
            if limited:
                forget(scratch)
            else:
                sequential(scratch / "features.npy")
            words = ["--train", str(scratch), str(int(no_read_ahead)), *limits]
            way = {"no_read_ahead": no_read_ahead, "limited": limited}
            before = next((old for old in known if way.items() <= old.items()), None)
            report["ways"].append(before or way | in_group(group if limited else None, words))
            print(json.dumps(report["ways"][-1]), file=sys.stderr, flush=True)
            write_result(
                asked.out,
                "training steps from a float16 table larger than the memory allowed, page cache included",
                "python -m benchmarks.larger_than_memory --folder DISK",
                report,
            )
    finally:
        group.remove()
    shutil.rmtree(scratch)
    return 0


if __name__ == "__main__":
    sys.exit(main())

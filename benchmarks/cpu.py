"""Speed on a CPU beside the peers and the floor, interleaved in one run: `python -m benchmarks.cpu` (or `make bench`).

Peers run in environments of their own, whose interpreters --pyg and --dgl name (README.md tells how to make them). If
one is missing, its column is empty and the ratios that need it are not judged. Writes results/bench/cpu.json, and exits
1 if a target is missed.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.measured_process import Worker
from benchmarks.targets import judge
from benchmarks.workload import SHAPES, write
from graphsage.experiments.record import write_result
from graphsage.kernels.compiled.library import library

ROOT = Path(__file__).parents[1]
PEERS = ROOT / "build/peers"


@dataclass(frozen=True)
class Entry:
    """One contender at one task. `plain` is `ours` as on a machine without a C compiler."""

    who: str
    task: str


@dataclass(frozen=True)
class Group:
    """Entries that take turns. `each` is how many runs a turn has."""

    name: str
    shape: str
    entries: tuple[Entry, ...]
    each: int = 10


def _steps(aggregator: str, *peers: str) -> tuple[Entry, ...]:
    steppers = (Entry(who, f"step {aggregator}") for who in ("ours", "plain", *peers))
    return *steppers, Entry("floor", f"products {aggregator}")


GROUPS = (
    Group("mean", "reddit", (*_steps("mean", "pyg", "dgl"), Entry("floor", "gather"), Entry("dgl", "graphbolt mean"))),
    Group(
        "mean, half tables",
        "reddit",
        (Entry("ours", "step mean"), Entry("ours", "step mean float16"), Entry("ours", "step mean bfloat16")),
    ),
    Group("gcn", "reddit", (*_steps("gcn", "dgl"), Entry("floor", "gather"))),
    Group("pool", "reddit", _steps("pool", "pyg", "dgl"), 2),
    Group("lstm", "reddit", _steps("lstm", "pyg"), 1),
    Group("unsupervised", "reddit", (Entry("ours", "step mean unsupervised"),), 3),
    Group(
        "inference",
        "reddit",
        (
            Entry("ours", "inference mean"),
            Entry("pyg", "inference mean"),
            Entry("dgl", "inference mean"),
            Entry("floor", "gather inference"),
            Entry("floor", "products inference"),
        ),
        1,
    ),
    Group("sampling", "reddit", (Entry("ours", "sampling"), Entry("pyg", "sampling"), Entry("dgl", "sampling"))),
    Group("walks", "reddit", (Entry("ours", "walks"), Entry("pyg", "walks"), Entry("dgl", "walks"))),
    Group("build", "reddit", (Entry("ours", "build"), Entry("pyg", "build"), Entry("dgl", "build")), 1),
    Group("open a saved graph", "reddit", (Entry("ours", "open"), Entry("pyg", "open"), Entry("dgl", "open")), 1),
    Group(
        "CSV to graph, PPI-shaped", "ppi", (Entry("ours", "tables"), Entry("pyg", "tables"), Entry("dgl", "tables")), 1
    ),
    Group("mean, neighbors given", "reddit", (Entry("ours", "presampled mean"), Entry("pyg", "presampled mean"))),
    Group("PPI-shaped", "ppi", (*_steps("mean", "pyg", "dgl"), Entry("dgl", "graphbolt mean"))),
)


class Contender(Worker):
    """A process that runs one task when asked to."""

    def __init__(self, python: str, entry: Entry, folder: Path) -> None:
        environment = {**os.environ, "PYTHONPATH": f"src{os.pathsep}.", "OMP_NUM_THREADS": "2"}
        module = entry.who
        if entry.who == "plain":
            environment["GRAPHSAGE_COMPILE"], module = "0", "ours"
        words = ("-m", "benchmarks.contenders.serve", module, str(folder), entry.task)
        super().__init__([python, *words], environment, ROOT)
        self.seconds: list[float] = []
        self.peak = 0
        ready = self.answer()
        self.error = ready.get("error")
        self.versions: dict[str, str] = ready.get("versions", {})

    def turn(self, runs: int) -> None:
        answer = self.ask(runs)
        self.seconds += answer.get("seconds", [])
        self.peak = answer.get("peak", self.peak)
        self.error = answer.get("error")


def measure(
    group: Group, pythons: dict[str, str], folder: Path, rounds: int, versions: dict[str, dict[str, str]]
) -> dict[str, Any]:
    """Every entry's median seconds and peak bytes; entries take turns, so that noise meets all of them. `versions` is
    told each peer's libraries."""
    found: dict[str, Any] = {}
    running: dict[Entry, Contender] = {}
    for entry in group.entries:
        if entry.who not in pythons:
            continue
        contender = Contender(pythons[entry.who], entry, folder)
        if contender.error:
            found[f"{entry.who}: {entry.task}"] = {"error": contender.error}
            contender.stop()
        else:
            running[entry] = contender
            if entry.who in ("pyg", "dgl"):
                versions[entry.who] = contender.versions
    for _ in range(rounds):
        for contender in running.values():
            contender.turn(group.each)
    for entry, contender in running.items():
        contender.stop()
        if contender.error or not contender.seconds:
            found[f"{entry.who}: {entry.task}"] = {"error": contender.error or "no answer"}
            continue
        found[f"{entry.who}: {entry.task}"] = {
            "seconds": statistics.median(contender.seconds),
            "fastest": min(contender.seconds),
            "runs": len(contender.seconds),
            "peak_bytes": contender.peak,
        }
    return found


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--out", type=Path, default=Path("results/bench/cpu.json"))
    options.add_argument("--only", nargs="*", help="names of groups; all by default")
    options.add_argument("--pyg", default=PEERS / "pyg/bin/python", help="an interpreter with PyG and torch-sparse")
    options.add_argument("--dgl", default=PEERS / "dgl/bin/python", help="an interpreter with DGL")
    options.add_argument("--rounds", type=int, default=4)
    options.add_argument("--data", type=Path, help="keep the made graphs in this folder, or take them from it")
    asked = options.parse_args()
    pythons = dict.fromkeys(("ours", "plain", "floor"), sys.executable)
    pythons |= {who: str(path) for who in ("pyg", "dgl") if Path(path := getattr(asked, who)).exists()}
    results: dict[str, dict[str, Any]] = {}
    peers: dict[str, dict[str, str]] = {}
    if asked.only and asked.out.exists():
        earlier = json.loads(asked.out.read_text(encoding="utf-8"))
        results, peers = earlier["groups"], earlier.get("peers", {})
    versions: dict[str, dict[str, str]] = {}
    with tempfile.TemporaryDirectory() as temporary:
        root = asked.data or Path(temporary)
        for group in GROUPS:
            if asked.only and group.name not in asked.only:
                continue
            folder = root / group.shape
            if not folder.exists():
                write(folder, SHAPES[group.shape])
            results[group.name] = measure(group, pythons, folder, asked.rounds, versions)
            for key, value in results[group.name].items():
                told = value.get("error") or f"{value['seconds']:.4f} s, {value['peak_bytes'] / 1e9:.2f} GB"
                print(f"{group.name:18} {key:28} {told}", flush=True)
    compiler = library() is not None
    rows = judge(results, compiler)
    peers.update(versions)
    write_result(
        asked.out,
        "median seconds of one run (step, inference, sampling of 512 seeds, 100,000 walks), 2 threads",
        "make bench",
        {
            "compiler": compiler,
            "peers": peers,
            "groups": results,
            "targets": rows,
            "note": "PyG samples with torch-sparse, because its faster sampler pyg-lib is not on the package index",
        },
    )
    for row in rows:
        word = {None: "open" if row["measured"] is None else "", True: "ok", False: "missed"}[row["met"]]
        measured = "-" if row["measured"] is None else f"{row['measured']:.2f}"
        print(f"{word:7}{row['ratio']:42}{measured:>8}   {row['target']}")
    return 1 if any(row["met"] is False for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())

"""Speed and memory of two commits: `python -m benchmarks.two_commits OLD NEW [--gpu]`.

OLD and NEW are git revisions, or folders that contain `src/` (for a machine without the git history; `.` is the working
tree). Each row starts one process per commit, on the same data. The two take turns in the order old, new, new, old. A
row fails if NEW's median time is more than 5% above OLD's on a CPU or 3% on a GPU, or if its peak memory is higher.
"noisy" marks a row whose wall times vary too much to show a difference of that size, or were measured on a busy CPU; on
a CPU its processor seconds are judged instead. Writes results/bench/two-commits-{cpu,gpu}.json after every row, prints
a table and exits 1 if a row is slower, needs more memory, computes different results or fails.
"""

import argparse
import hashlib
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import Any

from benchmarks.commit_worker import ROWS, Row
from benchmarks.measured_process import Worker
from benchmarks.workload import REDDIT, Shape, write, write_tables
from graphsage.experiments.record import write_result
from graphsage.kernels.threads import cores

SIDES = ("old", "new")
SLOWER = {"cpu": 1.05, "cuda": 1.03}
"""The most that NEW may take, as a factor of OLD."""
MORE_MEMORY = {"cpu": 1.005, "cuda": 1.001}
"""The same for peak memory; two processes with the same code differed by up to 0.2% on a CPU."""
BUSY = 0.1  # share of the cores that other processes use, above which wall times are not comparable
MEDIAN_ERROR = 0.93  # standard error of a median, as a factor of the interquartile range / sqrt(n)
SAME_RESULT = 0.01  # relative: rounding in TF32 or bfloat16, not another computation


def judged(
    seconds: dict[str, list[float]],
    processor: dict[str, list[float]],
    memory: dict[str, dict[str, dict[str, int]]],
    checks: dict[str, float],
    device: str,
    others: float = 0.0,
) -> dict[str, Any]:
    """A row's medians, ratios, quartiles and verdict. The ratio that counts is the median over rounds of new / old:
    both halves of a round share the machine's state. If that is too noisy on a CPU, processor seconds decide.
    `others` is the share of the cores that other processes used."""
    ratios, processor_ratios = ratios_of(seconds), ratios_of(processor)
    medians = {side: statistics.median(seconds[side]) for side in SIDES}
    ratio, (first, third) = statistics.median(ratios), quartiles(ratios)
    error = MEDIAN_ERROR * (third - first) / len(ratios) ** 0.5
    grown = {phase: memory["new"][phase]["peak"] / max(memory["old"][phase]["peak"], 1) for phase in ("set_up", "runs")}
    bad = []
    noisy = 2 * error > SLOWER[device] - 1 or (device == "cpu" and others > BUSY)
    if (statistics.median(processor_ratios) if noisy and device == "cpu" else ratio) > SLOWER[device]:
        bad.append("slower")
    if noisy:
        bad.append("noisy")
    if max(grown.values()) > MORE_MEMORY[device]:
        bad.append("more memory")
    if abs(checks["new"] - checks["old"]) > SAME_RESULT * abs(checks["old"]):
        bad.append("different results")
    return {
        "old_seconds": medians["old"],
        "new_seconds": medians["new"],
        "old_quartiles": quartiles(seconds["old"]),
        "new_quartiles": quartiles(seconds["new"]),
        "ratio": ratio,
        "ratio_quartiles": [first, third],
        "ratio_error": error,
        "ratio_of_medians": medians["new"] / medians["old"],
        "processor_ratio": statistics.median(processor_ratios),
        "processor_ratio_quartiles": quartiles(processor_ratios),
        "rounds": len(ratios),
        "others_share": others,
        "old_memory": memory["old"],
        "new_memory": memory["new"],
        "memory_ratio": grown,
        "checks": checks,
        "verdict": ", ".join(bad) or "ok",
    }


def ratios_of(seconds: dict[str, list[float]]) -> list[float]:
    """new / old of each round."""
    return [new / old for old, new in zip(seconds["old"], seconds["new"], strict=True)]


def quartiles(values: Sequence[float]) -> list[float]:
    """First and third."""
    if len(values) < 2:
        return [values[0], values[0]]
    first, _, third = statistics.quantiles(values, n=4, method="inclusive")
    return [first, third]


COLUMNS = "{:36}{:>10}{:>10}{:>8}{:>16}{:>8}{:>9}{:>9}  {}"
HEADER = COLUMNS.format("row", "old ms", "new ms", "ratio", "quartiles", "CPU s", "old MB", "new MB", "verdict")


def line_of(name: str, row: dict[str, Any]) -> str:
    """One line of the printed table. Memory is the higher peak of set-up and runs."""
    if "error" in row:
        return f"{name:36}{row['error']}"
    times = (f"{row[f'{side}_seconds'] * 1e3:.3f}" for side in SIDES)
    spread = "-".join(f"{value:.3f}" for value in row["ratio_quartiles"])
    peaks = (f"{max(phase['peak'] for phase in row[f'{side}_memory'].values()) / 1e6:.0f}" for side in SIDES)
    ratios = f"{row['ratio']:.3f}", spread, f"{row['processor_ratio']:.3f}"
    return COLUMNS.format(name, *times, *ratios, *peaks, row["verdict"])


ROOT = Path(__file__).resolve().parents[1]
CLOCKS = ("wall", "processor")
SMALL = Shape(40_000, 50, 602, 41, 26_624)
"""Reddit's features and classes with fewer nodes and neighbors: inference over the whole graph takes about a second."""
EXACT_RESIDENT = {
    "MALLOC_MMAP_THRESHOLD_": "65536",
    "MALLOC_TRIM_THRESHOLD_": "65536",
    "MALLOC_ARENA_MAX": "1",
    "ARROW_DEFAULT_MEMORY_POOL": "system",
}
"""glibc returns freed memory to the system at once, and Arrow uses glibc. By default they keep some, at random."""


@contextmanager
def source_of(commit: str, side: str, work: Path) -> Iterator[dict[str, str]]:
    """The commit's `src` folder, with its identity. A revision is checked out in `work` for the length of the block."""
    if (Path(commit) / "src").is_dir():
        yield _identity(commit, Path(commit).resolve() / "src")
        return
    revision = _git("rev-parse", "--verify", f"{commit}^{{commit}}")
    folder = work / side
    _git("worktree", "add", "--detach", str(folder), revision)
    try:
        yield _identity(commit, folder / "src") | {"commit": revision}
    finally:
        _git("worktree", "remove", "--force", str(folder))


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"git {' '.join(words)}: {done.stderr.strip()}")
    return done.stdout.strip()


def _identity(name: str, source: Path) -> dict[str, str]:
    digest = hashlib.sha256()
    for path in sorted(p for p in source.rglob("*") if p.suffix in (".py", ".c", ".h")):
        digest.update(str(path.relative_to(source)).encode() + b"\0" + path.read_bytes())
    return {"name": name, "source": str(source), "sha256": digest.hexdigest()}


def _without_folder(identity: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in identity.items() if name != "source"}


class Commit(Worker):
    """A process that runs one row with one commit's source."""

    def __init__(self, source: str, row: Row, folder: Path, device: str, **variables: str) -> None:
        asked = json.dumps({"row": row.name, "folder": str(folder), "device": device})
        environment = os.environ | {"PYTHONPATH": f"{source}{os.pathsep}{ROOT}"} | variables
        environment.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # as the command line has it
        environment.setdefault("OMP_NUM_THREADS", str(cores()))
        self.source, self.ready = source, dict[str, Any]()
        super().__init__([sys.executable, "-m", "benchmarks.commit_worker", asked], environment, ROOT)

    def wait_until_ready(self) -> None:
        self.ready = self.answer()
        if not Path(self.ready["source"]).is_relative_to(self.source):
            raise RuntimeError(f"the worker imported {self.ready['source']} and not {self.source}")

    def answer(self) -> dict[str, Any]:
        answer = super().answer()
        if "error" in answer:
            raise RuntimeError(f"{self.source}: {answer['error']}")
        return answer


@contextmanager
def pair_of(
    sources: dict[str, str], row: Row, folder: Path, device: str, **variables: str
) -> Iterator[dict[str, Commit]]:
    """One worker per commit, both set up and warmed up."""
    workers: dict[str, Commit] = {}
    try:
        for side in SIDES:
            workers[side] = Commit(sources[side], row, folder, device, **variables)
        for worker in workers.values():
            worker.wait_until_ready()
        yield workers
    finally:
        for worker in workers.values():
            worker.stop()


def measure(row: Row, sources: dict[str, str], folder: Path, device: str, repeats: int, pairs: int) -> dict[str, Any]:
    """`repeats` rounds, spread over `pairs` pairs of processes: memory layout differs between processes and would
    otherwise bias one side for all rounds. Memory on a CPU is measured by another pair (see EXACT_RESIDENT)."""
    shares: list[float] = []
    times: dict[str, dict[str, list[float]]] = {clock: {side: [] for side in SIDES} for clock in CLOCKS}
    for pair in range(pairs):
        with pair_of(sources, row, folder, device) as workers:
            for _ in range(repeats * pair // pairs, repeats * (pair + 1) // pairs):
                begin, busy = time.monotonic(), busy_seconds()
                turns = [(side, workers[side].ask(row.each)) for side in (*SIDES, *SIDES[::-1]) * row.swaps]
                others = busy_seconds() - busy - sum(turn["processor"] * row.each for _, turn in turns)
                shares.append(others / (time.monotonic() - begin) / cores())
                for side, clock in product(SIDES, CLOCKS):
                    times[clock][side].append(statistics.fmean(t[clock] for who, t in turns if who == side))
            memory = {side: workers[side].ask("memory") for side in SIDES}
            ready = {side: workers[side].ready for side in SIDES}
    if device == "cpu":
        with pair_of(sources, row, folder, device, **EXACT_RESIDENT) as workers:
            memory = {side: workers[side].ask("memory") for side in SIDES}
    checks = {side: ready[side]["check"] for side in SIDES}
    return judged(times["wall"], times["processor"], memory, checks, device, statistics.median(shares)) | {
        "threads": ready["new"]["threads"],
        "seconds": times["wall"],
    }


def busy_seconds() -> float:
    """Processor seconds of all processes since the machine started; 0 on a system that does not count them."""
    try:
        user, nice, system, _, _, irq, softirq, steal = map(int, Path("/proc/stat").read_text().split()[1:9])
    except (OSError, ValueError):
        return 0.0
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("old", help="git revision, or folder that contains src/")
    options.add_argument("new", help="the same; . is the working tree")
    options.add_argument("--gpu", action="store_true", help="measure on the GPU, on Reddit's full shape")
    options.add_argument("--rows", nargs="+", default=[""], help="only rows whose name contains one of these words")
    options.add_argument("--repeats", type=int, default=20, help="rounds per row")
    options.add_argument("--pairs", type=int, help="process pairs per row; 2 on a CPU, 1 on a GPU")
    options.add_argument("--nodes", type=int, help="nodes of the generated graph, two thirds of them for training")
    options.add_argument("--out", type=Path)
    asked = options.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that checkouts are removed
    device, machine = ("cuda", "gpu") if asked.gpu else ("cpu", "cpu")
    out = asked.out or ROOT / f"results/bench/two-commits-{machine}.json"
    rows = [row for row in ROWS[device] if any(word in row.name for word in asked.rows)]
    if not rows:
        options.error(f"no row matches; rows are {', '.join(row.name for row in ROWS[device])}")
    shape = REDDIT if asked.gpu else SMALL
    if asked.nodes:
        shape = Shape(asked.nodes, shape.mean_degree, shape.features, shape.classes, asked.nodes * 2 // 3)
    results: dict[str, Any] = {}
    about = {"date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"), "load_before": round(os.getloadavg()[0], 2)}
    (ROOT / "build").mkdir(exist_ok=True)
    with (
        tempfile.TemporaryDirectory(prefix="two-commits-", dir=ROOT / "build") as temporary,
        source_of(asked.old, "old", Path(temporary)) as old,
        source_of(asked.new, "new", Path(temporary)) as new,
    ):
        folder = Path(temporary) / "data"
        write(folder, shape, self_loops=False)  # commits differ in how they count them for GCN
        if any(row.task == "read" for row in rows):
            write_tables(folder / "tables")
        print(HEADER, flush=True)
        for row in rows:
            begin = time.monotonic()
            try:
                found = measure(
                    row,
                    {"old": old["source"], "new": new["source"]},
                    folder,
                    device,
                    asked.repeats,
                    min(asked.pairs or (1 if asked.gpu else 2), asked.repeats),
                )
            except RuntimeError as error:
                found = {"error": str(error), "verdict": "failed"}
            results[row.name] = asdict(row) | found | {"wall_seconds": round(time.monotonic() - begin, 1)}
            print(line_of(row.name, found), flush=True)
            body = about | {
                "commits": {"old": _without_folder(old), "new": _without_folder(new)},
                "shape": asdict(shape),
                "limits": {"time": SLOWER[device], "memory": MORE_MEMORY[device]},
                "rows": results,
            }
            command = f"python -m benchmarks.two_commits {asked.old} {asked.new}{' --gpu' if asked.gpu else ''}"
            write_result(out, "time per run and peak memory of two commits that take turns", command, body)
    return int(any(row["verdict"] not in ("ok", "noisy") for row in results.values()))


if __name__ == "__main__":
    sys.exit(main())

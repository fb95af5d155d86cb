"""Debian's packages from two tables: settings chosen on validation, then five seeds beside logistic regressions.

python -m graphsage.experiments.debian sweep     FOLDER -> results/debian-sweep.json
python -m graphsage.experiments.debian final     FOLDER -> results/debian.json
python -m graphsage.experiments.debian baselines FOLDER -> results/debian-baselines.json
python -m graphsage.experiments.debian cost      FOLDER -> results/debian-cpu.json

FOLDER holds nodes.csv and edges.csv as `graphsage data build debian` writes them. The section of a package is learned
from its description and its relations. Settings are chosen by training on packages up to bookworm and validating on
those new in trixie; the final models train on packages up to trixie and are tested on those new in forky and sid.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from graphsage.baselines.features import logistic_scores
from graphsage.datasets.debian import RELEASES, debian_tables
from graphsage.experiments.choose import chosen, grid
from graphsage.experiments.record import write_result
from graphsage.experiments.scored import ScoreAll, rows, unfinished
from graphsage.training.score import Run, opened

EPOCHS = (3, 6)
POINTS = [{}, *grid([{"max_degree": None}], [{"lr": 0.01}, {"lr": 0.003}], [{}, {"head_scale": True, "dropout": 0.5}])]
"""The paper's settings, and four without its cap of 128 neighbors: Debian has packages that thousands depend on."""


def sweep(folder: Path, score_all: ScoreAll, device: str) -> dict[str, Any]:
    """Every point of the grid once, with one seed."""
    spec = debian_tables(folder, train_until="bookworm", val_until="trixie")
    longest = {"epochs": max(EPOCHS)}
    runs = [Run("sweep", spec, "time", {**point, **longest}, device, parts=()) for point in POINTS]
    return chosen(score_all(runs), EPOCHS)


def final(folder: Path, score_all: ScoreAll, device: str, seeds: int, best: dict[str, Any]) -> dict[str, Any]:
    """The chosen settings with `seeds` seeds."""
    spec = debian_tables(folder, train_until="trixie")
    name = "GraphSAGE-mean, chosen on validation"
    settings = [{**best, "seed": seed} for seed in range(seeds)]
    runs = [Run(name, spec, "time", one, device, parts=("test",)) for one in settings]
    return {"rows": rows(score_all(runs))}


def baselines(folder: Path) -> dict[str, Any]:
    return {"baselines": logistic_scores(*opened(debian_tables(folder, train_until="trixie"), "time"))}


def cost(folder: Path, best: dict[str, Any]) -> dict[str, Any]:
    """Wall time, processor time and peak memory from two CSV files to an evaluated model, nothing kept from before."""
    with tempfile.TemporaryDirectory() as scratch:
        run = Path(scratch) / "run"
        fresh = {**os.environ, "GRAPHSAGE_CACHE": str(Path(scratch) / "cache")}
        training = _measured(["-m", "graphsage", *whole_command(folder, best, run)[1:]], fresh)
        evaluation = _measured(["-m", "graphsage", "evaluate", str(run)], fresh)
        steps: float = json.loads((run / "config.json").read_text(encoding="utf-8"))["about"]["training"]["seconds"]
    return {
        "typed": [" ".join(whole_command(Path("FOLDER"), best, Path("run"))), "graphsage evaluate run"],
        "seconds": round(training[0] + evaluation[0], 1),
        "cpu_seconds": round(training[1] + evaluation[1], 1),
        "peak_gib": max(training[2], evaluation[2]),
        "reading_and_featurizing_seconds_at_most": round(training[0] - steps, 1),
    }


def whole_command(folder: Path, settings: dict[str, Any], out: Path) -> list[str]:
    """What a person types to train with these settings."""
    spec = debian_tables(folder, train_until="trixie")
    flags = ["--nodes", str(spec.nodes), "--edges", spec.edges, "--label", "section", "--text", "description",
             "--time", "release", "--edge-time", "release", "--time-order", ",".join(RELEASES),
             "--train-until", "trixie"]  # fmt: skip
    for name, value in settings.items():
        flag = f"--{name.replace('_', '-')}"
        flags += [flag] if value is True else [flag, "none" if value is None else str(value)]
    return ["graphsage", "train", *flags, "--out", str(out)]


def _measured(arguments: list[str], environment: dict[str, str]) -> tuple[float, float, float]:
    """Seconds on the wall, seconds of processors and peak GiB of a Python process."""
    began = time.monotonic()
    with subprocess.Popen([sys.executable, *arguments], env=environment) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(process.returncode)
    return round(time.monotonic() - began, 1), usage.ru_utime + usage.ru_stime, round(usage.ru_maxrss / 2**20, 2)


ABOUT = {
    "sweep": "Debian: one run for each point of the grid, trained on packages up to bookworm, ranked by micro-F1 on "
    "packages new in trixie",
    "final": "Debian: section of packages new in forky and sid, test micro-F1 (which is accuracy) of GraphSAGE-mean "
    "trained on packages up to trixie",
    "baselines": "Debian: test micro-F1 of logistic regressions on the same split and features",
    "cost": "Debian: wall time and peak memory of the whole command, from two CSV files to an evaluated model",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=list(ABOUT))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--results", type=Path, default=Path("results"), help="folder to write to")
    options = parser.parse_args()
    what, folder, results = options.what, options.folder, options.results
    if what == "baselines":
        _write(results / "debian-baselines.json", what, baselines(folder))
    elif what == "sweep":
        with unfinished(results / "debian-sweep.unfinished", options.jobs) as score_all:
            _write(results / "debian-sweep.json", what, sweep(folder, score_all, options.device))
    else:
        best = json.loads((results / "debian-sweep.json").read_text(encoding="utf-8"))["chosen"]
        if what == "cost":
            _write(results / "debian-cpu.json", what, cost(folder, best))
            return
        with unfinished(results / "debian.unfinished", options.jobs) as score_all:
            _write(results / "debian.json", what, final(folder, score_all, options.device, options.seeds, best))


def _write(path: Path, what: str, body: dict[str, Any]) -> None:
    write_result(path, ABOUT[what], f"python -m graphsage.experiments.debian {what} FOLDER", body)


if __name__ == "__main__":
    main()

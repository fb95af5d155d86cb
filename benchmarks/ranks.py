"""One rank and two train the same model: `PYTHONPATH=src python -m benchmarks.ranks --data setmm --data ppi=FOLDER`.

Runs `graphsage train` with and without --workers for each data set and seed, the same batch in total, and
`graphsage evaluate` on the test part. Writes results/scale/ranks.json, and exits 1 where a score differs by more than
`LIMIT`.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.numpy import load_file

LIMIT = 0.005  # seeds differ by about as much; ranks only round differently


def graphsage(*words: object) -> dict[str, Any]:
    command = [sys.executable, "-m", "graphsage", *map(str, words), "--json"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def one_run(data: str, workers: int, seed: int, epochs: int, folder: Path) -> dict[str, Any]:
    run = folder / f"{workers}-{seed}"
    trained = graphsage(
        "train", data, "--out", run, "--workers", workers, "--seed", seed, "--epochs", epochs, "--device", "cpu"
    )
    scored = graphsage("evaluate", run, "--device", "cpu")
    return {
        "workers": workers,
        "seed": seed,
        "steps": trained["steps"],
        "train_seconds": trained["seconds"],
        "val_micro_f1": trained["val_score"],
        "test_micro_f1": scored["micro_f1"],
    }


def difference(folder: Path, workers: int, seed: int) -> float:
    """The largest difference between weights, in parts of the largest weight."""
    one, several = (load_file(folder / f"{count}-{seed}" / "model.safetensors") for count in (1, workers))
    most = max(float(np.abs(value).max()) for name, value in one.items() if "weight" in name)
    return max(float(np.abs(value - several[name]).max()) for name, value in one.items() if "weight" in name) / most


def summary(name: str, epochs: int, workers: int, runs: list[dict[str, Any]], weights: list[float]) -> dict[str, Any]:
    scores = {count: [run["test_micro_f1"] for run in runs if run["workers"] == count] for count in (1, workers)}
    pairs = list(zip(scores[1], scores[workers], strict=True))
    return {
        "data": name,
        "epochs": epochs,
        "seeds": len(pairs),
        "runs": runs,
        "test_micro_f1_mean": {str(count): statistics.mean(values) for count, values in scores.items()},
        "largest_score_difference": max(abs(a - b) for a, b in pairs),
        "largest_weight_difference": max(weights),
    }


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--data", action="append", required=True, help="setmm, or NAME=FOLDER")
    options.add_argument("--workers", type=int, default=2)
    options.add_argument("--seeds", type=int, default=3)
    options.add_argument("--epochs", type=int, default=2)
    options.add_argument("--out", default="results/scale/ranks.json")
    asked = options.parse_args()
    report = {
        "what": "GraphSAGE-mean, the defaults, trained by one rank and by several; the same batch in total",
        "workers": asked.workers,
        "limit": LIMIT,
        "torch": torch.__version__,
        "hardware": {"cores": os.cpu_count(), "machine": platform.machine()},
    }
    places = {word.partition("=")[0]: word.partition("=")[2] or word for word in asked.data}
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in places}
    weights: dict[str, list[float]] = {name: [] for name in places}
    for seed in range(asked.seeds):  # written after every pair of runs: a table grows seed by seed
        for name, place in places.items():
            with tempfile.TemporaryDirectory() as scratch:
                for workers in (1, asked.workers):
                    runs[name].append(one_run(place, workers, seed, asked.epochs, Path(scratch)))
                    print(json.dumps({"data": name, **runs[name][-1]}), file=sys.stderr, flush=True)
                weights[name].append(difference(Path(scratch), asked.workers, seed))
            found = [
                summary(each, asked.epochs, asked.workers, runs[each], weights[each]) for each in runs if runs[each]
            ]
            path = Path(asked.out)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(report | {"data": found}, indent=1) + "\n", encoding="utf-8")
    return 1 if max(part["largest_score_difference"] for part in found) > LIMIT else 0


if __name__ == "__main__":
    sys.exit(main())

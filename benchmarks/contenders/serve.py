"""The common part of a contender: load the graph, set up one task, then run it as often as asked over a pipe.

    python -m benchmarks.contenders.MODULE FOLDER TASK

reads lines `N` from standard input, runs the task N times and answers one line of JSON: seconds, and peak memory.
Imports nothing but NumPy, so that it also runs in a peer's environment.
"""

import importlib.metadata
import json
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

LIBRARIES = ("torch", "torch_geometric", "torch_sparse", "torch_cluster", "dgl")
REST = 0.5  # until the threads of the contender before have stopped spinning
Task = Callable[[], object]


def load(folder: Path) -> dict[str, Any]:
    """The arrays that `benchmarks.cpu` wrote."""
    arrays: dict[str, Any] = {path.stem: np.load(path) for path in folder.glob("*.npy") if path.stem != "features"}
    arrays["features"] = np.load(folder / "features.npy")
    return arrays


def versions() -> dict[str, str]:
    """Of the libraries that are measured, as far as they are installed here."""
    found = {}
    for library in LIBRARIES:
        try:
            found[library] = importlib.metadata.version(library)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def serve(prepare: Callable[[dict[str, Any], str], Task]) -> None:
    """Answer until standard input ends. A task that cannot be set up answers its error."""
    answers = sys.stdout
    sys.stdout = sys.stderr  # what libraries print is not an answer
    try:
        task = prepare(load(Path(sys.argv[1])), sys.argv[2])
        task()
    except Exception as error:
        print(json.dumps({"error": f"{type(error).__name__}: {error}"[:300]}), file=answers, flush=True)
        return
    print(json.dumps({"ready": True, "versions": versions()}), file=answers, flush=True)
    for line in sys.stdin:
        time.sleep(REST)
        seconds = []
        for _ in range(int(line)):
            begin = time.perf_counter()
            task()
            seconds.append(time.perf_counter() - begin)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        print(json.dumps({"seconds": seconds, "peak": peak}), file=answers, flush=True)

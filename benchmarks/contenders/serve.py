"""The common part of a contender: load the graph, set up one task, then run it as often as asked over a pipe.

    python -m benchmarks.contenders.serve MODULE FOLDER TASK

reads lines `N` from standard input, runs the task N times and answers one line of JSON: seconds, and peak memory.
Needs nothing but NumPy, so that it also runs in a peer's environment.
"""

import importlib
import importlib.metadata
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measured_process import answering, high_water

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


def main() -> None:
    """Answer until standard input ends. A task that cannot be set up answers its error."""
    answer = answering()
    _, module, folder, task = sys.argv
    try:
        run = importlib.import_module(f"benchmarks.contenders.{module}").prepare(load(Path(folder)), task)
        run()
    except Exception as error:
        answer(error=f"{type(error).__name__}: {error}"[:300])
        return
    answer(ready=True, versions=versions())
    for line in sys.stdin:
        time.sleep(REST)
        seconds = []
        for _ in range(int(line)):
            begin = time.perf_counter()
            run()
            seconds.append(time.perf_counter() - begin)
        answer(seconds=seconds, peak=high_water(os.getpid()))


if __name__ == "__main__":
    main()

"""Two commits compute the same bits: all golden cases at both, on this machine, with C kernels and without.

    python -m benchmarks.same_bits OLD NEW [--threads 1]

OLD and NEW are commits, or folders with a `src`: `python -m benchmarks.same_bits main .` holds the working tree against
main. Each commit is checked out under build/, and the cases of THIS working tree (tests/golden) run against its `src`.
One line for each array that differs; the exit code is 1 if there is one. An intended difference goes into docs/log.md.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.two_commits import source_of

ROOT = Path(__file__).resolve().parents[1]
CASES = ROOT / "tests" / "golden" / "write_golden.py"
Arrays = dict[str, np.ndarray[Any, Any]]


def arrays_of(what: str, side: str, folder: Path, threads: int) -> Arrays:
    """All arrays of all cases, computed by the product at `what`."""
    out = folder / f"{side}.npz"
    with source_of(what, side, folder) as found:
        source = found["source"]
        limits = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(threads))
        command = [sys.executable, str(CASES), "--run", str(out), "--expect", source, "--threads", str(threads)]
        subprocess.run(command, env={**os.environ, **limits, "PYTHONPATH": source}, check=True)
    with np.load(out, allow_pickle=False) as file:
        return dict(file.items())


def difference(old: np.ndarray[Any, Any] | None, new: np.ndarray[Any, Any] | None) -> str | None:
    """What differs between two arrays, in words; None where all bits are the same."""
    if old is None or new is None:
        return "only in NEW" if old is None else "only in OLD"
    if (old.shape, old.dtype) != (new.shape, new.dtype):
        return f"{old.dtype}{old.shape} became {new.dtype}{new.shape}"
    if old.tobytes() == new.tobytes():
        return None
    apart = np.abs(new.astype(np.float64) - old.astype(np.float64))
    size = np.abs(old.astype(np.float64))
    relative = np.divide(apart, size, out=np.where(apart > 0, np.inf, 0.0), where=size > 0)
    return f"largest difference {apart.max():.3g}, relative {relative.max():.3g}, {(apart > 0).sum()} of {old.size}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--threads", type=int, default=1)
    asked = parser.parse_args()
    (ROOT / "build").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=ROOT / "build", prefix="same-bits-") as folder:
        old = arrays_of(asked.old, "old", Path(folder), asked.threads)
        new = arrays_of(asked.new, "new", Path(folder), asked.threads)
    said = {name: difference(old.get(name), new.get(name)) for name in sorted(old.keys() | new.keys())}
    differing = {name: words for name, words in said.items() if words is not None}
    for name, words in differing.items():
        print(f"{name}: {words}")
    print(f"{len(differing)} of {len(said)} arrays differ between {asked.old} and {asked.new}")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())

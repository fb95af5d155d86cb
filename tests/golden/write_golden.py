"""Write golden values anew, or those of this machine for `benchmarks.same_bits`.

    PYTHONPATH=src python tests/golden/write_golden.py --write            # tests/golden/golden.npz
    PYTHONPATH=src python tests/golden/write_golden.py --write-gpu OUT    # to be kept as tests/golden/golden_gpu.npz
    PYTHONPATH=src python tests/golden/write_golden.py --run OUT          # all cases, with C kernels and without

Writing is allowed where a change means to compute something else, and never to make a test pass. It goes into a commit
of its own, which lists the arrays that change; docs/log.md gets the cause. One thread, unless said otherwise.
"""

import argparse
from pathlib import Path

import numpy as np
import torch

import graphsage as gs
from golden_cases import CASES, GPU_CASES
from golden_trace import Trace, Tracer, kernels, traces

CPU_VALUES = Path(__file__).with_name("golden.npz")
GPU_VALUES = Path(__file__).with_name("golden_gpu.npz")


def save(path: Path, trace: Trace) -> None:
    with path.open("wb") as file:  # np.savez would add .npz to a name without it
        np.savez_compressed(file, **trace)
    print(f"{path}: {len(trace)} arrays, {path.stat().st_size:,} bytes, by {Path(gs.__file__).parent}")


def load(path: Path) -> Trace:
    with np.load(path, allow_pickle=False) as file:
        return dict(file.items())


def both_forms() -> Trace:
    """`compiled/case/array` and `torch/case/array`."""
    made: Trace = {}
    for form, fast in (("compiled", True), ("torch", False)):
        with kernels(fast):
            made |= {f"{form}/{name}": array for name, array in traces(CASES, Tracer.cpu).items()}
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--write", action="store_true", help="rewrite the stored values of the CPU")
    what.add_argument("--write-gpu", type=Path, metavar="OUT", help="write the values of this machine's GPU to OUT")
    what.add_argument("--run", type=Path, metavar="OUT", help="write all values of this machine to OUT")
    parser.add_argument("--expect", type=Path, metavar="SRC", help="refuse a product that does not lie in SRC")
    parser.add_argument("--threads", type=int, default=1)
    asked = parser.parse_args()
    if asked.expect is not None and not Path(gs.__file__).resolve().is_relative_to(asked.expect.resolve()):
        parser.error(f"graphsage is that of {gs.__file__}, not of {asked.expect}; check PYTHONPATH")
    torch.set_num_threads(asked.threads)
    if asked.write:
        save(CPU_VALUES, traces(CASES, Tracer.cpu))
    elif asked.write_gpu is not None:
        if not torch.cuda.is_available():
            parser.error("torch finds no GPU here; run this on a machine with one")
        save(asked.write_gpu, traces(GPU_CASES, Tracer.gpu))
    else:
        save(asked.run, both_forms())


if __name__ == "__main__":
    main()

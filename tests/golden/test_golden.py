"""The numbers are those that were stored before the core was rebuilt: losses, weights, and vectors by every path.

`write_golden.py` says when they may be written anew. `benchmarks.same_bits` holds two commits against each other bit
by bit, on one machine.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from golden_cases import AGGREGATORS, CASES, FORMS, GPU_CASES, TASKS, Case
from golden_trace import Trace, Tracer, kernels
from write_golden import CPU_VALUES, GPU_VALUES, load

RTOL = 1e-5  # processors add up in different orders
# Beside RTOL. The largest seen, with C kernels and without, torch held to SSE, AVX2 or AVX-512: 1e-7 and 7e-6.
ATOL_LEARNED = 2e-6  # of losses and weights, which are near 1: an entry near 0 is a difference of such
ATOL_VECTORS = 2e-5  # of entries of unit vectors: a short row, such as ReLU leaves, is made longer with its error
GPU_RTOL = 1e-4  # sums of a GPU's threads come in any order, and 20 steps of Adam carry their rounding on
GPU_ATOL = 1e-4
LIMIT_BYTES = 1_000_000


@pytest.fixture(scope="module")
def tracer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tracer]:
    made = Tracer(tmp_path_factory.mktemp("golden"))
    try:
        yield made
    finally:
        made.close()


@pytest.fixture(scope="module")
def stored() -> dict[str, Trace]:
    return by_case(load(CPU_VALUES))


def by_case(trace: Trace) -> dict[str, Trace]:
    made: dict[str, Trace] = {}
    for name, array in trace.items():
        case, _, what = name.partition("/")
        made.setdefault(case, {})[what] = array
    return made


def differences(found: Trace, expected: Trace, rtol: float, atol: dict[str, float]) -> list[str]:
    """One sentence for each array that is not as expected. `atol` is chosen by the first word of an array's name."""
    said = [f"{name} is {'missing' if name in expected else 'new'}" for name in found.keys() ^ expected.keys()]
    for name in expected.keys() & found.keys():
        a, b = found[name], expected[name]
        if a.shape != b.shape:
            said.append(f"{name} has shape {a.shape}, stored is {b.shape}")
        elif not np.allclose(a, b, rtol=rtol, atol=atol.get(name.split("-")[0], atol["vectors"])):
            said.append(f"{name} is off by {np.abs(a - b).max():.3g} at most")
    return sorted(said)


@pytest.mark.parametrize("fast", [True, False], ids=["compiled", "torch"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_case_gives_the_stored_numbers(case: Case, fast: bool, tracer: Tracer, stored: dict[str, Trace]) -> None:
    with kernels(fast):
        found = tracer.cpu(case)
    atol = {"losses": ATOL_LEARNED, "weight": ATOL_LEARNED, "vectors": ATOL_VECTORS}
    assert differences(found, stored[case.name], RTOL, atol) == []


def test_every_case_says_what_a_default_could_change() -> None:
    asked = {"form", "cap", "max_degree", "inference", "redraw", "lr", "steps", "seed"}
    assert [case.name for case in CASES if not asked <= case.settings.keys()] == []


def test_every_aggregator_form_and_task_is_stored_and_nothing_else(stored: dict[str, Trace]) -> None:
    assert {f"{a}-{f}-{t}" for a in AGGREGATORS for f in FORMS for t in TASKS} <= stored.keys()
    assert stored.keys() == {case.name for case in CASES}
    assert all(np.isfinite(array).all() for trace in stored.values() for array in trace.values())


def test_stored_vectors_of_the_service_are_those_of_the_model(stored: dict[str, Trace]) -> None:
    for case in CASES:
        if not case.known_only:
            trace = stored[case.name]
            own = trace[f"{case.settings['inference']}-known"]
            np.testing.assert_allclose(trace["served-known"], own, rtol=RTOL, atol=ATOL_VECTORS)


def test_stored_numbers_are_few() -> None:
    assert sum(path.stat().st_size for path in Path(__file__).parent.glob("*.npz")) < LIMIT_BYTES


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="torch finds no GPU")
@pytest.mark.skipif(not GPU_VALUES.exists(), reason="no values of a GPU are stored; see write_golden.py --write-gpu")
@pytest.mark.parametrize("case", GPU_CASES, ids=lambda case: case.name)
def test_a_case_gives_the_stored_numbers_on_a_gpu(case: Case, tracer: Tracer) -> None:
    expected = by_case(load(GPU_VALUES))[case.name]
    assert differences(tracer.gpu(case), expected, GPU_RTOL, {"vectors": GPU_ATOL}) == []

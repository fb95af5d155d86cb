"""Memory of a measured process is its own, and answers are what `answering` writes."""

import os
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks.measured_process import Worker, graphsage, high_water

ROOT = Path(__file__).parents[2]
CHILD = """
import os, sys
from benchmarks.measured_process import answering, high_water
answer = answering()
print("noise"); os.write(1, b"more noise")
answer(peak=high_water(os.getpid()))
for line in sys.stdin:
    answer(echo=line.strip())
"""


@pytest.fixture
def held() -> int:
    """Bytes that this process holds while a child starts."""
    filled = np.ones(60_000_000)
    assert high_water(os.getpid()) > filled.nbytes
    return filled.nbytes


def test_the_peak_of_a_worker_does_not_begin_with_its_parents(held: int) -> None:
    worker = Worker([sys.executable, "-c", CHILD], {**os.environ, "PYTHONPATH": str(ROOT)})
    try:
        assert 1e6 < worker.answer()["peak"] < held / 4
        assert worker.ask("hello") == {"echo": "hello"}
    finally:
        worker.stop()


def test_a_worker_that_ends_answers_with_an_error() -> None:
    worker = Worker([sys.executable, "-c", ""], os.environ)
    assert "error" in worker.answer()
    worker.stop()


def test_the_peak_of_a_command_does_not_begin_with_its_parents(held: int) -> None:
    taken = graphsage("--version")
    assert taken.status == 0
    assert 1e6 < taken.peak_bytes < held / 2

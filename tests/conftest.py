"""Settings for every test: reproducible Hypothesis examples, one torch thread."""

import os
import sys

import pytest
from hypothesis import settings

# Read by torch when it is first imported, here or in a test's subprocess.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# No deadline: the first torch call of a process is slow. Derandomized: a run is green or red for everybody.
settings.register_profile("graphsage", deadline=None, derandomize=True, max_examples=40)
settings.load_profile("graphsage")


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Hold torch to one thread, without importing it for tests that do not need it."""
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(1)

"""The CPU benchmark's processes: what libraries print is no answer."""

import sys
from pathlib import Path

import pytest

from benchmarks.cpu import Contender, Entry
from benchmarks.workload import Shape, write

FAKE = """
import os
print("Setting the default backend to pytorch")
os.system("echo and so does the shell that it starts")
class sampling:
    random_walk = staticmethod(lambda graph, starts, length: print("walking"))
def graph(ends, num_nodes): pass
"""


@pytest.fixture
def python(tmp_path: Path) -> str:
    """An interpreter whose DGL prints to standard output on import and when it works, as DGL's first import does."""
    (tmp_path / "dgl").mkdir()
    (tmp_path / "dgl" / "__init__.py").write_text(FAKE)
    (tmp_path / "dgl" / "nn.py").write_text("")
    made = tmp_path / "python"
    made.write_text(f'#!/bin/sh\nPYTHONPATH="$PYTHONPATH:{tmp_path}" exec {sys.executable} "$@"\n')
    made.chmod(0o755)
    return str(made)


def test_a_library_that_prints_on_import_is_measured(python: str, tmp_path: Path) -> None:
    write(tmp_path / "data", Shape(200, 5, 4, 3, 100))
    contender = Contender(python, Entry("dgl", "walks"), tmp_path / "data")
    try:
        assert contender.error is None
        contender.turn(2)
    finally:
        contender.stop()
    assert len(contender.seconds) == 2
    assert contender.peak > 10e6


def test_a_missing_library_is_an_error_of_its_column_only(tmp_path: Path) -> None:
    write(tmp_path / "data", Shape(200, 5, 4, 3, 100))
    contender = Contender(sys.executable, Entry("dgl", "walks"), tmp_path / "data")
    contender.stop()
    assert contender.error is not None
    assert contender.error.startswith("ModuleNotFoundError")

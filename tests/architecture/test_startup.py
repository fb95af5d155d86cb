"""The command line answers at once, and training is small: nothing heavy is loaded before it is needed."""

import json
import subprocess
import sys

import pytest

HEAVY = {"torch", "sklearn", "scipy", "pyarrow", "matplotlib"}


@pytest.mark.parametrize(
    ("module", "needed"), [("graphsage", set()), ("graphsage.cli.main", set()), ("graphsage.training.train", {"torch"})]
)
def test_import_does_not_load_heavy_libraries(module: str, needed: set[str]) -> None:
    code = f"import json, sys, {module}; print(json.dumps(list(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stderr
    loaded = HEAVY & set(json.loads(run.stdout))
    assert loaded == needed, f"{module} loads {loaded}"

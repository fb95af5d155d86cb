"""The benchmark of a graph larger than memory, at a hundredth of its size."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_a_hundredth_of_the_large_graph_is_built_killed_and_resumed(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "benchmarks.larger_graph",
        tmp_path / "work",
        "--nodes",
        "100000",
        "--memory",
        "600MB",
        "--disk-bytes",
        "10000000",
        "--out",
        tmp_path / "result.json",
    ]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, cwd=ROOT, env=environment)
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "result.json").read_text())
    assert found["same_bytes_after_kill"] is True
    assert found["embed"]["sha256"] == found["resumed"]["sha256"]
    assert found["killed"]["status"] == -9
    assert 0.5 <= found["killed"]["share_done"] < 1
    assert found["resumed"]["blocks_kept"] == found["resumed"]["blocks_kept_untouched"]
    assert found["nodes"] == 100_000
    assert 1_990_000 < found["stored_edges"] <= 2_000_200
    assert 200_000_000 < found["peak_bytes"] < 600_000_000

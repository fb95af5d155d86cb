"""The committed results follow from the committed trials."""

import json
import shutil
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from graphsage.experiments.record import EXPERIMENTS
from graphsage.experiments.reproduce import open_session, reproduce
from graphsage.experiments.session import EXPERIMENT_TYPES
from graphsage.experiments.trial_runners import TYPES
from graphsage.training.trials import TrialStore, Unfinished

ROOT = Path(__file__).parents[2]
TRIALS = ROOT / "results" / "trials" / "full"
EXPORT = (ROOT / "../shared/data/export.py").resolve()


def test_every_committed_trial_can_be_used() -> None:
    """Its line is intact, and the code knows its type and its version, or a newer one."""
    names = [path.stem for path in sorted(TRIALS.glob("*.jsonl"))]
    assert names == sorted(EXPERIMENT_TYPES)
    for name in names:
        records = TrialStore(TRIALS).records(name)
        assert len(records) == len((TRIALS / f"{name}.jsonl").read_text().splitlines())
        assert all(1 <= record["version"] <= TYPES[record["type"]].version for record in records)
        assert {record["type"] for record in records} <= set(EXPERIMENT_TYPES[name])


def content(path: Path) -> dict[str, Any]:
    """A result without what belongs to the machine that put it together."""
    record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return {name: value for name, value in record.items() if name not in ("hardware", "versions", "sha256")}


@pytest.mark.slow
def test_the_results_are_rebuilt_without_training(tmp_path: Path) -> None:
    if not EXPORT.exists():
        pytest.skip("needs PPI and Debian")
    for name in ("ppi", "debian"):
        subprocess.run([sys.executable, EXPORT, name, tmp_path / name], check=True)
    out = tmp_path / "results"
    shutil.copytree(TRIALS, out / "trials" / "full")
    for name in EXPERIMENTS:
        shutil.copy(ROOT / "results" / f"{name}.json", out)
    data = ["setmm", f"ppi={tmp_path / 'ppi'}", f"debian={tmp_path / 'debian'}"]
    session = open_session(data, "full", out, minutes=0)
    old = any(json.loads((out / f"{name}.json").read_text())["old_protocol"] for name in EXPERIMENTS)
    with pytest.raises(Unfinished) if old else nullcontext():
        reproduce("all", session)
    assert session.trials.made == 0
    for name in EXPERIMENTS:
        assert content(out / f"{name}.json") == content(ROOT / "results" / f"{name}.json"), name

"""Short runs of the fault tests: `serve_crash`, `serve_damage` and `serve_fuzz`."""

import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.serve_damage import flips, journal_flips
from graphsage.live.faults import POINTS

ROOT = Path(__file__).parents[2]


def run(script: str, out: Path, *options: str) -> dict[str, Any]:
    command = [sys.executable, "-m", f"benchmarks.{script}", "--out", str(out), *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, cwd=ROOT)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    result: dict[str, Any] = json.loads(out.read_text())
    return result


def test_five_kills_and_fifty_damaged_journals_lose_nothing(tmp_path: Path) -> None:
    result = run("serve_crash", tmp_path / "crash.json", "--kills", "5", "--torn", "50", "--no-restart")
    assert result["kill_9"]["kills"] + result["kill_9_over_http"]["kills"] == 5
    assert result["kill_9"]["acknowledged"] > 30
    assert result["kill_9_over_http"]["acknowledged"] > 10
    assert {*result["every_step"]} == {*POINTS}
    assert result["damaged_journals"]["clean_prefix"] + result["damaged_journals"]["clear_refusal"] == 50


def test_fifty_cases_an_operation_never_fail(tmp_path: Path) -> None:
    pytest.importorskip("schemathesis")
    result = run("serve_fuzz", tmp_path / "fuzz.json", "--cases", "50")
    assert len(result["operations"]) >= 15
    assert result["cases"]["POST /v1/embed"] >= 45
    answered = [name for name, answers in result["operations"].items() if "200" in answers]
    assert len(answered) >= 3, result["operations"]  # what is generated is not all refused


def test_a_few_flipped_bits_are_refused_or_change_nothing(tmp_path: Path) -> None:
    found = flips(tmp_path / "flips", 8, random.Random(0))
    outcomes = {name for part in ("bundle", "live graph", "graph folder") for name in found[part]}
    assert outcomes <= {"refused", "refused in part", "same answers"}
    journal = journal_flips(tmp_path / "journal", 8, random.Random(0))
    assert journal.keys() <= {"flips", "acknowledged", "refused", "all changes"}

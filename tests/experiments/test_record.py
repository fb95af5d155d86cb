from pathlib import Path

import pytest
import torch

from graphsage.checksummed_json import read_checksummed
from graphsage.experiments.record import hardware, machine, spread, write_result
from graphsage.experiments.trial_runners import TYPES, machine_of


def test_spread_is_the_mean_and_the_sample_deviation() -> None:
    assert spread([0.5, 0.7]) == {"mean": 0.6, "std": 0.1414, "values": [0.5, 0.7]}
    assert spread([0.123456]) == {"mean": 0.1235, "std": 0.0, "values": [0.1235]}


def test_a_result_says_what_it_was_made_on(tmp_path: Path) -> None:
    path = tmp_path / "results" / "table.json"
    write_result(path, "about", "command", {"rows": [{"label": "a"}]})
    record = read_checksummed(path)
    assert record["rows"] == [{"label": "a"}]
    assert record["hardware"]["cores"] >= 1
    assert record["versions"]["torch"]


def test_a_gpu_that_stays_idle_is_not_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "H200")
    assert [hardware(device)["gpu"] for device in ("auto", "cuda", "cpu")] == ["H200", "H200", None]
    assert machine(hardware("cuda")) == "H200"
    assert machine(hardware("cuda", tf32=True)) == "H200, TF32"
    there = hardware("cuda", tf32=True) | {"cores": 16}
    made = {kind: machine_of({"hardware": there, "type": kind}) for kind in TYPES}
    idle = {"random", "features", "hop means", "smoothing", "deepwalk", "rotation"}
    rounded = {"graphsage", "timed step"}
    used = {kind: "H200, TF32" if kind in rounded else "H200" for kind in TYPES}
    assert made == {kind: "16 cores, no GPU" if kind in idle else used[kind] for kind in TYPES}

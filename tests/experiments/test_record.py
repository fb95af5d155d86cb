import json
from pathlib import Path

import pytest
import torch

from graphsage.experiments.kinds import KINDS
from graphsage.experiments.record import earlier_rows, hardware, machine, machine_of, rows, spread, write_result
from graphsage.training.score import Score


def test_spread_is_the_mean_and_the_sample_deviation() -> None:
    assert spread([0.5, 0.7]) == {"mean": 0.6, "std": 0.1414, "values": [0.5, 0.7]}
    assert spread([0.123456]) == {"mean": 0.1235, "std": 0.0, "values": [0.1235]}


def test_scores_of_one_label_share_a_row_and_unmeasured_numbers_are_left_out() -> None:
    scores = [
        Score("a", {"lr": 1, "seed": 0}, {"val": (0.1, 0.0), "test": (0.2, 0.3)}, {"test": 0.5}, (), 6.0, "cpu"),
        Score("a", {"lr": 1, "seed": 1}, {"val": (0.3, 0.0), "test": (0.4, 0.5)}, {"test": 0.7}, (), 8.0, "cpu"),
        Score("b", {"seed": 0}, {"val": (0.9, 0.8)}, {}, (), 1.0, "cpu"),
    ]
    first, second = rows(scores)
    assert (first["label"], first["settings"], first["seeds"]) == ("a", {"lr": 1}, [0, 1])
    assert first["test_micro_f1"]["mean"] == pytest.approx(0.3)
    assert first["sampled_test_micro_f1"]["values"] == [0.5, 0.7]
    assert first["test_macro_f1"]["values"] == [0.3, 0.5]
    assert second["val_micro_f1"]["mean"] == 0.9
    assert not {"test_micro_f1", "sampled_test_micro_f1"} & set(second)


def test_a_result_says_what_it_was_made_on_and_is_continued_only_there(tmp_path: Path) -> None:
    path = tmp_path / "results" / "table.json"
    assert earlier_rows(path) == []
    write_result(path, "about", "command", {"rows": [{"label": "a"}]})
    record = json.loads(path.read_text())
    assert record["hardware"]["cores"] >= 1
    assert record["versions"]["torch"]
    assert earlier_rows(path) == [{"label": "a"}]
    path.write_text(json.dumps({**record, "hardware": {"gpu": "another"}}))
    assert earlier_rows(path) == []


def test_a_gpu_that_stays_idle_is_not_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "H200")
    assert [hardware(device)["gpu"] for device in ("auto", "cuda", "cpu")] == ["H200", "H200", None]
    assert machine(hardware("cuda")) == "H200"
    assert machine(hardware("cuda", tf32=True)) == "H200, TF32"
    there = hardware("cuda", tf32=True) | {"cores": 16}
    made = {kind: machine_of({"hardware": there, "settings": {"kind": kind}}) for kind in KINDS}
    idle = {"random", "features", "deepwalk", "rotation"}
    rounded = {"graphsage", "timed step"}
    used = {kind: "H200, TF32" if kind in rounded else "H200" for kind in KINDS}
    assert made == {kind: "16 cores, no GPU" if kind in idle else used[kind] for kind in KINDS}

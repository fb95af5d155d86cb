"""`graphsage demo`, on a small stand-in for its data and, slowly, on the real one."""

from pathlib import Path

import numpy as np
import pyarrow.parquet
import pytest

from command_line import Command
from graphsage.cli.pictures import draw_map
from graphsage.datasets.dataset import Dataset

PNG = b"\x89PNG\r\n\x1a\n"


def test_the_demo_trains_compares_and_writes(graphsage: Command, texts: Dataset, tmp_path: Path) -> None:
    out = tmp_path / "demo"
    report = graphsage("demo", "--out", out, "--json").json
    assert set(report["micro_f1"]) == {"features", "features_and_neighbors", "graphsage"}
    assert min(report["micro_f1"].values()) > 0.8
    assert report["test_nodes"] == 18
    test = {texts.graph.id_of(row) for row in texts.split().nodes("test").tolist()}
    known = {texts.graph.id_of(row) for row in texts.split().nodes("train").tolist()}
    assert len(report["examples"]) == 3
    for example in report["examples"]:
        assert example["theorem"] in test
        cosines = [near["cosine"] for near in example["nearest"]]
        assert len(cosines) == 5
        assert cosines == sorted(cosines, reverse=True)
        assert {near["theorem"] for near in example["nearest"]} <= known
    for name in ("embeddings.parquet", "predictions.parquet"):
        ids = pyarrow.parquet.read_table(out / name)["id"].to_pylist()
        assert len(ids) == 36
        assert known.isdisjoint(ids)
    assert (out / "map.png").read_bytes().startswith(PNG)
    assert graphsage("evaluate", out / "model", "--json").json["micro_f1"] == report["micro_f1"]["graphsage"]


def test_the_demo_ends_with_three_commands_that_work(graphsage: Command, texts: Dataset, tmp_path: Path) -> None:
    out = tmp_path / "demo"
    lines = graphsage("demo", "--out", out).out.splitlines()
    assert lines[-4] == "try next"
    for line in lines[-3:-1]:
        program, *words = line.split()
        assert program == "graphsage"
        assert graphsage(*words).code == 0
    assert lines[-1].split()[:3] == ["graphsage", "train", "setmm"]


def test_a_map_can_be_drawn_of_one_class_and_of_many(tmp_path: Path) -> None:
    places = np.random.default_rng(0).normal(size=(200, 2))
    for name, classes in (("one", ["all"] * 200), ("many", [f"class {row % 40}" for row in range(200)])):
        draw_map(tmp_path / f"{name}.png", places, classes, title="A title", subtitle="and more")
        assert (tmp_path / f"{name}.png").read_bytes().startswith(PNG)


@pytest.mark.slow
def test_graphsage_beats_both_baselines_on_the_real_data(graphsage: Command, tmp_path: Path) -> None:
    f1 = graphsage("demo", "--out", tmp_path, "--json").json["micro_f1"]
    assert f1["features"] < f1["features_and_neighbors"] < f1["graphsage"]
    assert f1["graphsage"] > 0.94

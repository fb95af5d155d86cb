"""The benchmark of links writes each row once, and continues an earlier file."""

import json
from pathlib import Path

import pytest

from benchmarks import links
from graphsage.datasets.dataset import Dataset
from planted import planted_graph, planted_split

TINY = {"epochs": 1, "dim": 8, "sample_sizes": (4, 3), "dropout": 0.0, "patience": 2}


def test_rows_are_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = planted_graph()
    data = Dataset("planted", graph, {"given": planted_split(graph)}, "given")
    tasks = {
        "inside": links.Task(lambda _: (data, None), TINY),
        "new": links.Task(lambda _: (data, planted_split(graph)), {**links.NEW, **TINY}, new_nodes=True),
    }
    monkeypatch.setattr(links, "TASKS", tasks)
    links.opened.cache_clear()
    out = tmp_path / "links.json"
    words = ["links", str(tmp_path), "--out", str(out), "--device", "cpu"]
    monkeypatch.setattr("sys.argv", [*words, "--seeds", "0", "--methods", *links.YARDSTICKS, links.OURS])
    links.main()
    before = json.loads(out.read_text("utf-8"))["rows"]
    assert len(before) == 2 * 5
    monkeypatch.setattr("sys.argv", [*words, "--seeds", "0", "1"])
    links.main()
    after = json.loads(out.read_text("utf-8"))["rows"]
    assert after[:10] == before
    made = [(row["task"], row["method"], row["seed"]) for row in after]
    assert len(made) == len(set(made))
    assert ("inside", links.PYG, 1) in made
    assert ("new", links.PYG, 0) not in made  # it has no vectors of nodes without edges
    assert ("new", "popularity", 1) not in made  # as for seed 0
    assert all(0 <= row["test"]["mrr"] <= 1 for row in after)
    links.opened.cache_clear()

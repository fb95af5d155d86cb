"""Results that are made in pieces say all that was made, whichever piece came last."""

import json
from pathlib import Path
from typing import Any

import pytest

from graphsage.experiments.data import Source
from graphsage.experiments.pieces import joined
from graphsage.experiments.record import spread
from graphsage.experiments.reproduce import reproduce
from graphsage.experiments.rows import readings
from graphsage.experiments.table1_sections import drifts, settings
from graphsage.experiments.table1_sections import readings as sentence
from graphsage.graph.storage import save_graph
from graphsage.training.trials import Unfinished
from planted import planted_graph, planted_split
from reproduction import read, session


def mean_row(out: Path) -> dict[str, Any]:
    (row,) = (row for row in read(out, "table1")["rows"] if row.get("aggregator") == "mean")
    return dict(row)


def test_a_narrow_piece_of_table_1_does_not_replace_a_wide_one(sources: tuple[Source, ...], tmp_path: Path) -> None:
    out = tmp_path / "out"
    mean = {"only": ("supervised", "mean"), "walks": False}
    reproduce("table1", session(sources[:1], out, rates=(0.001,), **mean))
    row = mean_row(out)
    assert row["tried"] == {"rates": [0.001], "points": 1, "of": 2}
    assert row["command"].endswith("--seeds 1 --only supervised,paper,mean --rates 0.001")
    reproduce("table1", session(sources[:1], out, seeds=2, **mean))
    wide = mean_row(out)
    assert (wide["tried"]["rates"], wide["seeds"]) == ([0.01, 0.001], [0, 1])
    assert wide["command"].endswith("--seeds 2 --only supervised,paper,mean")
    reproduce("table1", session(sources[:1], out, rates=(0.001,), **mean))
    assert mean_row(out) == wide
    assert wide["made_on"][0]["trials"] == len(wide["swept"]) + 1
    table = settings(read(out, "table1")).tables[0]
    assert [cell for row in table.rows for cell in row if "2 of 2 points" in cell] == ["lr 0.01, 0.001 (2 of 2 points)"]


def test_a_sitting_that_is_over_writes_the_rows_that_there_are(sources: tuple[Source, ...], tmp_path: Path) -> None:
    out = tmp_path / "out"
    reproduce("table1", session(sources[:1], out, only=("supervised", "mean"), walks=False))
    made = read(out, "table1")["rows"]
    (out / "table1.json").unlink()
    with pytest.raises(Unfinished):
        reproduce("table1", session(sources[:1], out, minutes=0))
    assert read(out, "table1")["rows"] == made


@pytest.mark.parametrize("name", ["facts", "pooling", "depth"])
def test_another_data_set_is_put_beside_what_is_there(sources: tuple[Source, ...], tmp_path: Path, name: str) -> None:
    out = tmp_path / "out"
    part = "rows" if name == "facts" else "points"
    reproduce(name, session(sources[:1], out))
    first = read(out, name)
    reproduce(name, session(sources[1:], out))
    both = read(out, name)
    assert list(both["data"]) == ["one", "ppi"]
    assert [row for row in both[part] if row["data"] == "one"] == first[part]
    assert {row["data"] for row in both[part]} == {"one", "ppi"}
    graph = planted_graph(seed=5)
    save_graph(graph, tmp_path / "two", {"given": planted_split(graph)})
    reproduce(name, session((Source("one", str(tmp_path / "two")),), out))
    again = read(out, name)
    assert [row["data"] for row in again[part]].count("one") == len(first[part])
    assert again["data"]["one"]["digest"] != first["data"]["one"]["digest"]


def test_rows_of_other_settings_or_other_code_are_not_put_beside_these() -> None:
    body = {"profile": "full", "version": 2, "settings": {"sizes": (1, 2)}, "data": {"b": {"digest": "y"}},
            "rows": [{"data": "b"}]}  # fmt: skip
    earlier = json.loads(
        json.dumps({**body, "data": {"a": {"digest": "x"}}, "rows": [{"data": "a"}], "trials_on": ["elsewhere"]})
    )
    whole = joined(earlier, body, "rows", lambda row: row["data"])
    assert [row["data"] for row in whole["rows"]] == ["a", "b"]
    assert whole["trials_on"] == ["elsewhere"]
    for changed in ({"profile": "quick"}, {"version": 1}, {"settings": {"sizes": [2, 1]}}):
        found = joined({**earlier, **changed}, body, "rows", lambda row: row["data"])
        assert [row["data"] for row in found["rows"]] == ["b"]
        assert not found.get("trials_on")
    for digest, left in (("y", ["b", "b"]), ("z", ["b"])):  # other rows of the same data, or of other data of that name
        other = {**earlier, "data": {"b": {"digest": digest}}, "rows": [{"data": "b", "k": 1}]}
        found = joined(other, body, "rows", lambda row: (row["data"], row.get("k")))
        assert [row["data"] for row in found["rows"]] == left


def test_the_report_says_which_reading_of_the_unsupervised_rates_won() -> None:
    points = [{"lr": 2e-6, "val": 0.5}, {"lr": 2e-7, "val": 0.7}, {"lr": 1e-3, "val": 0.6}]
    found = readings(points, {"lr": 2e-7})
    assert found == {"won": "as printed", "val": {"as printed": 0.7, "times the batch size": 0.6}}
    rows = [{"data": "ppi", "aggregator": "gcn", "form": "paper", "readings": found},
            {"data": "ppi", "aggregator": "pool", "form": "paper", "readings": readings(points[2:], {"lr": 1e-3})},
            {"data": "ppi", "aggregator": "pool", "form": "paper"}]  # fmt: skip
    told = sentence({"rows": rows})
    assert told.endswith("ppi: as printed for gcn, only times the batch size was tried for pool.")
    assert "2e-06, 2e-07, 2e-08" in told
    assert sentence({"rows": rows[2:]}) == ""


def test_the_report_says_where_validation_and_test_nodes_differ() -> None:
    def row(data: str, val: float, test: float) -> dict[str, Any]:
        return {"data": data, "aggregator": "mean", "val_micro_f1": spread([val]), "test_micro_f1": spread([test])}

    rows = [row("moved", 0.75, 0.5), row("moved", 0.65, 0.4), row("same", 0.7, 0.65), {"data": "moved"}]
    told = drifts({"rows": rows})
    assert told.startswith("On moved GraphSAGE scores 0.70 on validation and 0.45 on test nodes")
    assert "same" not in told

"""Table 1 made by several commands, and DeepWalk's sweep."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from graphsage.baselines.deepwalk import CONTEXTS
from graphsage.experiments.data import Source
from graphsage.experiments.figures import walk_lines
from graphsage.experiments.record import merge_results, spread
from graphsage.experiments.report import drifts, settings
from graphsage.experiments.report import readings as sentence
from graphsage.experiments.reproduce import reproduce, start
from graphsage.experiments.session import Session
from graphsage.experiments.table1 import WALKS, chosen_walks, first_walks, readings, walk_row, walked
from graphsage.graph.storage import save_graph
from graphsage.training.trials import Result, Trial, Unfinished
from planted import planted_graph, planted_split
from reproduction import TINY, read, session


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
    body = {
        "profile": "full",
        "version": 2,
        "settings": {"sizes": (1, 2)},
        "data": {"b": {"digest": "y"}},
        "rows": [{"data": "b"}],
    }
    earlier = json.loads(
        json.dumps({**body, "data": {"a": {"digest": "x"}}, "rows": [{"data": "a"}], "trials_on": ["elsewhere"]})
    )
    whole = merge_results(earlier, body, "rows", lambda row: row["data"])
    assert [row["data"] for row in whole["rows"]] == ["a", "b"]
    assert whole["trials_on"] == ["elsewhere"]
    for changed in ({"profile": "quick"}, {"version": 1}, {"settings": {"sizes": [2, 1]}}):
        found = merge_results({**earlier, **changed}, body, "rows", lambda row: row["data"])
        assert [row["data"] for row in found["rows"]] == ["b"]
        assert not found.get("trials_on")
    for digest, left in (("y", ["b", "b"]), ("z", ["b"])):  # other rows of the same data, or of other data of that name
        other = {**earlier, "data": {"b": {"digest": digest}}, "rows": [{"data": "b", "k": 1}]}
        found = merge_results(other, body, "rows", lambda row: (row["data"], row.get("k")))
        assert [row["data"] for row in found["rows"]] == left


def test_the_report_says_which_reading_of_the_unsupervised_rates_won() -> None:
    points = [{"lr": 2e-6, "val": 0.5}, {"lr": 2e-7, "val": 0.7}, {"lr": 1e-3, "val": 0.6}]
    found = readings(points, {"lr": 2e-7})
    assert found == {"won": "as printed", "val": {"as printed": 0.7, "times the batch size": 0.6}}
    rows = [
        {"data": "ppi", "aggregator": "gcn", "form": "paper", "readings": found},
        {"data": "ppi", "aggregator": "pool", "form": "paper", "readings": readings(points[2:], {"lr": 1e-3})},
        {"data": "ppi", "aggregator": "pool", "form": "paper"},
    ]
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


def test_deepwalks_variant_is_chosen_on_validation_not_on_test(
    sources: tuple[Source, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def score(val: float) -> dict[str, float]:
        return {"val": val, "test": 1 - val, "test_macro": 1 - val, "seconds": 1.0}

    found = {f"{name} {c}": score(val) for name in WALKS for c, val in (("trained", 0.2), ("all", 0.9))}
    made = session(sources[:1], tmp_path)
    monkeypatch.setattr(made.trials, "evaluate", lambda trial: {"rows": found, **score(0.5)})
    made.trials.run(first_walks(made, sources[0]))
    rows = [walk_row(made, sources[0], name) for name in WALKS]
    assert [row and row["settings"]["contexts"] for row in rows] == ["all", "all"]


TWO_RATES = dataclasses.replace(TINY, seeds=2, noise_levels=(0.0, 1.0), deepwalk_rates=(0.2, 0.8))


def made_walks(trial: Trial) -> Result:
    """A DeepWalk whose high rate is best on true features, whose low one with noise; test scores say otherwise."""

    def score(wanted: bool, contexts: str) -> dict[str, float]:
        val = 0.5 * wanted + (0.1 if contexts == "all" else 0.0)
        return {"val": val, "test": 1 - val}

    high = trial.settings["lr"] == 0.8
    rows = {f"{name} {c}": score(high, c) for name in WALKS for c in CONTEXTS}
    if 1.0 in trial.settings["noises"]:
        rows |= {f"DeepWalk + features {c} noise 1.0": score(not high, c) for c in CONTEXTS}
    return {"rows": rows, "seconds": 1.0}


def test_deepwalks_settings_in_figure_3_are_chosen_on_validation_at_every_level_of_noise(
    sources: tuple[Source, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = start(sources[:1], TWO_RATES, tmp_path, device="cpu")
    monkeypatch.setattr(made.trials, "evaluate", made_walks)
    chosen = {
        name: [(cell["lr"], cell["contexts"], cell["values"]) for cell in line]
        for name, line in walk_lines(made).items()
    }
    high, low = (0.8, "all", [0.4, 0.4]), (0.2, "all", [0.4, 0.4])
    assert chosen == {"DeepWalk": [high, high], "DeepWalk + features": [high, low]}


def test_deepwalks_trials_serve_every_result_that_asks_for_no_more_than_they_hold(
    sources: tuple[Source, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which of the data sets is Figure 3's depends on those given: what was made without noise still counts."""
    true_features = [(name, 0.0) for name in WALKS]
    single, several = sources

    def opened_with(*given: Source, minutes: float | None = None) -> Session:
        made = start(given, TWO_RATES, tmp_path, device="cpu", minutes=minutes)
        monkeypatch.setattr(made.trials, "evaluate", made_walks)
        return made

    among = opened_with(several, single)  # Figure 3 would be made of the first
    among.trials.run(first_walks(among, single))
    among.trials.run(chosen_walks(among, single, true_features))
    alone = opened_with(single)
    alone.trials.run([*first_walks(alone, single), *chosen_walks(alone, single, true_features)])
    assert (among.trials.made, alone.trials.made) == (3, 0)

    with pytest.raises(Unfinished):
        walk_lines(opened_with(single, minutes=0))  # there is none with noise
    found = walked(opened_with(single), single, "DeepWalk")
    assert found is not None
    assert (found.chosen["lr"], list(found.runs), len(found.points)) == (0.8, [0, 1], 4)


def test_a_piece_without_deepwalk_makes_none_for_figure_3_and_keeps_what_is_there(
    sources: tuple[Source, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = start(sources[:1], TWO_RATES, tmp_path, device="cpu")
    monkeypatch.setattr(made.trials, "evaluate", made_walks)
    without = dataclasses.replace(made, walks=False)
    assert walk_lines(without) == {}
    assert made.trials.made == 0
    assert walk_lines(made) == walk_lines(without) != {}

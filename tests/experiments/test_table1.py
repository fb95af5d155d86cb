"""Table 1 made by several commands, and DeepWalk's sweep."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
import torch

from graphsage.baselines.deepwalk import CONTEXTS
from graphsage.experiments import trial_runners
from graphsage.experiments.data import Source, opened
from graphsage.experiments.figures import deepwalk_lines
from graphsage.experiments.record import merge_results
from graphsage.experiments.report import settings
from graphsage.experiments.report import table1 as table1_section
from graphsage.experiments.reproduce import reproduce, start
from graphsage.experiments.session import Session
from graphsage.experiments.table1 import (
    DEEPWALK,
    all_rows,
    chosen_deepwalk,
    deepwalk_row,
    first_deepwalk,
    reading,
    swept_deepwalk,
)
from graphsage.experiments.trial_runners import FIVE_PASSES
from graphsage.graph.storage import save_graph
from graphsage.training.trials import Result, Trial, Unfinished
from planted import planted_graph, planted_split
from reproduction import TINY, read, session


def mean_row(out: Path) -> dict[str, Any]:
    (row,) = (row for row in read(out, "table1")["rows"] if row.get("aggregator") == "mean")
    return dict(row)


def test_a_narrow_piece_of_table_1_does_not_replace_a_wide_one(sources: tuple[Source, ...], tmp_path: Path) -> None:
    out = tmp_path / "out"
    mean = {"only": ("supervised", "mean"), "deepwalk": False}
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
    reproduce("table1", session(sources[:1], out, only=("supervised", "mean"), deepwalk=False))
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


def test_a_rate_belongs_to_one_reading_of_the_paper() -> None:
    assert [reading(rate) for rate in (2e-7, 1e-3, 0.5)] == ["as printed", "times the batch size", None]


def test_deepwalks_variant_is_chosen_on_validation_not_on_test(
    sources: tuple[Source, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def score(val: float) -> dict[str, float]:
        return {"val": val, "test": 1 - val, "test_macro": 1 - val, "seconds": 1.0}

    found = {f"{name} {c}": score(val) for name in DEEPWALK for c, val in (("trained", 0.2), ("all", 0.9))}
    made = session(sources[:1], tmp_path)
    monkeypatch.setattr(made.trials, "evaluate", lambda trial: {"rows": found, **score(0.5)})
    made.trials.run(first_deepwalk(made, sources[0]))
    rows = [deepwalk_row(made, sources[0], name, "") for name in DEEPWALK]
    assert [row and row["settings"]["contexts"] for row in rows] == ["all", "all"]


TWO_RATES = dataclasses.replace(TINY, seeds=2, noise_levels=(0.0, 1.0), deepwalk_rates=(0.2, 0.8))


def made_walks(trial: Trial) -> Result:
    """A DeepWalk whose high rate is best on true features, whose low one with noise; test scores say otherwise."""

    def score(wanted: bool, contexts: str) -> dict[str, float]:
        val = 0.5 * wanted + (0.1 if contexts == "all" else 0.0)
        return {"val": val, "test": 1 - val}

    high = trial.settings["lr"] == 0.8
    rows = {f"{name} {c}": score(high, c) for name in DEEPWALK for c in CONTEXTS}
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
        for name, line in deepwalk_lines(made).items()
    }
    high, low = (0.8, "all", [0.4, 0.4]), (0.2, "all", [0.4, 0.4])
    assert chosen == {"DeepWalk": [high, high], "DeepWalk + features": [high, low]}


def test_deepwalks_trials_serve_every_result_that_asks_for_no_more_than_they_hold(
    sources: tuple[Source, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which of the data sets is Figure 3's depends on those given: what was made without noise still counts."""
    true_features = [(name, 0.0) for name in DEEPWALK]
    single, several = sources

    def opened_with(*given: Source, minutes: float | None = None) -> Session:
        made = start(given, TWO_RATES, tmp_path, device="cpu", minutes=minutes)
        monkeypatch.setattr(made.trials, "evaluate", made_walks)
        return made

    among = opened_with(several, single)  # Figure 3 would be made of the first
    among.trials.run(first_deepwalk(among, single))
    among.trials.run(chosen_deepwalk(among, single, true_features))
    alone = opened_with(single)
    alone.trials.run([*first_deepwalk(alone, single), *chosen_deepwalk(alone, single, true_features)])
    assert (among.trials.made, alone.trials.made) == (3, 0)

    with pytest.raises(Unfinished):
        deepwalk_lines(opened_with(single, minutes=0))  # there is none with noise
    found = swept_deepwalk(opened_with(single), single, "DeepWalk")
    assert found is not None
    assert (found.chosen["lr"], list(found.runs), len(found.points)) == (0.8, [0, 1], 4)


def test_a_piece_without_deepwalk_makes_none_for_figure_3_and_keeps_what_is_there(
    sources: tuple[Source, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = start(sources[:1], TWO_RATES, tmp_path, device="cpu")
    monkeypatch.setattr(made.trials, "evaluate", made_walks)
    without = dataclasses.replace(made, deepwalk=False)
    assert deepwalk_lines(without) == {}
    assert made.trials.made == 0
    assert deepwalk_lines(made) == deepwalk_lines(without) != {}


def test_deepwalks_online_step_of_five_passes_is_a_row_of_its_own(
    sources: tuple[Source, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def evaluate(trial: Trial) -> Result:
        one, five = ({"val": val, "test": val, "test_macro": val} for val in (0.4, 0.6))
        rows = {f"{name} {contexts}": one for name in DEEPWALK for contexts in CONTEXTS}
        return {"rows": rows | {f"{name}{FIVE_PASSES}": five for name in rows}, "val": 0.6, "seconds": 1.0}

    made = session(sources[:1], tmp_path)
    monkeypatch.setattr(made.trials, "evaluate", evaluate)
    made.trials.run(first_deepwalk(made, sources[0]))
    rows = {row["row"]: row["test_micro_f1"]["mean"] for row in all_rows(made, sources[0])}
    assert rows == {
        "DeepWalk": 0.4,
        "DeepWalk, five passes": 0.6,
        "DeepWalk + features": 0.4,
        "DeepWalk + features, five passes": 0.6,
    }


def test_a_row_of_old_trials_is_marked_until_they_are_made_again(sources: tuple[Source, ...], tmp_path: Path) -> None:
    """First the chosen setting with all seeds, then the sweep behind it."""
    out = tmp_path / "out"

    def made(minutes: float | None = None, **options: Any) -> dict[str, Any]:
        here = session(sources[:1], out, only=("supervised", "mean"), deepwalk=False, minutes=minutes, **options)
        try:
            reproduce("table1", here)
        except Unfinished:
            assert here.trials.made == 0
        return mean_row(out)

    type = trial_runners.TYPES["graphsage"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(trial_runners.TYPES, "graphsage", dataclasses.replace(type, version=1))
        first = made()
    assert "old_protocol" in (again := made(minutes=0))
    assert again["old_protocol"] == ["runs", "sweep"]
    assert again["test_micro_f1"] == first["test_micro_f1"]
    assert read(out, "table1")["old_protocol"] == {"graphsage": 2}
    cell = next(row for row in table1_section(read(out, "table1")).tables[1].rows if row[0] == "GraphSAGE-mean")[1]
    assert cell.endswith(", old protocol")
    assert made(rates=(first["settings"]["lr"],))["old_protocol"] == ["sweep"]
    assert "old_protocol" not in made()
    assert read(out, "table1")["old_protocol"] == {}


def test_unsupervised_models_have_a_row_beside_their_features(sources: tuple[Source, ...], tmp_path: Path) -> None:
    reproduce("table1", session(sources[:1], tmp_path, only=("unsupervised", "mean"), deepwalk=False))
    rows = {row["row"]: row for row in read(tmp_path, "table1")["rows"]}
    assert {"Hop means", "GCN smoothing", "GraphSAGE-mean", "GraphSAGE-mean + features"} <= set(rows)
    probed = {name for name, row in rows.items() if "tuned_test_micro_f1" in row}
    assert probed == set(rows) - {"Random"}
    assert "aggregator" not in rows["GraphSAGE-mean + features"]  # the signed-rank test compares models alone
    assert rows["GraphSAGE-mean"]["test_micro_f1"] != rows["GraphSAGE-mean + features"]["test_micro_f1"]


def test_a_row_of_deepwalk_counts_the_nodes_without_a_vector(sources: tuple[Source, ...], tmp_path: Path) -> None:
    graph = opened(sources[0]).graph
    lonely = int(opened(sources[0]).split.nodes("test")[0])
    keep = (graph.edge_rows != lonely) & (graph.indices != lonely)
    edges = torch.stack([graph.edge_rows[keep], graph.indices[keep].long()], dim=1)
    cut = graph.from_edges(edges, graph.num_nodes, features=graph.features, labels=graph.labels)
    save_graph(cut, tmp_path / "cut", {"given": planted_split(graph)})
    reproduce("table1", session((Source("cut", str(tmp_path / "cut")),), tmp_path / "out", only=("deepwalk",)))
    rows = {row["row"]: row for row in read(tmp_path / "out", "table1")["rows"]}
    isolated = int((cut.degrees == 0).sum())
    assert isolated >= 1
    assert rows["DeepWalk"]["without_vector"] >= isolated


def test_deepwalks_rates_are_compared_under_one_protocol(sources: tuple[Source, ...], tmp_path: Path) -> None:
    """Under the old one, scores were higher: a rate that was not made again must not win by that."""

    def made(version: int, rates: tuple[float, ...], val: dict[float, float]) -> Session:
        with pytest.MonkeyPatch.context() as patch:
            type = dataclasses.replace(trial_runners.TYPES["deepwalk"], version=version)
            patch.setitem(trial_runners.TYPES, "deepwalk", type)
            here = start(sources[:1], dataclasses.replace(TWO_RATES, deepwalk_rates=rates), tmp_path, device="cpu")

            def evaluate(trial: Trial) -> Result:
                score = {"val": val[trial.settings["lr"]], "test": 0.5}
                return {"rows": {f"{name} {c}": score for name in DEEPWALK for c in CONTEXTS}, "seconds": 1.0}

            patch.setattr(here.trials, "evaluate", evaluate)
            here.trials.run(first_deepwalk(here, sources[0]))
        return start(sources[:1], TWO_RATES, tmp_path, device="cpu")

    made(1, (0.2, 0.8), {0.2: 0.6, 0.8: 0.7})
    found = swept_deepwalk(made(2, (0.8,), {0.8: 0.4}), sources[0], "DeepWalk")
    assert found is not None
    assert (found.chosen["lr"], [point["val"] for point in found.points]) == (0.8, [0.6, 0.6, 0.7, 0.7])
    assert [record["version"] for record in found.runs.values()] == [2]
    found = swept_deepwalk(made(2, (0.2,), {0.2: 0.5}), sources[0], "DeepWalk")
    assert found is not None
    assert (found.chosen["lr"], [point["val"] for point in found.points]) == (0.2, [0.5, 0.5, 0.4, 0.4])

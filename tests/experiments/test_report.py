"""What the report says beside its scores: sampled inference, rows made in part, machines."""

from typing import Any

from graphsage.experiments.record import spread
from graphsage.experiments.report import probes, sampled, sections, table1, wilcoxon


def test_sampled_scores_stand_beside_the_exact_ones() -> None:
    row: dict[str, Any] = {
        "data": "d",
        "row": "GraphSAGE-mean",
        "aggregator": "mean",
        "task": "supervised",
        "form": "paper",
        "paper": {},
    }
    scores = {name: spread([0.7]) for name in ("val_micro_f1", "test_micro_f1", "test_macro_f1")}
    record = {
        "data": {"d": {"note": ""}},
        "rows": [row | scores | {"sampled_test_micro_f1": spread([0.6])}],
        "gains": [],
    }
    _, exact = table1(record).tables
    assert any("0.700" in cell for line in exact.rows for cell in line)
    (table,) = sampled(record).tables
    assert list(table.rows) == [("d", "GraphSAGE-mean", "0.600")]


def test_the_signed_rank_test_names_the_rows_it_was_made_of_in_part() -> None:
    record = {"rows": [], "check": [], "in_part": {"paper": [], "reference": ["d unsupervised GraphSAGE-LSTM"]}}
    assert "Rows of the reference form that were made in part: d unsupervised" in wilcoxon(record).text
    assert "paper form" not in wilcoxon(record).text


def test_a_figure_stands_beside_what_the_paper_says_and_the_time_of_its_trials() -> None:
    point = {"sample_size": 5, "lr": 0.01, "tried": [0.01, 0.001], "step_milliseconds": 2.0, "timed_on": "an abacus"}
    scores = {name: spread([0.5]) for name in ("test_micro_f1", "exact_test_micro_f1")}
    record = {
        "points": [point | scores],
        "paper": "so and so",
        "profile": "quick",
        "time": {"trials": 3, "trial_seconds": 240},
        "trials_on": ["an abacus"],
        "old_protocol": {"timed step": 1},
    }
    section, made_of = sections({"figure2b": record})
    assert section.text.endswith("; a step of 512 nodes timed on an abacus.")
    assert section.tables[0].rows[0][-1] == "current"
    (row,) = made_of.tables[0].rows
    assert row == ("figure2b", "quick", "3", "4", "1 timed step", "an abacus", "so and so")


def test_scores_of_an_old_protocol_are_marked_and_a_shift_to_rare_classes_is_shown() -> None:
    scores = {name: spread([0.7]) for name in ("val_micro_f1", "test_micro_f1", "test_macro_f1")}
    row = {"data": "d", "row": "GraphSAGE-mean", "aggregator": "mean", "task": "supervised", "paper": {}, **scores}
    rows = [
        row | {"form": "paper", "old_protocol": ["runs", "sweep"]},
        row | {"form": "reference", "old_protocol": ["sweep"], "test_micro_f1": spread([0.4])},
    ]
    about, table = table1({"data": {"d": {"note": "n", "rare_test_share": 0.4124}}, "rows": rows, "gains": []}).tables
    (found,) = (line for line in table.rows if line[0] == "GraphSAGE-mean")
    assert found[1:3] == ("0.700 (0.700), old protocol", "0.400 (0.700), sweep by the old protocol")
    assert list(about.rows) == [("d", "n", "41%", "0.70", "0.55")]


def test_both_probes_are_shown_for_every_row_that_has_one() -> None:
    row = {"data": "d", "row": "Raw features", "task": "both", "test_micro_f1": spread([0.47])}
    rows = [row, row | {"row": "Hop means", "tuned_test_micro_f1": spread([0.6])}, row | {"row": "Random"}]
    (table,) = probes({"rows": rows}).tables
    assert list(table.rows) == [
        ("d", "Raw features", "–", "0.470", "not made"),
        ("d", "Hop means", "–", "0.470", "0.600"),
    ]

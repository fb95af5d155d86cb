"""What the report says beside its scores: sampled inference, rows made in part, machines."""

from typing import Any

from graphsage.experiments.record import spread
from graphsage.experiments.report import sections, table1, wilcoxon


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
    exact, sampled = table1(record).tables
    assert any("0.700" in cell for line in exact.rows for cell in line)
    assert list(sampled.rows) == [("d", "GraphSAGE-mean", "0.600")]


def test_the_signed_rank_test_names_the_rows_it_was_made_of_in_part() -> None:
    record = {"rows": [], "check": [], "in_part": {"paper": [], "reference": ["d unsupervised GraphSAGE-LSTM"]}}
    assert "in the reference form also by rows that were made in part: d unsupervised" in wilcoxon(record).text
    assert "paper form" not in wilcoxon(record).text


def test_a_figure_stands_beside_what_the_paper_says_and_the_time_of_its_trials() -> None:
    point = {"sample_size": 5, "lr": 0.01, "tried": [0.01, 0.001], "step_milliseconds": 2.0, "timed_on": "an abacus"}
    scores = {name: spread([0.5]) for name in ("test_micro_f1", "exact_test_micro_f1")}
    record = {"points": [point | scores], "paper": "so and so", "time": {"trials": 3, "trial_seconds": 240}}
    (section,) = sections({"figure2b": record})
    assert section.text.endswith(
        "; a step of 512 nodes timed on an abacus. The paper: so and so. Made of 3 trials, 4 minutes in all."
    )

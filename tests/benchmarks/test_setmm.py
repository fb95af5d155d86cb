"""Settings chosen on validation, and rows of several seeds."""

import pytest

from benchmarks import setmm
from graphsage.training.score import Score


def score(settings: dict[str, object], *curve: float) -> Score:
    return Score(settings, {}, {}, curve, 1.0)


def test_the_best_mean_over_seeds_wins() -> None:
    scores = [score({"lr": 1, "seed": 0}, 0.9), score({"lr": 1, "seed": 1}, 0.1), score({"lr": 2, "seed": 0}, 0.6)]
    found = setmm.chosen(scores)
    assert found["chosen"] == {"lr": 2}
    assert found["points"] == [{"lr": 2, "val_micro_f1": 0.6}, {"lr": 1, "val_micro_f1": 0.5}]


def test_a_long_run_includes_shorter_ones() -> None:
    scores = [score({"lr": 1, "epochs": 3}, 0.1, 0.8, 0.3), score({"lr": 2, "epochs": 3}, 0.2, 0.4, 0.7)]
    found = setmm.chosen(scores, epochs=(2, 3))
    assert found["chosen"] == {"lr": 1, "epochs": 2}
    assert [point["val_micro_f1"] for point in found["points"]] == [0.8, 0.7, 0.4, 0.3]


def test_a_row_has_the_spread_of_what_was_measured() -> None:
    scores = [
        Score({"lr": 1, "seed": 0}, {"val": (0.1, 0.0), "test": (0.2, 0.3)}, {"test": 0.5}, (), 6.0),
        Score({"lr": 1, "seed": 1}, {"val": (0.3, 0.0), "test": (0.4, 0.5)}, {"test": 0.7}, (), 8.0),
    ]
    made = setmm.row("a", scores)
    assert (made["label"], made["settings"], made["seeds"]) == ("a", {"lr": 1}, [0, 1])
    assert made["test_micro_f1"]["mean"] == pytest.approx(0.3)
    assert made["sampled_test_micro_f1"]["values"] == [0.5, 0.7]
    assert made["test_macro_f1"]["values"] == [0.3, 0.5]
    other = setmm.row("b", [Score({"seed": 0}, {"val": (0.9, 0.8)}, {}, (), 1.0)])
    assert other["val_micro_f1"]["mean"] == 0.9
    assert not {"test_micro_f1", "sampled_test_micro_f1"} & set(other)

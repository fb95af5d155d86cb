"""Choosing settings on validation."""

from graphsage.experiments.choose import chosen, grid
from graphsage.training.score import Score


def score(settings: dict[str, object], *curve: float) -> Score:
    return Score("", settings, {}, {}, curve, 1.0, "cpu")


def test_a_grid_is_every_combination() -> None:
    assert grid([{"a": 1}, {"a": 2}], [{}, {"b": 3, "c": 4}]) == [
        {"a": 1}, {"a": 1, "b": 3, "c": 4}, {"a": 2}, {"a": 2, "b": 3, "c": 4}
    ]  # fmt: skip


def test_the_best_mean_over_seeds_wins() -> None:
    scores = [score({"lr": 1, "seed": 0}, 0.9), score({"lr": 1, "seed": 1}, 0.1), score({"lr": 2, "seed": 0}, 0.6)]
    found = chosen(scores)
    assert found["chosen"] == {"lr": 2}
    assert found["points"] == [{"lr": 2, "val_micro_f1": 0.6}, {"lr": 1, "val_micro_f1": 0.5}]


def test_a_long_run_tells_what_shorter_ones_reach() -> None:
    scores = [score({"lr": 1, "epochs": 3}, 0.1, 0.8, 0.3), score({"lr": 2, "epochs": 3}, 0.2, 0.4, 0.7)]
    found = chosen(scores, epochs=(2, 3))
    assert found["chosen"] == {"lr": 1, "epochs": 2}
    assert [point["val_micro_f1"] for point in found["points"]] == [0.8, 0.7, 0.4, 0.3]

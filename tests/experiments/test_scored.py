"""Runs on one data set, several at a time and in as many sittings as it takes."""

from pathlib import Path

import pytest

from graphsage.experiments import scored
from graphsage.experiments.scored import rows, unfinished
from graphsage.graph.storage import save_graph
from graphsage.training.score import Run, Score
from planted import SMALL, planted_graph, planted_split


@pytest.fixture
def runs(tmp_path: Path) -> list[Run]:
    graph = planted_graph()
    save_graph(graph, tmp_path / "graph", {"given": planted_split(graph)})
    settings = [{**SMALL, "sample_sizes": (3, 2), "epochs": 2, "seed": seed} for seed in (0, 1)]
    return [Run(f"seed {s['seed']}", str(tmp_path / "graph"), "given", s, "cpu") for s in settings]


@pytest.mark.parametrize("jobs", [1, 2])
def test_runs_are_scored_in_order_whatever_the_number_of_jobs(tmp_path: Path, runs: list[Run], jobs: int) -> None:
    with unfinished(tmp_path / "unfinished", jobs) as score_all:
        scores = score_all(runs)
    assert [score.label for score in scores] == ["seed 0", "seed 1"]
    assert [score.settings for score in scores] == [run.settings for run in runs]
    assert all(0 < score.exact["test"][0] <= 1 and score.train_seconds > 0 for score in scores)
    assert all(len(score.curve) == 2 and score.curve[-1] == score.exact["val"][0] for score in scores)
    assert not (tmp_path / "unfinished").exists()


def test_an_interrupted_experiment_goes_on_where_it_was(
    tmp_path: Path, runs: list[Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted() -> list[Score]:
        with unfinished(tmp_path / "unfinished") as score_all:
            first = score_all(runs[:1])
            raise KeyboardInterrupt
        return first

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    made: list[Run] = []
    before = scored.score
    monkeypatch.setattr(scored, "score", lambda run: made.append(run) or before(run))
    with unfinished(tmp_path / "unfinished") as score_all:
        scores = score_all(runs)
    assert made == runs[1:]
    assert scores[0].settings == runs[0].settings  # read from a file, tuples and all
    with unfinished(tmp_path / "unfinished") as score_all:
        score_all(runs[:1])
    assert made == [*runs[1:], runs[0]]  # a later experiment makes all again


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

import json
from pathlib import Path

import pytest

from graphsage.experiments import record
from graphsage.experiments.record import earlier_rows, read_journal, rows, score_all, spread, write_result
from graphsage.graph.storage import save_graph
from graphsage.training.score import Run, Score
from planted import SMALL, planted_graph, planted_split


def test_spread_is_the_mean_and_the_sample_deviation() -> None:
    assert spread([0.5, 0.7]) == {"mean": 0.6, "std": 0.1414, "values": [0.5, 0.7]}
    assert spread([0.123456]) == {"mean": 0.1235, "std": 0.0, "values": [0.1235]}


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


@pytest.mark.parametrize("jobs", [1, 2])
def test_runs_are_scored_in_order_whatever_the_number_of_jobs(tmp_path: Path, jobs: int) -> None:
    graph = planted_graph()
    save_graph(graph, tmp_path / "graph", {"given": planted_split(graph)})
    settings = [{**SMALL, "epochs": 2, "seed": seed} for seed in (0, 1)]
    runs = [Run(f"seed {s['seed']}", str(tmp_path / "graph"), "given", s, "cpu", 1) for s in settings]
    seen: list[int] = []
    scores = score_all(runs, jobs, lambda so_far: seen.append(len(so_far)))
    assert [score.label for score in scores] == ["seed 0", "seed 1"]
    assert seen == [1, 2]
    assert all(0 < score.exact["test"][0] <= 1 and score.train_seconds > 0 for score in scores)
    assert all(len(score.curve) == 2 and score.curve[-1] == score.exact["val"][0] for score in scores)


def test_a_result_says_what_it_was_made_on_and_is_continued_only_there(tmp_path: Path) -> None:
    path = tmp_path / "results" / "table.json"
    assert earlier_rows(path) == []
    write_result(path, "about", "command", {"rows": [{"label": "a"}]})
    record = json.loads(path.read_text())
    assert record["hardware"]["cores"] >= 1
    assert record["versions"]["torch"]
    assert earlier_rows(path) == [{"label": "a"}]
    path.write_text(json.dumps({**record, "hardware": {"gpu": "another"}}))
    assert earlier_rows(path) == []


def test_an_interrupted_experiment_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = planted_graph()
    save_graph(graph, tmp_path / "graph", {"given": planted_split(graph)})
    runs = [Run("a", str(tmp_path / "graph"), "given", {**SMALL, "seed": seed}, "cpu", 1) for seed in (0, 1)]
    journal = tmp_path / "journal"
    first = score_all(runs[:1], journal=journal)
    assert read_journal(journal) == first
    made: list[Run] = []
    monkeypatch.setattr(record, "score", lambda run: made.append(run) or first[0])
    assert score_all(runs, journal=journal) == [first[0], first[0]]
    assert made == runs[1:]

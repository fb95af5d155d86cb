"""Numbers to predict, from two tables to files of predictions."""

import csv
import random
from pathlib import Path

import pytest

from command_line import Command
from graphsage.cli.main import main
from small_tables import SMALL, N, edge_rows, node_rows, write_csv

HEADER = ("id", "size", "price", "area", "name")
TASK = ("--task", "regression", "--numeric", "size", *SMALL, "--epochs", "2")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, draw = tmp_path_factory.mktemp("tables"), random.Random(0)
    rows = []
    for i, (name, *_) in enumerate(node_rows()):
        size = draw.gauss(0, 1)
        price = "" if i == 3 else 1000 + 100 * size + 200 * (i % 3)
        rows.append([name, size, price, round(size, 3), f"home {i}"])
    write_csv(folder / "nodes.csv", HEADER, rows)
    write_csv(folder / "edges.csv", ("source", "target"), edge_rows())
    return folder


def tables(folder: Path) -> tuple[str, ...]:
    return ("--nodes", str(folder / "nodes.csv"), "--edges", str(folder / "edges.csv"))


@pytest.fixture(scope="module")
def run(folder: Path) -> Path:
    words = ("train", *tables(folder), "--label", "price,area", *TASK, "--out", str(folder / "run"))
    assert main(list(words)) == 0
    return folder / "run"


def test_training_says_what_it_learns(folder: Path, graphsage: Command, tmp_path: Path) -> None:
    words = (*tables(folder), "--label", "price", *TASK, "--loss", "huber", "--metric", "rmse", "--out", tmp_path / "r")
    answer = graphsage("train", *words)
    assert answer.code == 0
    assert "target  price: mean 1" in answer.err
    assert "unknown for 1 nodes, which are not trained on or scored" in answer.err
    assert "val RMSE" in answer.err
    assert "validation RMSE" in answer.out
    assert graphsage("train", "--resume", "--out", tmp_path / "r", "--epochs", "3").code == 0


def test_evaluation_is_beside_yardsticks_for_each_target(run: Path, graphsage: Command) -> None:
    found = graphsage("evaluate", run, "--json").json
    names = ["mean of the training targets", "ridge on features", "ridge on features + 2 hops of neighbor means"]
    assert list(found["yardsticks"]) == names
    assert list(found["targets"]) == ["price", "area"]
    each = [found["targets"][name]["mae"] for name in ("price", "area")]
    assert found["mae"] == pytest.approx(sum(each) / 2)
    assert found["yardsticks"]["ridge on features"]["targets"]["area"]["r2"] > 0.99
    shown = graphsage("evaluate", run).out
    assert [line.split()[0] for line in shown.splitlines() if line.endswith("R2")] == ["price", "area"]


def test_predictions_and_embeddings_are_written_in_the_units_of_the_columns(run: Path, graphsage: Command) -> None:
    out = run.parent / "p.csv"
    answer = graphsage("predict", run, "--out", out, "--json")
    assert answer.json["targets"] == 2
    with out.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["id", "predicted_price", "predicted_area"]
    assert len(rows) == N
    assert 700 < sum(float(row["predicted_price"]) for row in rows) / N < 1700
    out = run.parent / "z.csv"
    assert graphsage("embed", run, "--out", out, "--with-label", "--with-prediction").code == 0
    with out.open(newline="") as file:
        again = list(csv.DictReader(file))
    assert [float(row["prediction_1"]) for row in again] == [float(row["predicted_area"]) for row in rows]
    assert again[3]["label_0"] in ("", "nan")
    assert float(again[4]["label_0"]) > 0
    assert graphsage("plot", run, "--out", run.parent / "map.png").code == 0
    assert graphsage("search", run, "node-1").code == 0


def test_info_describes_targets(run: Path, graphsage: Command) -> None:
    assert "targets       2 (price, area)" in graphsage("info", run).out
    assert graphsage("info", run, "--json").json["regression"] is True
    graph = graphsage("info", run / "data" / "graph")
    assert "target  price: mean" in graph.out
    assert graphsage("info", run / "data" / "graph", "--json").json["targets"][0]["unknown"] == 1


def test_a_sweep_chooses_by_the_error(folder: Path, graphsage: Command, tmp_path: Path) -> None:
    (tmp_path / "space.toml").write_text(
        'task = "regression"\nmetric = "mae"\nepochs = 1\ndim = 8\nsample_sizes = [4]\n[space]\nlr = [0.01, 0.02]\n'
        f'[data]\nnodes = "{folder / "nodes.csv"}"\nedges = "{folder / "edges.csv"}"\nlabel = "price"\n'
        'numeric = ["size"]\n'
    )
    words = ("--space", tmp_path / "space.toml", "--trials", 2, "--out", tmp_path / "s", "--sampler", "grid")
    answer = graphsage("sweep", *words, "--json")
    assert answer.code == 0
    winner = answer.json["winner"]
    assert winner["val"]["mean"] == pytest.approx(winner["val_score"], rel=1e-3)
    assert winner["test"]["mean"] > 10
    assert graphsage("train", "--config", tmp_path / "s" / "best.toml", "--out", tmp_path / "run").code == 0


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--label", "price"), "to predict numbers give --task regression"),
        (("--label", "name", "--task", "regression"), "row 2 is 'home 0', not a number; regression predicts columns"),
        (("--label", "price,rent", "--task", "regression"), "rent"),
        (("--label", "price", "--task", "regression", "--label-type", "class"), "--task regression does not learn"),
        (("--label", "price", "--label-type", "number"), "use --task regression"),
        (("--label", "price", "--task", "regression", "--metric", "auc"), "use one of r2, rmse, mae"),
        (("--label", "price", "--task", "regression", "--numeric", "price"), "is the label; it cannot be a feature"),
        (("--label", "price", "--task", "regression", "--loss", "mape"), "--loss must be one of mse, mae, huber"),
    ],
)
def test_what_cannot_be_learned_is_refused(
    folder: Path, graphsage: Command, tmp_path: Path, words: tuple[str, ...], problem: str
) -> None:
    answer = graphsage("train", *tables(folder), *words, "--out", tmp_path / "no")
    assert answer.code == 2
    assert problem in answer.err
    assert answer.err.count("error:") == 1
    assert not (tmp_path / "no").exists()


@pytest.mark.parametrize(("cell", "problem"), [("inf", "is infinite"), ("1e39", "is 1e+39; targets are at most")])
def test_targets_that_are_no_finite_numbers_are_refused_by_row(
    graphsage: Command, tmp_path: Path, cell: str, problem: str
) -> None:
    write_csv(tmp_path / "nodes.csv", ("id", "price"), [["a", 1.5], ["b", cell]])
    write_csv(tmp_path / "edges.csv", ("source", "target"), [["a", "b"]])
    answer = graphsage("train", *tables(tmp_path), "--label", "price", "--task", "regression", "--out", tmp_path / "no")
    assert answer.code == 2
    assert f"nodes.csv column 'price' row 3 {problem}" in answer.err

"""From two tables to a model, and from the model to rows that arrived later."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow.parquet as pq
import pytest
import torch

from command_line import Command
from graphsage.cli.main import main
from graphsage.cli.table_summary import table_summary
from graphsage.datasets.tables import open_tables
from graphsage.errors import DataError, DataWarning
from graphsage.inference.export import graph_for
from graphsage.inference.model import Model, load
from graphsage.tables.spec import TableSpec
from graphsage.training.train import train
from small_tables import COLUMNS, KINDS, ROLES, SMALL, edge_rows, node_rows, write_csv

NEW = 5  # nodes of the full tables that the run never saw


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GRAPHSAGE_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tables: all nodes (`all_*`), all but the last NEW (`*`), and those with their edges (`new_*`)."""
    folder = tmp_path_factory.mktemp("tables")
    nodes, edges = node_rows(), edge_rows()
    new = {row[0] for row in nodes[-NEW:]}
    write_csv(folder / "all_nodes.csv", COLUMNS, nodes)
    write_csv(folder / "all_edges.csv", ("source", "target"), edges)
    write_csv(folder / "nodes.csv", COLUMNS, nodes[:-NEW])
    write_csv(folder / "edges.csv", ("source", "target"), [e for e in edges if new.isdisjoint(e)])
    write_csv(folder / "new_nodes.csv", COLUMNS, nodes[-NEW:])
    write_csv(folder / "new_edges.csv", ("source", "target"), [e for e in edges if not new.isdisjoint(e)])
    return folder


@pytest.fixture(scope="module")
def run(folder: Path) -> Path:
    files = ("--nodes", folder / "nodes.csv", "--edges", folder / "edges.csv")
    assert main([*map(str, ("train", *files, *ROLES, *SMALL, "--out", folder / "run"))]) == 0
    return folder / "run"


@pytest.fixture(scope="module")
def model(run: Path) -> Model:
    return load(run)


def frame(path: Path) -> dict[str, list[Any]]:
    data: dict[str, list[Any]] = pd.read_csv(path, dtype=str, keep_default_na=False).to_dict(orient="list")
    return data


def test_what_was_understood_is_said_before_training(graphsage: Command, folder: Path, tmp_path: Path) -> None:
    files = ("--nodes", folder / "nodes.csv", "--edges", folder / "edges.csv")
    said = graphsage("train", *files, *ROLES, *SMALL, "--steps", "1", "--out", tmp_path / "run").err
    before = said[: said.index("model   ")]
    for part in (
        "nodes   85 from",
        "edges   ",
        "degree  min ",
        "column  about: text (TF-IDF, SVD), 6 wide",
        "column  size: number (log), 2 wide",
        "column  color: category, 3 wide",
        "column  day: date, 4 wide",
        "classes 3 in section: games 29, science 28, web 28",
        "split   time: train 60, val 15, test 10",
    ):
        assert part in before


def test_a_run_on_tables_is_evaluated_on_the_same_tables(graphsage: Command, run: Path, tmp_path: Path) -> None:
    scored = graphsage("evaluate", run, "--json").json
    assert (scored["nodes"], scored["split_name"]) == (10, "time")
    assert scored["micro_f1"] > 0.8
    assert graphsage("predict", run, "--out", tmp_path / "p.parquet").code == 0
    assert pq.read_table(tmp_path / "p.parquet").num_rows == 85


def test_a_run_is_repeated_from_its_file_and_from_a_table_in_toml(
    graphsage: Command, run: Path, folder: Path, tmp_path: Path
) -> None:
    assert graphsage("train", "--config", run / "run.toml", "--out", tmp_path / "again").code == 0
    one, two = (load(place).encoder.state_dict() for place in (run, tmp_path / "again"))
    assert all(torch.equal(one[name], two[name]) for name in one)
    (tmp_path / "mine.toml").write_text(
        f'dim = 4\nsteps = 1\n[data]\nnodes = "{folder / "nodes.csv"}"\nedges = "{folder / "edges.csv"}"\n'
        'label = "section"\nnumeric = ["size"]\nfractions = [0.5, 0.3, 0.2]\n'
    )
    said = graphsage("train", "--config", tmp_path / "mine.toml", "--text", "about", "--out", tmp_path / "mine")
    assert said.code == 0, said.err
    assert "column  about: text" in said.err
    assert "column  size: number, 2 wide" in said.err
    assert "split   random: train 42, val 26, test 17" in said.err


@pytest.mark.parametrize(
    ("content", "part"),
    [
        ("[data]\nlabels = 'x'", "[data]: there is no setting 'labels'"),
        ("[data]\nedges = 5", "edges must be a path, a pandas, polars or Arrow table"),
        ("[data]\nnodes = 'n.csv'", "a graph needs edges"),
    ],
)
def test_a_wrong_table_of_settings_is_named(graphsage: Command, tmp_path: Path, content: str, part: str) -> None:
    (tmp_path / "s.toml").write_text(content)
    assert part in graphsage("train", "--config", tmp_path / "s.toml", "--out", tmp_path / "run").error


def test_data_and_tables_are_not_given_together(graphsage: Command, folder: Path, tmp_path: Path) -> None:
    words = ("train", "setmm", "--edges", folder / "edges.csv", "--out", tmp_path / "run")
    assert "give DATA (setmm) or tables (--edges), not both" in graphsage(*words).error


def test_edges_alone_are_enough_without_labels(graphsage: Command, folder: Path, tmp_path: Path) -> None:
    words = ("--edges", folder / "edges.csv", "--task", "unsupervised", "--steps", "2", "--out", tmp_path / "run")
    said = graphsage("train", *words, *SMALL[:8])
    assert said.code == 0, said.err
    assert "columns none; the node's degree is the feature" in said.err
    assert graphsage("embed", tmp_path / "run", "--out", tmp_path / "z.csv").code == 0


@pytest.mark.parametrize(("split", "noted"), [("random", True), ("time", False)])
def test_what_edge_times_do_without_a_split_by_time_is_said(split: str, noted: bool) -> None:
    nodes = {"id": [1, 2, 3], "year": [2000, 2001, 2002]}
    edges = {"source": [1, 2], "target": [2, 3], "when": [2001, 2002]}
    spec = TableSpec(nodes=nodes, edges=edges, time="year", edge_time="when")
    data = open_tables(spec)
    lines = table_summary(data, spec, split, data.split(split))
    assert ("only a split by time leaves later edges out of training" in "\n".join(lines)) == noted


def test_the_summary_counts_unknown_and_empty_label_sets() -> None:
    nodes = {"id": [1, 2, 3, 4, 5], "tags": [["x"], [], None, ["x", "y"], None]}
    spec = TableSpec(nodes=nodes, edges={"source": [1], "target": [2]}, label="tags")
    data = open_tables(spec)
    (line,) = [line for line in table_summary(data, spec, "random", data.split()) if line.startswith("labels")]
    assert line == (
        "labels  2 in tags: x 2, y 1; 1 nodes without labels; unknown for 2 nodes, which are not trained on or scored"
    )


def test_a_class_that_only_test_nodes_have_is_a_warning_and_counts_as_wrong(
    graphsage: Command, folder: Path, tmp_path: Path
) -> None:
    rows = node_rows()
    for row in rows[-3:]:
        row[1] = "law"
    nodes = write_csv(tmp_path / "nodes.csv", COLUMNS, rows)
    words = ("train", "--nodes", nodes, "--edges", folder / "all_edges.csv", *ROLES, *SMALL, "--out", tmp_path / "run")
    said = graphsage(*words)
    assert said.code == 0
    assert "warning: class 'law' of 3 nodes in test has no training node; it counts as wrong" in said.err
    scored = graphsage("evaluate", tmp_path / "run", "--json").json
    assert scored["nodes"] == 15
    assert scored["micro_f1"] <= 12 / 15


def test_a_new_row_gets_the_vector_it_has_as_a_row_of_the_tables(model: Model, folder: Path) -> None:
    spec = TableSpec.from_dict(
        model.about["tables"] | {"nodes": str(folder / "all_nodes.csv"), "edges": str(folder / "all_edges.csv")}
    )
    data = open_tables(spec)
    within = model.embed(graph_for(model, data))[-NEW:]
    assert [data.graph.id_of(row) for row in range(85, 90)] == frame(folder / "new_nodes.csv")["id"]
    later = model.embed(new_nodes=folder / "new_nodes.csv", new_edges=folder / "new_edges.csv")
    assert torch.allclose(later, within, atol=1e-5)  # other shapes round otherwise in the last bits
    lonely = model.embed(new_nodes=folder / "new_nodes.csv")
    assert not torch.allclose(lonely, within, atol=1e-3)


def test_new_rows_come_as_pandas_polars_arrow_or_columns(model: Model, folder: Path) -> None:
    nodes, edges = frame(folder / "new_nodes.csv"), frame(folder / "new_edges.csv")
    expected = model.predict_proba(new_nodes=folder / "new_nodes.csv", new_edges=folder / "new_edges.csv")
    assert expected.shape == (NEW, 3)
    for make in (dict, pd.DataFrame, pl.DataFrame, lambda columns: pl.DataFrame(columns).to_arrow()):
        got = model.predict_proba(new_nodes=make(nodes), new_edges=make(edges))
        assert torch.equal(got, expected)
    assert model.predict(new_nodes=nodes, new_edges=edges).tolist() == expected.argmax(dim=1).tolist()


def test_a_model_trained_in_python_knows_its_tables(folder: Path) -> None:
    spec = TableSpec(nodes=str(folder / "nodes.csv"), edges=str(folder / "edges.csv"), label="section", text=("about",))
    model = train(open_tables(spec), dim=8, sample_sizes=(3, 2), steps=1, device="cpu")
    new = {"id": ["x"], "about": ["play"]}
    assert model.embed(new_nodes=new, new_edges={"source": ["x"], "target": ["node-1"]}).shape == (1, 8)


def test_unseen_categories_words_and_missing_numbers_are_handled(model: Model) -> None:
    row = {"id": ["x"], "about": ["never seen words"], "size": [None], "color": ["green"], "day": [""]}
    z = model.embed(new_nodes=row, new_edges={"source": ["x"], "target": ["node-1"]})
    assert z.shape == (1, 8)
    assert torch.isfinite(z).all()


def test_edges_alone_change_the_vectors_of_old_nodes(model: Model) -> None:
    before = model.embed(model.run_graph(), [0])
    after = model.embed(None, [0], new_edges={"source": ["node-0"] * 3, "target": ["node-1", "node-2", "node-4"]})
    assert after.shape == before.shape
    assert not torch.allclose(before, after, atol=1e-3)


def test_new_nodes_without_an_edge_are_a_warning(model: Model, recwarn: pytest.WarningsRecorder) -> None:
    nodes = {"id": ["x", "y"], "about": ["a"] * 2, "size": [1] * 2, "color": ["red"] * 2, "day": ["2020-01-01"] * 2}
    old = {"source": ["node-0", "node-1"], "target": ["node-2", "node-3"]}
    with pytest.warns(DataWarning) as found:
        model.embed(new_nodes=nodes, new_edges=old)
    (warning,) = found
    assert str(warning.message) == "2 of 2 new nodes have no edge; 2 of 2 new edges join two nodes of the graph"
    assert warning.filename == __file__
    with pytest.warns(DataWarning, match="^1 of 2 new nodes have no edge$"):
        model.embed(new_nodes=nodes, new_edges={"source": ["x"], "target": ["node-2"]})
    recwarn.clear()
    model.embed(new_nodes=nodes)
    model.embed(new_nodes=nodes, new_edges={"source": ["x"], "target": ["y"]})
    assert not [one for one in recwarn if "no edge" in str(one.message)]


def test_missing_columns_are_an_error_and_unknown_ones_a_warning(model: Model, folder: Path) -> None:
    nodes = frame(folder / "new_nodes.csv")
    with pytest.raises(DataError, match="new_nodes lacks the columns 'about', 'day', which the model's features"):
        model.embed(new_nodes={name: c for name, c in nodes.items() if name not in ("about", "day")})
    edges = {"source": nodes["id"][:1], "target": ["node-1"], "weight": [2]}
    with pytest.warns(DataWarning, match="does not use are ignored: 'shoe', 'weight'"):
        model.embed(new_nodes={**nodes, "shoe": ["42"] * NEW}, new_edges=edges)


@pytest.mark.parametrize(
    ("nodes", "edges", "message"),
    [
        ({"id": ["node-3"]}, None, "new_nodes column 'id' row 1 is 'node-3', which the graph has already"),
        (
            {"id": ["x"]},
            {"source": ["x"], "target": ["y"]},
            "a node that neither the graph nor the new nodes have, such as 'y' .column 'target' row 1.; correct them$",
        ),
        ({"id": ["x", "x"]}, None, r"'x' .rows 1, 2."),
        ({"id": ["x"], "size": ["big"]}, None, "new_nodes column 'size' row 1 is 'big', not a number"),
        ({"id": []}, None, "new_nodes has no row"),
    ],
)
def test_new_rows_that_do_not_fit_are_named(model: Model, nodes: Any, edges: Any, message: str) -> None:
    n = len(nodes["id"])
    rest = {"about": ["a"] * n, "size": ["1"] * n, "color": ["red"] * n, "day": ["2020-01-01"] * n}
    with pytest.raises(DataError, match=message):
        model.embed(new_nodes={**rest, **nodes}, new_edges=edges)


def test_new_rows_of_a_model_with_a_file_of_vectors_come_with_a_file(
    graphsage: Command, folder: Path, tmp_path: Path
) -> None:
    """The same vectors as with a column of lists, in Python and on the command line."""
    x = np.random.default_rng(0).normal(size=(90, 4)).astype(np.float32)
    np.save(tmp_path / "x.npy", x[:-NEW])
    np.save(tmp_path / "later.npy", x[-NEW:])
    files = {"nodes": folder / "nodes.csv", "edges": folder / "edges.csv"}
    spec = TableSpec(**files, label="section", vectors=str(tmp_path / "x.npy"))
    model = train(open_tables(spec), epochs=1, dim=8, out=tmp_path / "run")
    ids, edges = frame(folder / "new_nodes.csv")["id"], folder / "new_edges.csv"
    expected = model.embed(new_nodes={"id": ids, "x": x[-NEW:].tolist()}, new_edges=edges)
    for given in (tmp_path / "later.npy", [str(tmp_path / "later.npy")], x[-NEW:]):
        assert torch.equal(model.embed(new_nodes={"id": ids}, new_edges=edges, new_vectors=given), expected)
    new = ("--new-nodes", folder / "new_nodes.csv", "--new-edges", edges, "--new-vectors", tmp_path / "later.npy")
    assert graphsage("embed", tmp_path / "run", *new, "--out", tmp_path / "z.npy").code == 0
    np.testing.assert_allclose(np.load(tmp_path / "z.npy"), expected.numpy(), atol=1e-6)
    assert "lacks the column 'x'" in graphsage("embed", tmp_path / "run", *new[:4], "--out", tmp_path / "y.npy").error
    with pytest.raises(DataError, match=r"new_vectors: x has 85 rows, but new_nodes has 5; they must match"):
        model.embed(new_nodes={"id": ids}, new_vectors=tmp_path / "x.npy")
    with pytest.raises(DataError, match=r"new_vectors: the model needs 1 \(x\), as it was trained; got 2"):
        model.embed(new_nodes={"id": ids}, new_vectors=[x, x])


def test_the_command_writes_only_the_new_rows(graphsage: Command, run: Path, folder: Path, tmp_path: Path) -> None:
    new = ("--new-nodes", folder / "new_nodes.csv", "--new-edges", folder / "new_edges.csv")
    said = graphsage("embed", run, *new, "--out", tmp_path / "z.parquet", "--json")
    assert said.json["nodes"] == NEW
    table = pq.read_table(tmp_path / "z.parquet")
    assert table["id"].to_pylist() == frame(folder / "new_nodes.csv")["id"]
    expected = load(run).embed(new_nodes=folder / "new_nodes.csv", new_edges=folder / "new_edges.csv")
    assert np.array_equal(np.array(table["embedding"].to_pylist(), np.float32), expected.numpy())
    assert graphsage("predict", run, *new, "--out", tmp_path / "p.csv").code == 0
    right = pd.read_csv(tmp_path / "p.csv")["class"] == frame(folder / "new_nodes.csv")["section"]
    assert right.mean() >= 0.6
    assert set(pd.read_csv(tmp_path / "p.csv").columns) >= {f"p_{kind}" for kind in KINDS}


def test_new_rows_can_be_a_graph_of_their_own(graphsage: Command, run: Path, folder: Path, tmp_path: Path) -> None:
    new = ("--new-nodes", folder / "all_nodes.csv", "--new-edges", folder / "all_edges.csv", "--new-only")
    assert graphsage("embed", run, *new, "--out", tmp_path / "z.npy").code == 0
    model = load(run)
    spec = TableSpec.from_dict(
        model.about["tables"] | {"nodes": str(folder / "all_nodes.csv"), "edges": str(folder / "all_edges.csv")}
    )
    assert np.allclose(np.load(tmp_path / "z.npy"), model.embed(graph_for(model, open_tables(spec))).numpy(), atol=1e-6)


def test_wrong_new_rows_leave_no_file(graphsage: Command, run: Path, folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "z.parquet"
    words = ("embed", run, "--out", out)
    assert "has no column called id" in graphsage(*words, "--new-nodes", folder / "new_edges.csv").error
    error = graphsage(*words, "--new-nodes", folder / "nodes.csv").error
    assert "'node-0', which the graph has already" in error
    assert "give --new-nodes" in graphsage(*words, "--new-only").error
    write_csv(edges := folder / "unknown.csv", ("source", "target"), [["node-1", "zz"]])
    error = graphsage(*words, "--new-edges", edges).error
    assert error.endswith("that the graph does not have, such as 'zz' (column 'target' row 2); correct them")
    error = graphsage(*words, "--new-nodes", folder / "nodes.csv", "--new-edges", edges, "--new-only").error
    assert "that the new nodes do not have, such as 'zz'" in error
    assert "give one of them" in graphsage(*words, "--node-ids", "x", "--new-nodes", folder / "new_nodes.csv").error
    assert not out.exists()

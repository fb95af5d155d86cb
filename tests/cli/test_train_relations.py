"""From tables whose edges have a direction to predictions for new rows, and refusals of what knows one relation."""

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import torch

from command_line import Command
from graphsage.cli.main import main
from graphsage.errors import ConfigError, DataError
from graphsage.graph.graph import Graph
from graphsage.inference.model import load
from graphsage.tables.spec import TableSpec
from graphsage.training.train import train
from small_tables import SMALL, write_csv

N, KINDS = 60, ("left", "right", "none")


def edge_rows() -> list[tuple[str, str]]:
    """Nodes of kind `left` point at red nodes and nodes of kind `right` are pointed at by them; others stay alone."""
    red = [f"r{i}" for i in range(4)]
    sources = [(f"n{i}", red[i % 4]) for i in range(0, N, 3)]
    return sources + [(red[i % 4], f"n{i}") for i in range(1, N, 3)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tables")
    rows: list[Any] = [(f"n{i}", KINDS[i % 3], "blue") for i in range(N)]
    write_csv(folder / "nodes.csv", ("id", "kind", "color"), [*rows, *((f"r{i}", "", "red") for i in range(4))])
    write_csv(folder / "edges.csv", ("source", "target"), edge_rows())
    write_csv(folder / "new.csv", ("id", "color"), [("x", "blue"), ("y", "blue")])
    write_csv(folder / "new_edges.csv", ("source", "target"), [("x", "r0"), ("r1", "y")])
    return folder


def words(folder: Path, direction: str = "both") -> list[str]:
    return typed_words(folder, "--direction", direction)


@pytest.fixture(scope="module")
def run(folder: Path) -> Path:
    assert main(["train", *words(folder), "--out", str(folder / "run")]) == 0
    return folder / "run"


def test_what_was_understood_is_said(graphsage: Command, folder: Path, tmp_path: Path) -> None:
    said = graphsage("train", *words(folder), "--out", tmp_path / "run", "--steps", "1").err
    assert "edges   40 directed from" in said
    assert "relations in 40, out 40; each has weights of its own" in said
    assert "sample sizes in 2, 2; out 2, 2, seed" in said
    said = graphsage("train", *words(folder, "merged"), "--out", tmp_path / "merged", "--steps", "1").err
    assert "edges   40 undirected from" in said
    assert "--direction in, out or both keeps their direction" in said


def test_two_relations_tell_what_merged_edges_cannot(graphsage: Command, run: Path, folder: Path) -> None:
    assert graphsage("evaluate", run, "--json").json["micro_f1"] == 1.0
    merged = folder / "merged"
    assert graphsage("train", *words(folder, "merged"), "--out", merged).code == 0
    assert graphsage("evaluate", merged, "--json").json["micro_f1"] < 0.9
    assert graphsage("info", run, "--json").code == 0


def test_new_rows_are_attached_in_both_directions(graphsage: Command, run: Path, folder: Path, tmp_path: Path) -> None:
    new = ("--new-nodes", folder / "new.csv", "--new-edges", folder / "new_edges.csv")
    assert graphsage("predict", run, *new, "--out", tmp_path / "p.parquet").code == 0
    assert pq.read_table(tmp_path / "p.parquet")["class"].to_pylist() == ["left", "right"]
    assert graphsage("predict", run, *new, "--inference", "sampled", "--out", tmp_path / "q.parquet").code == 0
    assert pq.read_table(tmp_path / "q.parquet")["class"].to_pylist() == ["left", "right"]


def test_a_loaded_model_equals_the_trained_one(run: Path, folder: Path) -> None:
    spec = TableSpec(**{"nodes": str(folder / "nodes.csv"), "edges": str(folder / "edges.csv")}, direction="both")
    model = load(run)
    assert model.encoder.config.relations == ("in", "out")
    assert spec.direction == "both"
    z = model.embed()
    assert torch.equal(load(run).embed(), z)
    assert torch.equal(model.embed(nodes=[3, 1]), model.embed()[[3, 1]]) or torch.allclose(
        model.embed(nodes=[3, 1]), z[[3, 1]], atol=1e-5
    )


@pytest.mark.parametrize(
    "settings",
    [
        {"aggregator": "gcn"},
        {"aggregator": "pool", "max_degree": 1},
        {"aggregator": "lstm", "max_degree": 1, "cap": "symmetric"},
        {"task": "unsupervised"},
        {"task": "unsupervised", "objective": "contrastive", "epochs": 1},
        {"task": "joint"},
        {"whole_batches": 2},
        {"identity_dim": 3, "combine": "halves"},
        {"inference": "sampled", "relation_sizes": (3, 2, 1, 1)},
        {"label_inputs": True},
    ],
    ids=str,
)
def test_every_way_to_train_takes_several_relations(settings: dict[str, Any], tmp_path: Path) -> None:
    ids = [f"n{i}" for i in range(20)]
    edges = [(i, (i * 7 + 1) % 20) for i in range(20)] + [(i, (i + 2) % 20) for i in range(20)]
    graph = Graph.from_edges(
        edges, 20, features=torch.randn(20, 3), labels=[i % 3 for i in range(20)], ids=ids, direction="both"
    )
    model = train(graph, out=tmp_path / "run", **{"dim": 4, "sample_sizes": (3, 2), "steps": 2, **settings})
    again = load(tmp_path / "run")
    assert torch.equal(again.embed(), model.embed(graph))
    if model.sampling.max_degree is not None:
        assert (tmp_path / "run" / "data" / "capped" / "relation-1-indices.npy").is_file()


def test_settings_that_know_one_relation_are_refused(graphsage: Command, folder: Path, tmp_path: Path) -> None:
    error = graphsage("train", *words(folder), "--form", "reference", "--out", tmp_path / "a").error
    assert "reused only in a graph of one relation, and this one has 2; use --redraw" in error
    error = graphsage("train", *words(folder), "--relation-sizes", "3,2,1", "--out", tmp_path / "a").error
    assert "--relation-sizes must hold 2 sizes, one per layer, for each of 2 relations; got 3,2,1" in error
    error = graphsage("train", *words(folder), "--task", "links", "--out", tmp_path / "a").error
    assert "--task links hides edges of one relation, and this graph has in, out; use --direction merged" in error
    assert not (tmp_path / "a").exists()
    error = graphsage("train", *words(folder), "--directed", "--out", tmp_path / "a").error
    assert error == "error: --directed was renamed --direction in"
    with pytest.raises(ConfigError, match="directed is now direction='in'; write that instead"):
        TableSpec.from_dict({"edges": "edges.csv", "directed": True})
    with pytest.raises(ConfigError, match="directed is now direction='in'; write that instead"):
        TableSpec(edges="edges.csv", directed=True)
    error = graphsage("train", *words(folder, "sideways"), "--out", tmp_path / "a").error
    assert "--direction must be one of merged, in, out, both; got 'sideways'" in error


def test_paths_that_know_one_relation_refuse(graphsage: Command, run: Path, folder: Path, tmp_path: Path) -> None:
    error = graphsage("embed", run, "--out", tmp_path / "z.npy", "--memory", "1GB").error
    assert "several relations, which inference in blocks does not read; embed in memory" in error
    error = graphsage("live", "create", run, tmp_path / "live").error
    assert "has one relation, merged or in" in error
    assert not (tmp_path / "live").exists()
    assert "has one" in graphsage("serve", run, "--graph", tmp_path / "live").error
    tables = ("--nodes", folder / "nodes.csv", "--edges", folder / "edges.csv", "--out", tmp_path / "graph")
    error = graphsage("data", "build", "tables", *tables, "--direction", "both").error
    assert "--direction both makes two relations, which are not built from tables larger than memory" in error
    out_of = folder / "out"
    assert graphsage("train", *words(folder, "out"), "--out", out_of).code == 0
    assert "merged or in" in graphsage("live", "create", out_of, tmp_path / "live").error


def test_a_graph_of_other_relations_is_refused(run: Path) -> None:
    model = load(run)
    merged = model.run_graph().replace(relations={})
    with pytest.raises(DataError, match="aggregates the relations in, out, and the graph has a single one"):
        model.embed(merged)


@pytest.fixture(scope="module")
def typed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Nodes of kind `left` have friends that are red, `right` enemies, and `none` both, by faint edges."""
    folder = tmp_path_factory.mktemp("typed")
    rows: list[Any] = [(f"n{i}", KINDS[i % 3], "blue") for i in range(N)]
    write_csv(folder / "nodes.csv", ("id", "kind", "color"), [*rows, *((f"r{i}", "", "red") for i in range(4))])
    edges = [(f"n{i}", f"r{i % 4}", ("friend", "enemy", "kin")[i % 3], "2" if i % 3 < 2 else "0") for i in range(N)]
    write_csv(folder / "edges.csv", ("source", "target", "sort", "w"), [*edges, ("n2", "n5", "kin", "1.5")])
    write_csv(folder / "new.csv", ("id", "color"), [("x", "blue"), ("y", "blue")])
    write_csv(
        folder / "new_edges.csv", ("source", "target", "sort", "w"), [("x", "r0", "friend", 1), ("r1", "y", "enemy", 2)]
    )
    return folder


def typed_words(folder: Path, *more: str) -> list[str]:
    tables = (
        "--nodes",
        folder / "nodes.csv",
        "--edges",
        folder / "edges.csv",
        "--label",
        "kind",
        "--categorical",
        "color",
    )
    return [*map(str, tables), *SMALL, "--epochs", "15", *more]


def test_types_and_weights_of_edges(graphsage: Command, typed: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    said = graphsage("train", *typed_words(typed, "--edge-type", "sort", "--edge-weight", "w"), "--out", run).err
    assert "relations enemy 20, friend 20, kin 1; each has weights of its own" in said
    assert "weights w: min 1.5, max 2" in said
    assert "20 of 61 edges have the weight 0, which means that there is no edge" in said
    assert graphsage("evaluate", run, "--json").json["micro_f1"] == 1.0
    new = ("--new-nodes", typed / "new.csv", "--new-edges", typed / "new_edges.csv")
    for extra in ((), ("--new-only",)):
        assert graphsage("predict", run, *new[:2], *extra, "--out", tmp_path / "p.csv").code == 0
    assert graphsage("predict", run, *new, "--out", tmp_path / "p.parquet").code == 0
    assert pq.read_table(tmp_path / "p.parquet")["class"].to_pylist() == ["left", "right"]
    bad = tmp_path / "bad.csv"
    for row, sentence in (
        (
            "x,r0,stranger,1",
            "column 'sort' row 2 has the edge type 'stranger', which the model does not know (enemy, friend",
        ),
        ("x,r0,,1", "column 'sort' row 2 has no edge type"),
        ("x,r0,kin,-1", "column 'w' row 2 is -1; weights are finite numbers from 0"),
        ("x,r0,kin,", "column 'w' row 2 has no weight"),
    ):
        bad.write_text(f"source,target,sort,w\n{row}\n")
        error = graphsage("predict", run, *new[:2], "--new-edges", bad, "--out", tmp_path / "q.csv").error
        assert sentence in error
    bad.write_text("source,target,w\nx,r0,1\n")
    assert "sort" in graphsage("predict", run, *new[:2], "--new-edges", bad, "--out", tmp_path / "q.csv").error


def test_columns_that_could_be_used_are_named_before_training(graphsage: Command, typed: Path, tmp_path: Path) -> None:
    said = graphsage("train", *typed_words(typed, "--steps", "1"), "--out", tmp_path / "run").err
    assert "edges.csv: 'sort', 'w' (--edge-type, --edge-weight, --edge-time read columns of edges)" in said


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        (
            "n0,n1,kin,-1",
            "column 'w' row 2 is -1; weights are finite numbers from 0, which means that there is no edge",
        ),
        ("n0,n1,kin,nan", "column 'w' row 2"),
        ("n0,n1,kin,inf", "column 'w' row 2"),
        ("n0,n1,,1", "column 'sort' row 2 has no edge type; fill it"),
    ],
)
def test_bad_cells_of_edges_are_one_sentence(
    graphsage: Command, typed: Path, tmp_path: Path, row: str, sentence: str
) -> None:
    (tmp_path / "edges.csv").write_text(f"source,target,sort,w\n{row}\n")
    words = typed_words(typed, "--edge-type", "sort", "--edge-weight", "w", "--edges", str(tmp_path / "edges.csv"))
    assert sentence in graphsage("train", *words, "--out", tmp_path / "run").error


def test_a_graph_that_lacks_a_type_of_the_model_is_read_and_one_more_type_is_not() -> None:
    edges, x = [(0, 1), (1, 2), (2, 3)], torch.randn(4, 2)
    graph = Graph.from_edges(edges, 4, features=x, labels=[0, 1, 0, 1], edge_type=["a", "b", "a"], direction="both")
    model = train(graph, dim=4, sample_sizes=(2, 2), steps=1)
    some = Graph.from_edges(edges[::2], 4, features=x, edge_type=["a", "a"], direction="both")
    whole = Graph.from_edges(edges[::2], 4, features=x, edge_type=["a", "a"], edge_types=["a", "b"], direction="both")
    assert torch.equal(model.embed(some), model.embed(whole))
    more = Graph.from_edges(edges, 4, features=x, edge_type=["a", "b", "c"], direction="both")
    with pytest.raises(DataError, match="aggregates the relations a in, a out, b in, b out, and the graph has a in"):
        model.embed(more)


def test_paths_that_know_no_weights_refuse(graphsage: Command, typed: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert graphsage("train", *typed_words(typed, "--edge-weight", "w"), "--out", run).code == 0
    error = graphsage("embed", run, "--out", tmp_path / "z.npy", "--memory", "1GB").error
    assert "edge weights, which inference in blocks does not read; embed in memory" in error
    assert "a live graph has no edge weights" in graphsage("live", "create", run, tmp_path / "live").error
    tables = ("--nodes", typed / "nodes.csv", "--edges", typed / "edges.csv", "--out", tmp_path / "graph")
    assert not (tmp_path / "live").exists()
    assert graphsage("data", "build", "tables", *tables).code == 0


@pytest.fixture(scope="module")
def dated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Until March 2024, nodes of kind `left` point at red nodes; then all others do as well."""
    folder = tmp_path_factory.mktemp("dated")
    rows: list[Any] = [(f"n{i}", ("left", "none")[i % 2], "blue") for i in range(N)]
    write_csv(folder / "nodes.csv", ("id", "kind", "color"), [*rows, *((f"r{i}", "", "red") for i in range(4))])
    edges = [(f"n{i}", f"r{i % 4}", "2024-03-01" if i % 2 else "2024-02-28") for i in range(N)]
    write_csv(folder / "edges.csv", ("source", "target", "day"), edges)
    write_csv(folder / "early.csv", ("source", "target", "day"), [e for e in edges if e[2] < "2024-03"])
    return folder


def test_predictions_as_of_a_day(graphsage: Command, dated: Path, tmp_path: Path) -> None:
    tables = ("--nodes", dated / "nodes.csv", "--label", "kind", "--categorical", "color", "--edge-time", "day")
    run, late = tmp_path / "run", tmp_path / "late"
    fit = (*SMALL, "--epochs", "15")
    assert graphsage("train", *tables, "--edges", dated / "early.csv", *fit, "--out", run).code == 0
    said = graphsage("train", *tables, "--edges", dated / "edges.csv", *fit, "--out", late).err
    assert "only a split by time leaves later edges out of training; --as-of does in predict and embed" in said
    for name, place in (("old", run), ("new", late)):
        assert graphsage("embed", place, "--as-of", "2024-03-01", "--out", tmp_path / f"{name}.npy").code == 0
    model = load(run)
    assert torch.equal(model.embed(load(late).run_graph(), as_of="2024-03-01"), model.embed())
    assert not torch.equal(model.embed(load(late).run_graph(), as_of="2024-03-02"), model.embed())
    assert graphsage("predict", late, "--as-of", "2024-03-01", "--out", tmp_path / "p.csv").code == 0
    error = graphsage("predict", late, "--as-of", "2024-02-28", "--out", tmp_path / "q.csv").error
    assert "no edge is dated before 2024-02-28" in error
    error = graphsage("predict", late, "--as-of", "March", "--out", tmp_path / "q.csv").error
    assert "--as-of is 'March', not an ISO date" in error
    error = graphsage("embed", late, "--as-of", "2024-03-01", "--memory", "1GB", "--out", tmp_path / "q.npy").error
    assert "leave --as-of out" in error
    made = graphsage("live", "create", late, tmp_path / "live", "--as-of", "2024-03-01", "--json").json
    assert made["nodes"] == N + 4


def test_a_model_without_times_cannot_look_back(graphsage: Command, run: Path, tmp_path: Path) -> None:
    error = graphsage("predict", run, "--as-of", "5", "--out", tmp_path / "p.csv").error
    assert "--as-of needs edges with times, and this graph has none; give --edge-time in training" in error

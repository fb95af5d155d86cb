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
    return [*map(str, tables), "--direction", direction, *SMALL, "--epochs", "15"]


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
    for flag in ("--directed", "--no-directed"):
        error = graphsage("train", *words(folder), flag, "--out", tmp_path / "a").error
        assert error == "error: --directed is now --direction in; write that instead"
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

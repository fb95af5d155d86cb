"""A run keeps its graph: commands answer the same after the tables are gone, reordered or edited."""

import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from command_line import Command, N, planted, split
from graphsage.checksummed_json import read_checksummed, write_checksummed
from graphsage.cli.main import main
from graphsage.datasets import tables as table_reader
from graphsage.datasets.tables import open_tables
from graphsage.graph import cap
from graphsage.graph.split import Split
from graphsage.graph.storage import save_graph
from graphsage.inference.export import graph_for
from graphsage.inference.model import load
from graphsage.inference.out_of_core import embed as out_of_core
from graphsage.live.node_features import store_from_data
from graphsage.tables.spec import TableSpec
from small_tables import COLUMNS, ROLES, SMALL, edge_rows, node_rows, write_csv

CAP = ("--max-degree", "5")  # of a mean degree of 6: the capped neighbor lists differ from the graph's


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GRAPHSAGE_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


def trained(folder: Path, *words: object) -> Path:
    """Tables and a run on them, in `folder`."""
    folder.mkdir()
    write_csv(folder / "nodes.csv", COLUMNS, node_rows())
    write_csv(folder / "edges.csv", ("source", "target"), edge_rows())
    files = ("--nodes", folder / "nodes.csv", "--edges", folder / "edges.csv")
    assert main([*map(str, ("train", *files, *ROLES, *SMALL, *CAP, "--out", folder / "run", *words))]) == 0
    return folder / "run"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained(tmp_path_factory.mktemp("own") / "made")


@pytest.fixture
def run(made: Path, tmp_path: Path) -> Iterator[Path]:
    """A copy of the run with its tables in their place, which tests may change."""
    kept = {path: path.read_bytes() for path in made.parent.glob("*.csv")}
    yield Path(shutil.copytree(made, tmp_path / "run"))
    for path, content in kept.items():
        path.write_bytes(content)


def answers(graphsage: Command, run: Path, out: Path) -> list[bytes]:
    """What every command that reads the run's own graph answers."""
    out.mkdir()
    found = [
        graphsage("evaluate", run, "--json").out,
        graphsage("evaluate", run, "--split-name", "random").out,
        graphsage("search", run, "node-3", "--json").out,
    ]
    new = ("--new-nodes", out / "new.csv", "--new-edges", out / "new_edges.csv")
    write_csv(out / "new.csv", COLUMNS, [["x", "web", "page", 1, "red", "2020-01-01", "newest"]])
    write_csv(out / "new_edges.csv", ("source", "target"), [["x", "node-1"], ["x", "node-2"]])
    for name, words in {
        "p.csv": ("predict", run),
        "p_new.csv": ("predict", run, *new),
        "z.csv": ("embed", run, "--with-label", "--with-prediction"),
        "sampled.csv": ("embed", run, "--inference", "sampled"),
        "blocks.csv": ("embed", run, "--memory", "2GB"),
        "map.html": ("plot", run, "--part", "test"),
    }.items():
        answer = graphsage(*words, "--out", out / name)
        assert answer.code == 0, answer.err
        found.append((out / name).read_text())
    answer = graphsage("live", "create", run, out / "live", "--json")
    assert answer.code == 0, answer.err
    found += [answer.out, (out / "live/generation-000001/attributes_text.npy").read_bytes().decode("latin-1")]
    return [text.encode() for text in found]


def test_every_answer_is_the_same_when_the_tables_are_gone_and_nothing_is_parsed_or_capped(
    graphsage: Command, made: Path, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = answers(graphsage, run, tmp_path / "before")
    for path in made.parent.glob("*.csv"):
        path.unlink()

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("parsed, split or capped again")

    monkeypatch.setattr(table_reader, "read_tables", refuse)
    monkeypatch.setattr(Split, "random", refuse)
    monkeypatch.setattr(Split, "at_times", refuse)
    assert answers(graphsage, run, tmp_path / "after") == before
    monkeypatch.setattr(cap, "capped", refuse)
    monkeypatch.setattr(out_of_core, "cap_files", refuse)
    assert graphsage("evaluate", run).code == 0
    assert graphsage("embed", run, "--memory", "2GB", "--out", tmp_path / "z.npy").code == 0


def test_the_answers_are_those_of_the_tables_parsed_split_and_capped_again(run: Path, tmp_path: Path) -> None:
    model, fresh = load(run), load(run)
    spec = TableSpec.from_dict(fresh.about["tables"])
    data = open_tables(spec)
    graph = graph_for(fresh, data)
    own = model.run_data()
    assert own.capped is not None
    assert own.capped.num_stored_edges < own.graph.num_stored_edges
    for how in ("exact", "sampled"):
        assert model.embed(inference=how).equal(fresh.embed(graph, inference=how))
    assert model.run_split().codes.equal(data.split("time").codes)
    assert model.run_split().cutoff == data.split("time").cutoff
    assert model.evaluate(model.run_graph(), model.run_split()) == fresh.evaluate(graph, data.split("time"))
    store_from_data(tmp_path / "kept", model, own.dataset, own.graph)
    store_from_data(tmp_path / "parsed", fresh, data, graph)
    live = [files(tmp_path / name / "generation-000001") for name in ("kept", "parsed")]
    assert live[0] == live[1]


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_reordered_tables_change_nothing_and_are_named_once(
    graphsage: Command, made: Path, run: Path, tmp_path: Path
) -> None:
    before = answers(graphsage, run, tmp_path / "before")
    draw = random.Random(1)
    for name, header, rows in (("nodes", COLUMNS, node_rows()), ("edges", ("source", "target"), edge_rows())):
        write_csv(made.parent / f"{name}.csv", header, draw.sample(rows, len(rows)))
    assert answers(graphsage, run, tmp_path / "after") == before
    said = graphsage("evaluate", run).err
    assert said == "warning: nodes.csv, edges.csv changed after training; using the graph stored in the run\n"
    with pytest.warns(UserWarning, match="nodes.csv, edges.csv changed after training"):
        load(run).embed(nodes=[0])
    data = open_tables(TableSpec.from_dict(load(run).about["tables"]))  # by id, the split is the same
    assert load(run).run_split(data.graph).codes.equal(data.split("time").codes)


def test_an_edited_cell_of_the_same_length_is_noticed_and_a_new_date_of_the_file_is_not(
    graphsage: Command, made: Path, run: Path
) -> None:
    nodes = made.parent / "nodes.csv"
    content = nodes.read_bytes()
    nodes.write_bytes(content)
    assert graphsage("evaluate", run).err == ""
    nodes.write_bytes(content.replace(b"red", b"rod", 1))
    assert "nodes.csv changed after training" in graphsage("evaluate", run).err


def test_a_changed_graph_folder_is_named_and_not_read(graphsage: Command, tmp_path: Path) -> None:
    folder, run = tmp_path / "graph", tmp_path / "graph" / "run"  # the run's own files are not its input
    save_graph(planted(), folder, {"given": split()})
    assert graphsage("train", folder, "--out", run, *SMALL).code == 0
    assert graphsage("train", "--out", run, "--resume", "--epochs", 9).code == 0
    before = graphsage("evaluate", run, "--json")
    assert before.err == ""
    np.save(folder / "labels.npy", np.zeros(N, np.int64))
    after = graphsage("evaluate", run, "--json")
    assert after.json == before.json
    assert after.err == "warning: labels.npy changed after training; using the graph stored in the run\n"
    for path in folder.glob("*.npy"):
        path.write_bytes(b"")
    assert "graph.json" not in graphsage("evaluate", run).err
    assert " and 4 more files changed after training" in graphsage("evaluate", run).err


def test_data_named_on_the_command_line_is_used_as_it_is(graphsage: Command, data: Path, tmp_path: Path) -> None:
    assert graphsage("train", data, "--out", tmp_path / "run", *SMALL).code == 0
    assert (
        graphsage("evaluate", tmp_path / "run", data, "--json").json
        == graphsage("evaluate", tmp_path / "run", "--json").json
    )
    shutil.rmtree(tmp_path / "run" / "data")
    assert graphsage("evaluate", tmp_path / "run", data).code == 0
    assert "keeps no graph; name the data, or train again" in graphsage("evaluate", tmp_path / "run").error


def test_a_reference_refuses_changed_tables(graphsage: Command, tmp_path: Path) -> None:
    run = trained(tmp_path / "large", "--no-keep-graph")
    assert not (run / "data" / "graph").exists()
    assert graphsage("evaluate", run).code == 0
    assert graphsage("embed", run, "--memory", "2GB", "--out", tmp_path / "z.npy").code == 0
    np.testing.assert_allclose(np.load(tmp_path / "z.npy"), load(run).embed().numpy(), atol=1e-5)
    nodes = tmp_path / "large" / "nodes.csv"
    nodes.write_bytes(nodes.read_bytes().replace(b"red", b"rod", 1))
    error = graphsage("evaluate", run).error
    assert f"the nodes table {nodes} changed since training (fingerprint " in error
    assert error.endswith("train again or restore it")
    nodes.unlink()
    assert "is gone, and the run keeps only a reference to it" in graphsage("evaluate", run).error


def test_a_run_that_keeps_no_graph_is_refused_in_one_sentence(graphsage: Command, run: Path) -> None:
    config = read_checksummed(run / "config.json")
    del config["data"]
    write_checksummed(run / "config.json", config)
    assert "keeps no graph; name the data, or train again" in graphsage("evaluate", run).error


@pytest.mark.parametrize("name", ["graph/features.npy", "capped/indices.npy", "split.arrow", "data.json"])
def test_a_damaged_file_is_named(graphsage: Command, run: Path, name: str) -> None:
    path = run / "data" / name
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(content)
    assert str(path) in graphsage("evaluate", run).error


def test_a_folder_of_the_user_is_never_taken_for_the_data_of_a_run(
    graphsage: Command, data: Path, tmp_path: Path
) -> None:
    (tmp_path / "run" / "data").mkdir(parents=True)
    (tmp_path / "run" / "data" / "nodes.csv").write_text("id\n")
    assert "is not empty (it holds data)" in graphsage("train", data, "--out", tmp_path / "run", *SMALL).error


def test_resuming_and_overwriting_replace_what_the_run_keeps(graphsage: Command, data: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert graphsage("train", data, "--out", run, *SMALL, "--epochs", 1).code == 0
    assert graphsage("train", "--out", run, "--resume", "--epochs", 2).code == 0
    assert graphsage("evaluate", run).code == 0
    assert graphsage("train", data, "--out", run, *SMALL, "--overwrite", "--no-keep-graph").code == 0
    assert sorted(path.name for path in (run / "data").iterdir()) == ["data.json", "split.arrow"]
    assert graphsage("evaluate", run).code == 0


def test_a_resumed_training_refuses_tables_that_changed(graphsage: Command, made: Path, run: Path) -> None:
    resume = ("train", "--out", run, "--resume", "--epochs", 3)
    nodes = made.parent / "nodes.csv"
    header, first, *rest = nodes.read_text().splitlines()
    nodes.write_text("\n".join([header, first, *reversed(rest)]) + "\n")  # a split by row changes held-out nodes only
    assert f"{nodes} changed since {run} began training; restore it" in graphsage(*resume).error

"""Scores of a trained model depend on ids, features and edges, and on nothing else of the tables."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import graphsage as gs
from graphsage.errors import DataWarning
from graphsage.graph.ids import NodeIds
from graphsage.inference.export import graph_for
from hub_tables import SETTINGS, by_id, hub_tables, train
from planted import planted_graph, planted_split

SMALL: dict[str, Any] = {"dim": 8, "sample_sizes": (4, 3), "steps": 2, "device": "cpu"}
SEEDS = st.integers(0, 2**31 - 1)
few = settings(max_examples=3)


def same(a: dict[str, Any], b: dict[str, Any]) -> None:
    assert a.keys() == b.keys()
    assert max(float(np.abs(a[id] - b[id]).max()) for id in a) <= 1e-5


@pytest.mark.parametrize("name", SETTINGS)
@few
@given(seed=SEEDS, order=SEEDS, integers=st.booleans())
def test_the_order_of_rows_and_unused_columns_change_no_score(name: str, seed: int, order: int, integers: bool) -> None:
    tables = hub_tables(seed, integers)
    data = tables.data()
    model = train(data, **SETTINGS[name])
    before = graph_for(model, data)
    other = tables.shuffled(order)
    after = graph_for(model, other.data(note=lambda count: [f"row {i}" for i in range(count)]))
    same(by_id(before, model.embed(before)), by_id(after, model.embed(after)))
    for part in ("train", "val", "test"):
        assert model.evaluate(after, model.run_split(after), part) == model.evaluate(part=part)
    if model.head is not None:
        same(by_id(before, model.predict_proba(before)), by_id(after, model.predict_proba(after)))


@few
@given(seed=SEEDS, names=st.permutations([f"name {i}" for i in range(99)]))
def test_new_names_of_the_nodes_change_no_score_without_a_cap(seed: int, names: list[str]) -> None:
    tables = hub_tables(seed)
    other = tables.renamed(dict(zip((row[0] for row in tables.nodes), names, strict=False)))
    a, b = train(tables.data()), train(other.data())
    assert float((a.embed() - b.embed()).abs().max()) <= 1e-5
    assert a.evaluate() == b.evaluate()


@pytest.mark.parametrize("name", SETTINGS)
@few
@given(seed=SEEDS, order=SEEDS, integers=st.booleans())
def test_a_new_row_gets_the_vector_that_it_would_have_as_a_test_row(
    name: str, seed: int, order: int, integers: bool
) -> None:
    tables = hub_tables(seed, integers)
    data = tables.data()
    model = train(data, **SETTINGS[name])
    whole = graph_for(model, data)
    z = by_id(whole, model.embed(whole))
    for row in model.run_split().nodes("test").tolist()[:3]:
        id = whole.id_of(row)
        rest, own = tables.without(id)
        graph = graph_for(model, rest.shuffled(order).data())
        new_nodes, new_edges = own.columns()
        made = model.embed(graph, new_nodes=new_nodes, new_edges=new_edges)
        same({"z": made[0].numpy()}, {"z": z[str(id)]})


def test_tables_have_hubs_and_the_cap_takes_edges() -> None:
    said: list[str] = []
    gs.train(hub_tables(0).data(), device="cpu", on_note=said.append, steps=1, dim=4, **SETTINGS["row cap"])
    assert len(said) == 1
    assert "at most 4 neighbors per node (row): removes" in said[0]
    assert "0 nodes lose all neighbors" in said[0]


def test_a_split_of_another_length_is_refused() -> None:
    graph = planted_graph()
    model = gs.train(graph, planted_split(graph), **SMALL)
    with pytest.raises(gs.DataError, match="the split has 7 nodes and the graph 120; give its own split"):
        model.evaluate(graph, gs.Split.random(7))


def test_without_a_split_a_graph_is_split_as_on_the_command_line() -> None:
    graph = planted_graph()
    model, given = gs.train(graph, **SMALL), gs.train(graph, "random", **SMALL)
    assert model.run_split().sizes() == {"train": 84, "val": 12, "test": 24}
    assert model.run_split().codes.equal(given.run_split().codes)
    assert model.embed().equal(given.embed(graph))
    assert model.evaluate() == given.evaluate(graph, gs.Split.random(120), "test")


@pytest.mark.parametrize("saved", [False, True])
def test_nodes_that_were_trained_on_are_no_test_nodes(saved: bool, tmp_path: Path) -> None:
    graph = planted_graph().replace(ids=NodeIds.of([f"node {v}" for v in range(120)]))
    split, other = planted_split(graph), planted_split(graph, seed=1)
    model = gs.train(graph, split, out=tmp_path / "run", **SMALL)
    if saved:
        model = gs.load(tmp_path / "run")
        graph = model.run_graph()
    trained = int((split.codes[other.nodes("test")] == 0).sum())
    with pytest.raises(gs.DataError, match=f"{trained} of the 24 test nodes were trained on, so this is no test score"):
        model.evaluate(graph, other)
    assert model.evaluate(graph, other, "train").nodes == 72
    assert model.evaluate(graph, split) == model.evaluate()
    grown = graph.with_nodes(features=[[0.0] * 6], edges=[(0, 120)], ids=["new"])
    with pytest.warns(DataWarning, match=f"{trained} of the 24 test nodes have ids of trained nodes"):
        model.evaluate(grown, gs.Split(torch.cat([other.codes, other.codes[:1] * 0 + 3])))


def test_a_loaded_model_knows_its_trained_nodes_in_a_graph_without_ids(tmp_path: Path) -> None:
    graph = planted_graph()
    gs.train(graph, gs.Split(torch.zeros(120, dtype=torch.uint8)), out=tmp_path / "run", **SMALL)
    with pytest.raises(gs.DataError, match="24 of the 24 test nodes were trained on"):
        gs.load(tmp_path / "run").evaluate(planted_graph(), gs.Split.random(120))


def test_a_model_of_another_graph_of_the_same_size_is_not_suspected() -> None:
    graph, other = planted_graph(), planted_graph(seed=5)
    model = gs.train(graph, planted_split(graph), **SMALL)
    assert model.evaluate(other, gs.Split.random(120), "test").nodes == 24


def test_arrays_are_no_graph_and_rows_are_integers() -> None:
    graph = planted_graph()
    model = gs.train(graph, planted_split(graph), **SMALL)
    for call in (model.embed, model.predict, model.evaluate):
        with pytest.raises(gs.ConfigError, match=r"must be a Graph; got ndarray; make one with Graph\.from_edges"):
            call(np.eye(6))  # type: ignore[arg-type]
    with pytest.raises(gs.ConfigError, match="data must be a Graph or a Dataset; got ndarray"):
        gs.train(np.eye(6))  # type: ignore[arg-type]
    with pytest.raises(gs.ConfigError, match="split must be a Split or a name; got ndarray"):
        gs.train(graph, np.zeros(120), **SMALL)  # type: ignore[arg-type]
    assert model.embed(graph, np.array([3, 1])).equal(model.embed(graph, [3, 1]))
    for nodes in (np.array([0.5]), np.ones(120, bool), ["a"], [[1]]):
        with pytest.raises(gs.DataError, match=r"nodes must be row numbers, \(B,\); got"):
            model.embed(graph, nodes)  # type: ignore[arg-type]

"""The service, predict and embed (in memory, out of core, new rows, Python) agree on all nodes of a graph with hubs."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from starlette.testclient import TestClient

import graphsage as gs
from graphsage.graph.storage import save_graph
from graphsage.inference.export import graph_for
from graphsage.inference.out_of_core.embed import embed_in_blocks, embedding_batches
from graphsage.inference.out_of_core.plan import Budget
from graphsage.live.node_features import store_from_data
from graphsage.serving.app import make_app
from graphsage.serving.service import Service
from graphsage.serving.settings import Settings
from hub_tables import SETTINGS, Tables, by_id, hub_tables, train

Vectors = dict[str, np.ndarray[Any, Any]]


def same(a: Vectors, b: Vectors) -> None:
    assert a.keys() == b.keys()
    assert max(float(np.abs(a[id] - b[id]).max()) for id in a) <= 1e-5


def answers(run: Path, store: Path, tables: Tables, asked: dict[str, Any], classes: bool) -> tuple[Vectors, list[Any]]:
    """What a service over the graph of `tables` says of `asked`: vectors, and classes if the model has some."""
    model = gs.load(run)
    data = tables.data()
    store_from_data(store, model, data, graph_for(model, data))
    service = Service(run, store, Settings(deadline=120.0))  # however busy the machine is
    try:
        client = TestClient(make_app(service))
        found = client.post("/v1/embed", json=asked).json()["results"]
        said = client.post("/v1/predict", json=asked).json()["results"] if classes else []
    finally:
        service.close()
    return {each["id"]: np.array(each["embedding"]) for each in found}, [each["class"] for each in said]


@pytest.mark.parametrize("name", SETTINGS)
def test_every_path_gives_a_node_the_same_vector_and_class(name: str, tmp_path: Path) -> None:
    tables = hub_tables(7)
    data, run = tables.data(), tmp_path / "run"
    model = train(data, out=run, **SETTINGS[name])
    graph = graph_for(model, data)
    z = by_id(graph, model.embed(graph))
    loaded = gs.load(run)
    same(z, by_id(graph, loaded.embed()))  # lists that the run keeps
    other = graph_for(model, tables.shuffled(1).data())
    same(z, by_id(other, loaded.embed(other)))

    if loaded.inference == "exact":
        save_graph(other, tmp_path / "graph")
        found = embed_in_blocks(
            loaded, tmp_path / "graph", tmp_path / "work", budget=Budget(25_000 if name == "lstm" else 1500)
        )
        assert found.blocks > 2
        batches = embedding_batches(found, other, kept_by=loaded if loaded.keep_features else None)
        same(z, by_id(other, torch.cat([torch.as_tensor(batch["embedding"]) for batch in batches])))

    classes = model.head is not None
    served, said = answers(run, tmp_path / "whole", tables.shuffled(2), {"ids": [*z]}, classes)
    same(z, served)
    if classes:
        assert graph.class_names is not None
        predicted = model.predict(graph)
        assert said == [graph.class_names[int(predicted[graph.rows_of([id])[0]])] for id in z]

    id, x, y, _ = tables.nodes[int(model.run_split().nodes("test")[0])]
    rest, own = tables.without(id)
    ends = [a if b == id else b for a, b in own.edges]
    sent = {"id": id, "attributes": {"x": x, "y": y}, "edges": ends}
    served, _ = answers(run, tmp_path / "rest", rest, {"nodes": [sent]}, classes)
    same(served, {id: z[id]})
    new_nodes, new_edges = own.columns()
    made = loaded.embed(graph_for(model, rest.data()), new_nodes=new_nodes, new_edges=new_edges)
    same({id: made[0].numpy()}, {id: z[id]})

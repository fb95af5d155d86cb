"""Attributes for the map: which can color points, their values, and the search in their text."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.testclient import TestClient

from graphsage.errors import StoreError
from graphsage.graph.build import from_edges
from graphsage.live.adjacency import BaseCap, Cap
from graphsage.live.change import Change, NodeChange
from graphsage.live.generation import generation_of, with_text_ids
from graphsage.live.overlay import Overlay
from graphsage.live.store import LiveGraph, create_store
from graphsage.serving import routes
from graphsage.serving.map_attributes import containing, offered, values_of
from graphsage.serving.service import Service

COUNT = 40
TEXTS = ("Ein Straßenname", 'a "quoted" word', "Pythagoras and a long introduction of no interest", "pythagoras", "é")


def described(row: int) -> dict[str, Any]:
    said = {"size": row / 2, "group": "abc"[row % 3], "made": f"2020-01-{row % 28 + 1:02}", "yes": row % 2 == 0}
    said |= {"text": TEXTS[row % 5] + " " + "x" * row, "list": [row], "name": f"name {row}"}
    return {} if row == 7 else said


@pytest.fixture
def live(tmp_path: Path) -> Iterator[LiveGraph]:
    edges = np.array([(0, row) for row in range(1, COUNT)])
    x = np.zeros((COUNT, 2), np.float32)
    graph = from_edges(edges, COUNT, features=x, ids=[f"node-{row}" for row in range(COUNT)])
    create_store(tmp_path / "store", graph, [described(row) for row in range(COUNT)])
    opened = LiveGraph(tmp_path / "store", Cap(None, "row", 0))
    yield opened
    opened.close()


def changed(live: LiveGraph) -> Overlay:
    """The graph with a node more, one less and one with another group."""
    z = np.zeros(2, np.float32)
    live.submit(
        Change((NodeChange("new", z, {"group": "d", "text": "Thales"}), NodeChange("node-4", None, {"group": "d"})))
    ).result()
    live.submit(Change(removed_nodes=("node-3",))).result()
    return live.frozen()[0]


def by_id(overlay: Overlay, name: str) -> dict[str, Any]:
    answer = values_of(overlay, name)
    assert answer is not None
    names = answer.get("names")
    values = answer["values"] if names is None else [None if v is None else names[v] for v in answer["values"]]
    return dict(zip(answer["ids"], values, strict=True))


def test_short_texts_numbers_dates_and_the_degree_are_offered(live: LiveGraph) -> None:
    types = {"size": "number", "group": "category", "made": "date", "yes": "category", "degree": "degree"}
    assert offered(live.frozen()[0]) == types, "text, list and name have too long, wrong or too many values"


def test_every_present_node_has_its_value(live: LiveGraph) -> None:
    overlay = changed(live)
    ids = {f"node-{row}" for row in range(COUNT)} - {"node-3"} | {"new"}
    groups = by_id(overlay, "group")
    assert groups.keys() == ids
    assert groups == {id: "abc"[int(id[5:]) % 3] for id in ids - {"new"}} | {"new": "d", "node-4": "d", "node-7": None}
    assert by_id(overlay, "size")["node-9"] == 4.5
    assert by_id(overlay, "made")["node-0"] == 18262
    assert by_id(overlay, "yes")["node-8"] == "True"
    assert by_id(overlay, "degree") == dict.fromkeys(ids, 0) | dict.fromkeys(ids - {"new"}, 1) | {"node-0": COUNT - 2}
    assert values_of(overlay, "text") is None
    assert values_of(overlay, "nothing") is None


def test_an_attribute_called_degree_comes_before_the_graphs(live: LiveGraph) -> None:
    change = Change(tuple(NodeChange(f"node-{row}", None, {"degree": "BSc"}) for row in range(COUNT)))
    live.submit(change).result()
    overlay = live.frozen()[0]
    assert offered(overlay)["degree"] == "category"
    assert set(by_id(overlay, "degree").values()) == {"BSc"}


@given(st.sampled_from(["pythagoras", "PYTHAGORAS", "ß", '"quoted"', "é", "É", "xxxxxxxxx", "nowhere", "group", "A"]))
def test_the_search_finds_what_reading_all_texts_finds(text: str) -> None:
    truth = {
        f"node-{row}"
        for row in range(COUNT)
        if any(text.lower() in value.lower() for value in described(row).values() if isinstance(value, str))
    }
    found = containing(in_memory(), text, 100)
    assert {each["id"] for each in found["results"]} == truth
    assert (found["matches"], found["complete"]) == (len(truth), True)


@cache
def in_memory() -> Overlay:
    graph = from_edges(np.array([(0, 1)]), COUNT, ids=[f"node-{row}" for row in range(COUNT)])
    base = generation_of(with_text_ids(graph), [described(row) for row in range(COUNT)])
    return Overlay(base, BaseCap(base, Cap(None, "row", 0)))


def test_early_matches_come_first_with_the_text_around(live: LiveGraph) -> None:
    found = containing(live.frozen()[0], "PYTHAGORAS", 3)
    assert [each["id"] for each in found["results"]] == ["node-2", "node-3", "node-8"]
    assert found["results"][0]["text"].startswith("Pythagoras and a long")
    assert found["matches"] == 15
    late = containing(live.frozen()[0], "interest", 1)["results"][0]["text"]
    assert late.startswith("… ")
    assert "no interest" in late


def test_changed_nodes_are_searched_as_they_are(live: LiveGraph) -> None:
    overlay = changed(live)
    assert [each["id"] for each in containing(overlay, "thales", 5)["results"]] == ["new"]
    assert "node-3" not in {each["id"] for each in containing(overlay, "pythagoras", 100)["results"]}


def test_a_search_that_runs_out_of_time_says_so(live: LiveGraph) -> None:
    assert not containing(live.frozen()[0], "pythagoras", 5, seconds=-1)["complete"]


def test_the_routes_answer_and_refuse(client: TestClient, service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    attributes = client.get("/v1/map/attributes").json()["attributes"]
    assert {"name": "size", "type": "number"} in attributes
    assert {"name": "degree", "type": "number"} in attributes
    values = client.get("/v1/map/values", params={"attribute": "size"}).json()
    assert dict(zip(values["ids"], values["values"], strict=True))["node-3"] == 3
    assert client.get("/v1/map/values", params={"attribute": "<b>"}).status_code == 404
    found = client.get("/v1/map/find", params={"text": "Topology item 2", "k": 5}).json()
    assert {each["id"] for each in found["results"]} == {"node-2", "node-23"}
    assert client.get("/v1/map/find", params={"text": ""}).status_code == 422
    monkeypatch.setattr(routes, "COLORED_NODES", 10)
    refused = client.get("/v1/map/values", params={"attribute": "size"})
    assert (refused.status_code, refused.json()["detail"]) == (422, "points are colored by attributes up to 10 nodes")


def test_a_search_refuses_damaged_texts(tmp_path: Path) -> None:
    graph = from_edges(np.array([(0, 1)]), COUNT, ids=[f"node-{row}" for row in range(COUNT)])
    create_store(tmp_path / "store", graph, [{"text": f"{row} " + "x" * 5_000} for row in range(COUNT)])
    (file,) = (tmp_path / "store").glob("generation-*/attributes_text.npy")
    content = bytearray(file.read_bytes())
    content[100_000] ^= 1  # in the second block, which opening does not read
    file.write_bytes(content)
    with LiveGraph(tmp_path / "store", Cap(None, "row", 0)) as live, pytest.raises(StoreError, match="attributes_text"):
        containing(live.frozen()[0], "nowhere", 5)

"""Searches and reads while the graph changes: no deleted node, no old neighborhood, no mixture of two states."""

import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from starlette.testclient import TestClient

from graphsage.errors import DamageError
from graphsage.inference.nearest import NearestIndex
from graphsage.live.change import Change, NodeChange
from graphsage.serving import index
from graphsage.serving.app import make_app
from graphsage.serving.service import Service
from graphsage.serving.settings import Settings
from small_service import NEW, N, Small, eventually


def found(client: TestClient, id: str, k: int = N + 5) -> dict[str, float]:
    answer = client.post("/v1/search", json={"id": id, "k": k})
    assert answer.status_code == 200, answer.text
    return {each["id"]: each["cosine"] for each in answer.json()["results"]}


def vectors(client: TestClient, *ids: str) -> np.ndarray:
    results = client.post("/v1/embed", json={"ids": ids}).json()["results"]
    z = np.array([each["embedding"] for each in results])
    return z / np.linalg.norm(z, axis=1, keepdims=True)


def test_a_search_leaves_out_nodes_that_the_index_still_has(
    client: TestClient, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    eventually(service.updater.caught_up)
    assert len(found(client, "node-1")) == N - 1
    monkeypatch.setattr(service.updater, "touch", lambda ids: None)  # as during a long rebuild
    near = list(found(client, "node-1", 6))
    for id in near[:4]:
        assert client.delete(f"/v1/nodes/{id}").status_code == 200
    few = found(client, "node-1", 2)
    assert len(few) == 2
    assert not {*few} & {*near[:4]}
    assert len(found(client, "node-1")) == N - 5


@pytest.mark.parametrize("what", ["node", "edge"])
def test_a_deletion_updates_the_former_neighbors(client: TestClient, service: Service, what: str) -> None:
    eventually(service.updater.caught_up)
    around = [id for id in client.get("/v1/nodes/node-0").json()["neighbors"] if id != "node-0"]
    if what == "node":
        assert client.delete("/v1/nodes/node-0").status_code == 200
    else:
        around = ["node-0", around[0]]
        assert client.delete("/v1/edges", params={"source": "node-0", "target": around[1]}).status_code == 200
    eventually(service.updater.caught_up)
    for id in around:
        cosines = found(client, id)
        assert {other: cosines[other] for other in around if other != id} == pytest.approx(
            {other: float(np.prod(vectors(client, id, other), axis=0).sum()) for other in around if other != id},
            abs=1e-5,
        )


def test_changes_reach_the_search_during_a_rebuild(
    client: TestClient, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    eventually(service.updater.caught_up)
    begun, finish, build = threading.Event(), threading.Event(), NearestIndex.build

    def slowly(*arguments: Any) -> NearestIndex:
        begun.set()
        assert finish.wait(60)
        return build(*arguments)

    monkeypatch.setattr(NearestIndex, "build", slowly)
    monkeypatch.setattr(index, "REBUILD_LEAST", 0)
    monkeypatch.setattr(index, "REBUILD_SHARE", 0)
    client.put("/v1/nodes/first", json=NEW)
    assert begun.wait(20)
    old = service.updater.index
    embedded = service.metrics.embedded._value.get
    client.put("/v1/nodes/second", json=NEW)
    client.delete("/v1/nodes/node-2")
    try:
        eventually(lambda: "second" in found(client, "node-1"))
        assert "node-2" not in found(client, "node-1")
        assert service.updater.index is old
    finally:
        monkeypatch.setattr(index, "REBUILD_LEAST", 1000)
        eventually(lambda: not service.updater._touched and not service.updater._busy)
        before = embedded()
        finish.set()
    eventually(lambda: service.updater.index is not old)
    assert embedded() == before  # nothing twice
    after = found(client, "node-1")
    assert {"first", "second"} <= {*after}
    assert "node-2" not in after
    eventually(service.updater.caught_up)
    assert service.updater.map is not None
    assert service.updater.map.place("second") not in (None, (0.0, 0.0))
    assert service.updater.map.place("node-2") is None


def test_the_index_is_not_rebuilt_again_and_again(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    eventually(service.updater.caught_up)
    monkeypatch.setattr(index, "REBUILD_LEAST", 0)
    updater, base = service.updater, service.updater.index
    assert base is not None
    updater._stop.set()
    updater._thread.join()
    base.stale.update(range(N // 3))
    monkeypatch.setattr(updater, "_rested", float("inf"))
    assert not updater._needs_building()
    base.stale.update(range(N // 2 + 1))  # half of it must not be outdated, however short the pause
    assert updater._needs_building()
    base.stale = {*range(N // 3)}
    monkeypatch.setattr(updater, "_rested", 0.0)
    assert updater._needs_building()


@pytest.mark.parametrize("busy", [True, False])
def test_updating_the_index_leaves_time_to_further_changes(
    service: Service, monkeypatch: pytest.MonkeyPatch, busy: bool
) -> None:
    eventually(service.updater.caught_up)
    rested: list[float] = []

    def refresh() -> bool:
        if busy:
            service.live.apply(Change((NodeChange("node-1", None, {"size": 1.0}),)))
        time.sleep(0.02)
        return True

    monkeypatch.setattr(service.updater._stop, "wait", lambda seconds: rested.append(seconds))
    monkeypatch.setattr(service.updater, "_refresh", refresh)
    time.sleep(0.5)
    service.updater._stop.set()
    service.updater._thread.join()
    assert bool(sum(each >= 0.02 for each in rested) > 3) == busy


def test_a_build_does_not_keep_the_service_from_ending(
    small: Small, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, copied = threading.Event(), small.copy(tmp_path)

    def endless(*_: Any, on_block: Any = None, **__: Any) -> None:
        begun.set()
        end = time.monotonic() + 30
        while time.monotonic() < end:
            time.sleep(0.01)
            if on_block is not None:
                on_block(0, 1)

    monkeypatch.setattr(index, "embed_exact", endless)
    service = Service(copied.run, copied.graph, map_method="pca")
    assert begun.wait(20)
    began = time.monotonic()
    service.close()
    assert time.monotonic() - began < 10


def test_an_index_that_cannot_be_built_is_not_said_to_be_coming(
    small: Small, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise DamageError("a block is damaged")

    copied, build = small.copy(tmp_path), index.embed_everything
    monkeypatch.setattr(index, "embed_everything", broken)
    service = Service(copied.run, copied.graph, Settings(deadline=60.0))
    try:
        client = TestClient(make_app(service), raise_server_exceptions=False)

        def said(method: str, path: str, body: Any = None) -> str:
            answer = client.request(method, path, json=body)
            assert answer.status_code == 503
            return str(answer.json().get("detail") or answer.json()["status"])

        eventually(lambda: "damaged" in service.updater.missing)
        asked = [said("POST", "/v1/search", {"id": "node-1"}), said("GET", "/v1/map"), said("GET", "/readyz")]
        assert asked == [
            "the search index could not be built from the damaged live graph; see the log",
            "the map could not be built from the damaged live graph; see the log",
            "the search index could not be built from the damaged live graph; see the log",
        ]
        monkeypatch.setattr(index, "embed_everything", build)
        eventually(service.updater.caught_up)
        assert client.post("/v1/search", json={"id": "node-1"}).status_code == 200
    finally:
        service.close()


def test_a_node_whose_vector_overflows_does_not_hold_up_the_others(client: TestClient, service: Service) -> None:
    eventually(service.updater.caught_up)
    huge = np.full(service.model.rows.width, 3e38, np.float32)  # the service refuses this; a graph may bring it along
    lone = NodeChange("lone", huge)
    fine = NodeChange("fine", np.ones_like(huge))
    service.live.apply(Change((lone, fine)))
    eventually(service.updater.caught_up)
    names = found(client, "node-1")
    assert "fine" in names
    assert "lone" not in names


def test_the_answer_about_a_node_is_of_one_state(client: TestClient, service: Service) -> None:
    stop = threading.Event()
    width = service.model.rows.width
    made = []

    def write() -> None:
        while not stop.is_set():
            number = len(made) + 1
            x = np.full(width, number % 7, np.float32)
            made.append(service.live.apply(Change((NodeChange("node-3", x, {"number": number}),))))

    writer = threading.Thread(target=write)
    writer.start()
    try:
        eventually(lambda: len(made) > 0)
        for _ in range(60):
            answer = client.get("/v1/nodes/node-3").json()
            assert answer["attributes"]["number"] == answer["graph"]["sequence"]
    finally:
        stop.set()
        writer.join()
    assert len(made) > 60

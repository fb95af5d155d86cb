"""The routes of a model that was trained for links."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from starlette.testclient import TestClient

from graphsage.model.links import LinkHead
from graphsage.serving.app import make_app
from graphsage.serving.client import Client, Node, ServiceError
from graphsage.serving.service import Service
from graphsage.serving.settings import Settings
from small_service import NEW, N, Small, eventually, small_model
from small_service import served as running

HEADS = {
    "dot": {},
    "bilinear": {"decoder": "bilinear"},
    "mlp": {"decoder": "mlp"},
    "popular": {"popularity": True},
    "tower": {"in_dim": 5, "popularity": True},
}


def with_links(small: Small, folder: Path, head: str) -> Small:
    copied = small.copy(folder)
    model, x = small_model()
    torch.manual_seed(1)
    settings = dict(HEADS["popular" if head == "table" else head])
    model.about["pairs"] = "checksum" if head == "table" else None
    settings |= {"in_dim": x.shape[1]} if "in_dim" in settings else {}
    model.links = LinkHead(8, **settings)
    for parameter in model.links.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    model.save(copied.run)
    return copied


def test_the_client_asks_for_links(small: Small, tmp_path: Path) -> None:
    with running(with_links(small, tmp_path, "dot")) as (_, address), Client(address, retries=50) as client:
        found = client.recommend("node-2", k=4)
        assert len(found) == 4
        assert found.recall == 1.0
        scores = client.score([("node-2", one.id) for one in found])
        assert scores.results == pytest.approx([one.score for one in found], rel=1e-4)
        assert len(client.recommend(node=Node(**NEW), k=2)) == 2
        with pytest.raises(ServiceError, match=r"pairs\[1\]"):
            client.score([("node-1", "node-2"), ("node-1", "node-1")])


@pytest.fixture
def served(request: pytest.FixtureRequest, small: Small, tmp_path: Path) -> Iterator[tuple[Service, TestClient]]:
    copied = with_links(small, tmp_path, request.param)
    service = Service(copied.run, copied.graph, Settings(deadline=60.0))
    client = TestClient(make_app(service), raise_server_exceptions=False)
    eventually(lambda: service.updater.index is not None)
    try:
        yield service, client
    finally:
        service.close()


def score(client: TestClient, source: str, target: str) -> float:
    answer = client.post("/v1/score", json={"pairs": [{"source": source, "target": target}]})
    assert answer.status_code == 200, answer.text
    (found,) = answer.json()["results"]
    assert (found["source"], found["target"]) == (source, target)
    return found["score"]


@pytest.mark.parametrize("served", ["dot", "bilinear"], indirect=True)
def test_recommendations_are_the_best_scores_of_unlinked_nodes(served: tuple[Service, TestClient]) -> None:
    _, client = served
    assert client.get("/v1/model").json()["recommends"] is True
    linked = set(client.get("/v1/nodes/node-2").json()["neighbors"])
    found = client.post("/v1/recommend", json={"id": "node-2", "k": N}).json()
    assert {one["id"] for one in found["results"]} == {f"node-{v}" for v in range(N)} - linked - {"node-2"}
    scores = [one["score"] for one in found["results"]]
    assert scores == sorted(scores, reverse=True)
    np.testing.assert_allclose(
        scores[:3], [score(client, "node-2", one["id"]) for one in found["results"][:3]], rtol=1e-4
    )
    few = client.post("/v1/recommend", json={"id": "node-2", "k": 3}).json()["results"]
    assert [one["id"] for one in few] == [one["id"] for one in found["results"][:3]]
    new = client.post("/v1/recommend", json={"node": NEW, "k": N}).json()["results"]
    assert {"node-1", "node-4"}.isdisjoint(one["id"] for one in new)
    assert len(new) == N - 2


@pytest.mark.parametrize("served", list(HEADS), indirect=True)
def test_an_edge_never_changes_its_own_score(served: tuple[Service, TestClient]) -> None:
    service, client = served
    edges = set(client.get("/v1/nodes/node-3?neighbors=99").json()["neighbors"])
    other = next(f"node-{v}" for v in range(N) if v != 3 and f"node-{v}" not in edges)
    before = score(client, "node-3", other), score(client, other, "node-3")
    client.put("/v1/edges", json={"edges": [{"source": other, "target": "node-3"}]})
    assert other in client.get("/v1/nodes/node-3?neighbors=99").json()["neighbors"]
    assert (score(client, "node-3", other), score(client, other, "node-3")) == before
    third = next(id for id in edges if id != "node-3")
    client.delete("/v1/edges", params={"source": "node-3", "target": third})
    tower = service.model.links is not None and service.model.links.tower is not None
    changed = (score(client, other, "node-3") != before[1], score(client, "node-3", other) != before[0])
    assert changed == (True, not tower)  # a tower does not read the edges of a source


@pytest.mark.parametrize("served", ["mlp", "popular", "tower"], indirect=True)
def test_other_models_score_and_say_what_they_cannot(served: tuple[Service, TestClient]) -> None:
    _, client = served
    assert client.get("/v1/model").json()["recommends"] is False
    answer = client.post("/v1/recommend", json={"id": "node-1"})
    assert answer.status_code == 409
    assert "use graphsage recommend" in answer.json()["detail"]


@pytest.mark.parametrize("served", ["table"], indirect=True)
def test_a_count_of_the_links_of_a_table_is_refused(served: tuple[Service, TestClient]) -> None:
    _, client = served
    answer = client.post("/v1/score", json={"pairs": [{"source": "node-1", "target": "node-2"}]})
    assert answer.status_code == 409
    assert "the links of its table of pairs" in answer.json()["detail"]
    assert "use graphsage score" in answer.json()["detail"]


@pytest.mark.parametrize("served", ["dot"], indirect=True)
@pytest.mark.parametrize(
    ("pairs", "status", "detail"),
    [
        ([["node-1", "node-1"]], 422, "pairs[0] joins a node with itself"),
        ([["node-1", "node-2"], ["node-1", "nobody"]], 404, "pairs[1].target is not in the graph"),
        ([], 422, "pairs"),
    ],
)
def test_wrong_pairs_are_refused_together(
    served: tuple[Service, TestClient], pairs: list[list[str]], status: int, detail: str
) -> None:
    _, client = served
    body = {"pairs": [{"source": a, "target": b} for a, b in pairs]}
    answer = client.post("/v1/score", json=body)
    assert answer.status_code == status
    assert detail in answer.json()["detail"]


def test_a_model_of_classes_has_no_links(client: TestClient, service: Service) -> None:
    eventually(lambda: service.updater.index is not None)
    for path, body in (
        ("/v1/recommend", {"id": "node-1"}),
        ("/v1/score", {"pairs": [{"source": "node-1", "target": "node-2"}]}),
    ):
        answer = client.post(path, json=body)
        assert answer.status_code == 409
        assert "was not trained for links" in answer.json()["detail"]


@pytest.mark.parametrize("served", ["dot"], indirect=True)
@pytest.mark.parametrize("body", [{}, {"id": "node-1", "node": NEW}, {"id": "nobody"}, {"id": "node-1", "k": 0}])
def test_questions_without_an_answer_are_refused(served: tuple[Service, TestClient], body: dict) -> None:
    _, client = served
    assert client.post("/v1/recommend", json=body).status_code in (404, 422)

"""Every route does what it says, through HTTP."""

import base64
import errno
import json
import os
import threading
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest
import torch
from starlette.testclient import TestClient

from graphsage.errors import BundleError
from graphsage.inference.model import Model
from graphsage.live.change import Change, NodeChange
from graphsage.live.embed import LiveEncoder
from graphsage.live.manifest import write_manifest
from graphsage.live.overlay_view import Target
from graphsage.model.encoder import Encoder, EncoderConfig
from graphsage.sampling.minibatch import SamplingConfig
from graphsage.serving.app import make_app
from graphsage.serving.service import Service
from small_service import KINDS, NEW, N, Small, eventually, small_model


def vectors(client: TestClient, **asked: object) -> list[list[float]]:
    answer = client.post("/v1/embed", json=asked)
    assert answer.status_code == 200, answer.text
    return [each["embedding"] for each in answer.json()["results"]]


def test_embeddings_are_those_of_the_model(client: TestClient, service: Service) -> None:
    model, _ = small_model()
    with service.live.reading() as (overlay, _):
        rows = [row for id in ("node-3", "node-0") if (row := overlay.find(id)) is not None]
        z = LiveEncoder.of(model).embed([Target(overlay, row) for row in rows])
    answer = client.post("/v1/embed", json={"ids": ["node-3", "node-0"]}).json()
    assert answer["graph"] == {"generation": 1, "sequence": 0}
    assert answer["model"] == service.model.version
    assert (answer["dim"], [each["id"] for each in answer["results"]]) == (8, ["node-3", "node-0"])
    assert torch.equal(torch.tensor([each["embedding"] for each in answer["results"]]), z)


def test_base64_carries_the_same_bits(client: TestClient) -> None:
    plain = vectors(client, ids=["node-1"])[0]
    packed = client.post("/v1/embed", json={"ids": ["node-1"], "encoding": "base64"}).json()["results"][0]["embedding"]
    assert np.frombuffer(base64.b64decode(packed), "<f4").tolist() == plain


def test_a_node_is_the_same_alone_in_a_batch_and_stored(client: TestClient) -> None:
    node = {"id": "new", **NEW}
    alone = vectors(client, nodes=[node])[0]
    others = [{"attributes": {"words": f"about {k}", "size": 1}, "edges": ["node-0"]} for k in KINDS]
    assert vectors(client, ids=["node-2"], nodes=[*others, node])[4] == alone
    assert client.get("/v1/model").json()["graph"]["sequence"] == 0, "asking stored something"
    model = client.get("/v1/model").json()["model"]
    stored = {"model": model, "graph": {"generation": 1, "sequence": 1}}
    assert client.put("/v1/nodes", json={"nodes": [node]}).json() == stored
    assert vectors(client, ids=["new"])[0] == alone
    assert client.post("/v1/admin/compact").json() == {"model": model, "graph": {"generation": 2, "sequence": 1}}
    assert vectors(client, ids=["new"])[0] == alone


def test_ready_features_do_the_same_as_attributes(client: TestClient, service: Service) -> None:
    x = service.model.rows.features([NEW["attributes"]], [None])[0]  # type: ignore[list-item]
    assert x is not None
    ready = {"id": "new", "features": x.tolist(), "edges": NEW["edges"]}
    assert vectors(client, nodes=[ready]) == vectors(client, nodes=[{"id": "new", **NEW}])


def test_predictions_are_probabilities_best_first(client: TestClient) -> None:
    answer = client.post("/v1/predict", json={"ids": ["node-5"], "nodes": [NEW]}).json()["results"]
    assert [each["id"] for each in answer] == ["node-5", None]
    for each in answer:
        p = list(each["probabilities"].values())
        assert p == sorted(p, reverse=True)
        assert sum(p) == pytest.approx(1)
        assert each["class"] == next(iter(each["probabilities"]))
        assert {*each["probabilities"]} == {*KINDS}


def test_head_is_answered_as_get(client: TestClient) -> None:
    for path in ("/healthz", "/", "/v1/nodes/node-1"):
        assert client.head(path).status_code == 200


def test_an_address_that_is_almost_right_is_a_problem_and_not_a_redirect(client: TestClient) -> None:
    answer = client.post("/v1/embed/", json={"ids": ["node-1"]}, follow_redirects=False)
    assert answer.status_code == 404
    assert answer.headers["content-type"] == "application/problem+json"


def test_looking_at_a_node(client: TestClient) -> None:
    said = client.get("/v1/nodes/node-0", params={"neighbors": 3}).json()
    assert said["attributes"] == {"words": "about algebra item 0", "size": None}
    assert (said["label"], len(said["neighbors"])) == ("algebra", 3)
    assert said["degree"] >= 11
    assert {*said["prediction"]["probabilities"]} == {*KINDS}
    assert client.get("/v1/nodes/nobody").status_code == 404


def test_changes_can_be_seen_and_undone(client: TestClient) -> None:
    strange = "a/b c?d#π%\n"
    put = client.put("/v1/nodes", json={"nodes": [{"id": strange, "label": "logic", **NEW}]})
    assert put.status_code == 200, put.text
    path = f"/v1/nodes/{quote(strange)}"
    assert client.get(path).json()["label"] == "logic"
    assert client.get(path).json()["neighbors"] == ["node-1", "node-4"]
    assert client.put("/v1/edges", json={"edges": [{"source": strange, "target": "node-9"}]}).status_code == 200
    assert strange in client.get("/v1/nodes/node-9").json()["neighbors"]
    assert client.delete("/v1/edges", params={"source": "node-9", "target": strange}).status_code == 200
    assert client.get(path).json()["neighbors"] == ["node-1", "node-4"]
    update = {"id": strange, "attributes": {"note": "seen"}}
    assert client.put("/v1/nodes", json={"nodes": [update]}).status_code == 200
    assert client.get(path).json()["attributes"] == {**NEW["attributes"], "note": "seen"}  # type: ignore[dict-item]
    assert client.delete(path).status_code == 200
    assert client.get(path).status_code == 404
    assert client.delete(path).status_code == 404


def test_a_refusal_names_what_the_request_has(client: TestClient, service: Service) -> None:
    eventually(service.updater.caught_up)
    wrong = {"attributes": {"words": "x", "size": "?"}}
    for answer, detail in (
        (client.get("/v1/nodes/nobody"), "the node is not in the graph"),
        (client.delete("/v1/nodes/nobody"), "the node is not in the graph"),
        (client.put("/v1/nodes/new", json={"edges": []}), "the node is new and needs features"),
        (client.put("/v1/nodes/new", json={"label": "x"}), "the node.label is not a class of the graph"),
        (client.post("/v1/search", json={"id": "nobody"}), "the node is not in the graph"),
        (client.post("/v1/search", json={"node": wrong}), "the node: attributes hold a value that the model's"),
        (client.post("/v1/embed", json={"ids": ["nobody"]}), "ids[0] is not in the graph"),
        (
            client.delete("/v1/edges", params={"source": "node-1", "target": "nobody"}),
            "removed_edges[0] has a target that is not in the graph",
        ),
    ):
        assert answer.status_code in (404, 422)
        assert answer.json()["detail"].startswith(detail), answer.text


def test_a_misspelled_parameter_is_not_ignored(client: TestClient) -> None:
    answer = client.get("/v1/nodes", params={"atributes": True})
    assert answer.status_code == 422
    assert answer.json()["detail"] == (
        "the query has a parameter that is not known; known: attributes, cursor, limit, prefix"
    )
    assert client.post("/v1/embed", params={"x": 1}, json={"ids": ["node-1"]}).status_code == 422
    for path in ("/healthz", "/metrics"):  # probes may add some
        assert client.get(path, params={"x": 1}).status_code == 200


def test_search_finds_stored_and_new_nodes_and_follows_changes(client: TestClient, service: Service) -> None:
    eventually(service.updater.caught_up)
    found = client.post("/v1/search", json={"id": "node-0", "k": 5}).json()
    assert found["recall"] == 1
    assert len(found["results"]) == 5
    assert "node-0" not in [each["id"] for each in found["results"]]
    cosines = [each["cosine"] for each in found["results"]]
    assert cosines == sorted(cosines, reverse=True)
    z = np.array(vectors(client, ids=[f"node-{row}" for row in range(N)]))
    unit = z / np.linalg.norm(z, axis=1, keepdims=True)
    assert cosines == pytest.approx(np.sort(unit[1:] @ unit[0])[::-1][:5].tolist(), abs=1e-5)
    client.put("/v1/nodes", json={"nodes": [{"id": "new", **NEW}]})
    eventually(service.updater.caught_up)
    twin = client.post("/v1/search", json={"node": NEW, "k": 1}).json()["results"]
    assert [each["id"] for each in twin] == ["new"]
    client.delete("/v1/nodes/new")
    eventually(service.updater.caught_up)
    assert client.post("/v1/search", json={"node": NEW, "k": 1}).json()["results"][0]["id"] != "new"


def test_the_map_holds_every_node_and_follows_changes(client: TestClient, service: Service) -> None:
    eventually(service.updater.caught_up)
    content = client.get("/v1/map").content
    count = int(np.frombuffer(content[:4], "<u4")[0])
    assert count == N
    x = np.frombuffer(content[4 : 4 + 4 * count], "<f4")
    assert np.isfinite(x).all()
    assert x.std() > 0
    assert json.loads(content[4 + 10 * count :]) == [f"node-{row}" for row in range(N)]
    start = client.get("/v1/map/changes").json()["next"]
    client.put("/v1/nodes", json={"nodes": [{"id": "new", **NEW}]})
    client.delete("/v1/nodes/node-7")

    def since() -> dict[str, Any]:
        answer: dict[str, Any] = client.get("/v1/map/changes", params={"since": start}).json()
        return answer

    eventually(lambda: {"new", "node-7"} <= {each["id"] for each in since()["changes"]})
    eventually(service.updater.caught_up)
    said = since()
    changed = {each["id"]: each for each in said["changes"]}
    assert changed["node-7"] == {"id": "node-7", "gone": True}
    assert {*changed["new"]} == {"id", "x", "y", "color"}
    assert client.get("/v1/map/changes", params={"since": said["next"]}).json()["changes"] == []


def test_metrics_and_stats_count(client: TestClient) -> None:
    client.post("/v1/embed", json={"ids": ["node-1", "node-2"]})
    page = client.get("/metrics").text
    assert 'graphsage_request_seconds_count{method="POST",route="/v1/embed"} 1.0' in page
    assert "graphsage_nodes 30.0" in page
    assert "graphsage_search_recall" in page
    stats = client.get("/v1/stats").json()
    assert (stats["nodes"], stats["graph"]["generation"]) == (N, 1)
    assert stats["requests_per_second"] > 0


def test_a_reload_swaps_the_model_and_refuses_a_bad_one(client: TestClient, service: Service) -> None:
    before, old = service.model.version, vectors(client, ids=["node-1"])
    small_model(seed=1)[0].save(service.run)
    assert vectors(client, ids=["node-1"]) == old
    fresh = client.post("/v1/admin/reload").json()["model"]
    assert fresh != before
    assert vectors(client, ids=["node-1"]) != old
    eventually(service.updater.caught_up)
    assert client.post("/v1/search", json={"id": "node-1"}).json()["model"] == fresh
    for damage in (b"", b"{}", (service.run / "config.json").read_bytes()[:-20]):
        (service.run / "config.json").write_bytes(damage)
        refused = client.post("/v1/admin/reload")
        assert refused.status_code == 409, refused.text
        assert service.model.version == fresh
        assert len(vectors(client, ids=["node-1"])) == 1


def test_why_a_reload_was_refused_is_in_the_log_and_not_in_the_answer(
    client: TestClient, service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    (service.run / "config.json").write_bytes(b"{")
    refused = client.post("/v1/admin/reload")
    assert refused.status_code == 409
    assert "config.json" in caplog.text
    assert "config.json" not in refused.text


def test_a_reload_fails_no_request_and_never_mixes_models(client: TestClient, service: Service) -> None:
    object.__setattr__(service.settings, "deadline", 120.0)  # however busy the machine is
    models = [small_model(seed=seed)[0] for seed in (0, 1)]
    models[1].seed = models[0].seed  # which decides the degree cap of the live graph
    with service.live.reading() as (overlay, _):
        row = overlay.find("node-3")
        assert row is not None
        known = [LiveEncoder.of(model).embed([Target(overlay, row)])[0].tolist() for model in models]
    stop, answers = threading.Event(), list[Any]()

    def ask() -> None:
        own = TestClient(client.app, raise_server_exceptions=False)
        while not stop.is_set():
            answers.append(own.post("/v1/embed", json={"ids": ["node-3"], "nodes": [NEW]}))
            answers.append(own.post("/v1/predict", json={"ids": ["node-3"]}))

    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    versions = []
    for turn in range(4):
        models[(turn + 1) % 2].save(service.run)
        versions.append(client.post("/v1/admin/reload").json()["model"])
    stop.set()
    for thread in threads:
        thread.join()
    assert {answer.status_code for answer in answers} == {200}
    seen = {
        (said["model"], str(each["embedding"]))
        for answer in answers
        if "dim" in (said := answer.json())
        for each in said["results"]
        if each["id"] == "node-3"
    }
    expected = {(versions[1], str(known[0])), (versions[0], str(known[1]))}
    assert seen == expected


def test_pages_load_nothing_from_elsewhere_and_only_the_map_compiles_scripts(client: TestClient) -> None:
    policies = {path: client.get(path).headers["content-security-policy"] for path in ("/", "/docs")}
    for policy in policies.values():
        assert policy.startswith("default-src 'none'; script-src 'self'")
        assert "http" not in policy
    assert ["unsafe-eval" in policy for policy in policies.values()] == [True, False]


def test_a_model_with_other_features_is_refused(service: Service) -> None:
    small_model(seed=1, features=None)[0].save(service.run)
    with pytest.raises(BundleError, match="features by other recipes"):
        service.reload()


def test_a_backup_can_be_made_while_serving(client: TestClient, service: Service) -> None:
    assert client.post("/v1/admin/backup", json={"name": "monday"}).status_code == 200
    assert (service.live.folder.parent / "graph-backups" / "monday" / "manifest.json").is_file()
    assert client.post("/v1/admin/backup", json={"name": "monday"}).status_code == 409
    assert client.post("/v1/admin/backup", json={"name": "../out"}).status_code == 422


def test_the_journal_is_compacted_when_it_is_long(service: Service, client: TestClient) -> None:
    object.__setattr__(service.settings, "compact_after", 5)
    for number in range(5):
        client.put("/v1/nodes", json={"nodes": [{"id": f"new-{number}", **NEW}]})
    eventually(lambda: service.live.version.generation == 2)
    assert service.live.waiting == 0
    assert client.get("/v1/nodes/new-4").status_code == 200


@pytest.mark.parametrize("route", ["put", "embed", "predict", "search"])
def test_wild_features_are_refused_and_poison_nothing(client: TestClient, service: Service, route: str) -> None:
    eventually(service.updater.caught_up)
    before = vectors(client, ids=["node-1", "node-4"])
    width = service.model.rows.width
    wild = [3e38, -3e38, 1e30, 5001]
    for node, place in (
        *(({"id": "wild", "attributes": {"words": "about logic", "size": x}}, "column 'size'") for x in wild),
        *(({"id": "wild", "features": [x] * width}, "column 'words' number 0") for x in wild[:3]),
    ):
        sent = {**node, "edges": NEW["edges"]}
        if route == "put":
            answer = client.put("/v1/nodes", json={"nodes": [sent]})
        elif route == "search":
            answer = client.post("/v1/search", json={"node": sent})
        else:
            answer = client.post(f"/v1/{route}", json={"nodes": [sent]})
        assert answer.status_code == 422, answer.text
        said = answer.json()["detail"]
        what = "the node" if route == "search" else "nodes[0]"
        assert said.startswith(f"{what}: {place} is beyond "), said
        assert "1,000 times the largest that the model was trained on" in said
        assert "e+" not in said.replace("1,000", ""), "a value is repeated"
    assert vectors(client, ids=["node-1", "node-4"]) == before


def test_results_that_are_not_finite_are_refused(
    client: TestClient, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the store was filled without limits, or the head overflows."""
    wild = np.full(service.model.rows.width, 3e38, np.float32)
    service.live.apply(Change((NodeChange("wild", wild),), edges=(("node-1", "wild"),)))
    for route in ("embed", "predict"):
        answer = client.post(f"/v1/{route}", json={"ids": ["node-1"]})
        assert answer.status_code == 422
        assert "overflowed" in answer.json()["detail"]
    monkeypatch.setattr(LiveEncoder, "outputs", lambda _, z: torch.full((len(z), 3), torch.nan))
    answer = client.post("/v1/predict", json={"ids": ["node-20"]})
    assert answer.status_code == 422
    assert "overflowed" in answer.json()["detail"]


@pytest.mark.parametrize("fault", ["wide", "overflows"])
def test_a_model_that_cannot_embed_a_node_is_refused_at_start_and_at_reload(
    client: TestClient, service: Service, fault: str
) -> None:
    old = service.model.version
    if fault == "wide":
        model = Model(Encoder(EncoderConfig(dim=8), 9), None, SamplingConfig(sample_sizes=(3, 2)))
        object.__setattr__(service.live.manifest, "features", "")  # a store that was made in Python
    else:
        model = small_model()[0]
        with torch.no_grad():
            model.encoder.scale.fill_(3e38)
            model.encoder.shift.add_(1)
    model.save(service.run)
    sentence = "reads 9 features per node, and the live graph has 6" if fault == "wide" else "cannot embed nodes"
    with pytest.raises(BundleError, match=sentence):
        service.reload()
    assert service.model.version == old
    assert client.post("/v1/embed", json={"ids": ["node-1"]}).status_code == 200
    service.close()
    write_manifest(service.live.folder, service.live.manifest)
    with pytest.raises(BundleError, match=sentence):
        Service(service.run, service.live.folder)


def test_search_comes_back_when_the_map_cannot_be_kept(
    small: Small, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("tempfile.mkstemp", full)
    copied = small.copy(tmp_path)
    service = Service(copied.run, copied.graph)
    try:
        client = TestClient(make_app(service), raise_server_exceptions=False)
        eventually(service.updater.caught_up)
        assert len(client.post("/v1/search", json={"id": "node-0", "k": 5}).json()["results"]) == 5
        assert client.get("/readyz").json() == {"status": "ready"}
        assert client.get("/v1/map").status_code == 200
        assert caplog.text.count("is not kept, and is computed again next time") == 1
    finally:
        service.close()

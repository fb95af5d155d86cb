"""What the service says of numbers, and of labels with thresholds: the same as the model in Python."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import torch
from starlette.testclient import TestClient

from graphsage.evaluation.calibration import Calibration
from graphsage.graph.build import from_edges
from graphsage.inference.model import Model
from graphsage.live.node_features import fingerprint
from graphsage.live.store import create_store
from graphsage.model.heads import ClassHead, RegressionHead
from graphsage.serving.app import make_app
from graphsage.serving.schemas import Predictions
from graphsage.serving.service import Service
from graphsage.serving.settings import Settings
from small_service import KINDS, NEW, N, columns, small_model

TARGETS = np.stack([np.arange(N) * 1000.0, np.full(N, np.nan)], axis=1)


def regression() -> tuple[Model, dict]:
    model, x = small_model(class_names=("price", "rent"))
    model.head = RegressionHead(8, 2)
    model.head.fit(torch.tensor([[1000.0, 0.1], [5000.0, 0.1]], dtype=torch.float64))
    return model, {"features": x, "targets": TARGETS, "class_names": ("price", "rent")}


def labels() -> tuple[Model, dict]:
    model, x = small_model(multilabel=True)
    model.calibration = Calibration(0.5, torch.tensor([0.1, 0.5, 0.9]))
    return model, {"features": x, "labels": np.eye(3, dtype=np.uint8)[np.arange(N) % 3], "class_names": KINDS}


@contextmanager
def serving(folder: Path, model: Model, attributes: dict) -> Iterator[TestClient]:
    model.save(folder / "run")
    pairs = np.random.default_rng(0).integers(0, N, (60, 2))
    graph = from_edges(pairs, N, ids=[f"node-{row}" for row in range(N)], **attributes)
    said = [{name: values[row] for name, values in columns().items()} for row in range(N)]
    create_store(folder / "graph", graph, said, fingerprint(model))
    service = Service(folder / "run", folder / "graph", Settings(deadline=60.0))
    try:
        client = TestClient(make_app(service))
        client.graph = graph
        yield client
    finally:
        service.close()


def test_numbers_are_predicted_by_name_in_their_units(tmp_path: Path) -> None:
    model, attributes = regression()
    with serving(tmp_path, model, attributes) as client:
        expected = model.predict(client.graph)
        answer = client.post("/v1/predict", json={"ids": ["node-3", "node-0"], "nodes": [NEW]}).json()
        Predictions.model_validate(answer)
        assert [each["id"] for each in answer["results"]] == ["node-3", "node-0", None]
        values = [each["values"] for each in answer["results"]]
        for row, found in zip((3, 0), values, strict=False):
            assert list(found) == ["price", "rent"]
            assert found["price"] == pytest.approx(float(expected[row, 0]), rel=1e-4)
            assert found["rent"] == 0.1
        node = client.get("/v1/nodes/node-3").json()
        assert node["prediction"]["values"] == values[0]
        assert node["label"] is None
        assert node["targets"] == {"price": 3000.0, "rent": None}
        about = client.get("/v1/model").json()
        assert (about["classes"], about["targets"], about["multilabel"]) == ([], ["price", "rent"], False)
        refused = client.put("/v1/nodes/new", json={"attributes": NEW["attributes"], "label": "price"})
        assert refused.status_code == 422
        assert client.put("/v1/nodes/new", json={"attributes": NEW["attributes"], "edges": ["node-1"]}).is_success
        arrived = client.get("/v1/nodes/new").json()
        assert "values" in arrived["prediction"]
        assert arrived["targets"] is None


def test_stored_targets_outlive_a_compaction(tmp_path: Path) -> None:
    model, attributes = regression()
    model.save(tmp_path / "run")
    ids = [f"node-{row}" for row in range(N)]
    graph = from_edges([[0, 1]], N, ids=ids, **attributes)
    said = [{name: values[row] for name, values in columns().items()} for row in range(N)]
    create_store(tmp_path / "graph", graph, said, fingerprint(model))
    service = Service(tmp_path / "run", tmp_path / "graph", Settings(deadline=60.0))
    try:
        client = TestClient(make_app(service))
        assert client.put("/v1/nodes/new", json={"attributes": NEW["attributes"], "edges": ["node-1"]}).is_success
        service.live.compact()
        with service.live.reading() as (overlay, _):
            kept = overlay.base.graph.labels
    finally:
        service.close()
    assert kept.shape == (N + 1, 2)
    assert kept[:N, 0].tolist() == TARGETS[:, 0].tolist()
    assert kept[N].isnan().all()


def test_labels_are_predicted_by_their_own_thresholds(tmp_path: Path) -> None:
    model, attributes = labels()
    with serving(tmp_path, model, attributes) as client:
        p = model.predict_proba(client.graph)
        decided = model.predict(client.graph)
        assert not torch.equal(decided, (p > 0.5).long())
        answer = client.post("/v1/predict", json={"ids": [f"node-{row}" for row in range(N)]}).json()
        Predictions.model_validate(answer)
        for row, each in enumerate(answer["results"]):
            assert {KINDS.index(name) for name in each["labels"]} == set(torch.nonzero(decided[row]).flatten().tolist())
            found = [each["probabilities"][name] for name in KINDS]
            assert found == pytest.approx(p[row].tolist(), rel=1e-4)


def test_classes_have_calibrated_probabilities(tmp_path: Path) -> None:
    model, x = small_model()
    model.head = ClassHead(8, 3)
    model.calibration = Calibration(0.2)
    given = {"features": x, "labels": np.arange(N) % 3, "class_names": KINDS}
    with serving(tmp_path, model, given) as client:
        p = model.predict_proba(client.graph)
        answer = client.post("/v1/predict", json={"ids": ["node-4"]}).json()
        Predictions.model_validate(answer)
        assert answer["results"][0]["probability"] == pytest.approx(float(p[4].max()), rel=1e-4)

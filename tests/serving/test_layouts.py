"""Layouts: kept until model or nodes change, t-SNE in a process of its own, principal components until then."""

import os
import signal
import time
from pathlib import Path

import numpy as np
import pytest
from starlette.testclient import TestClient

from graphsage.inference.projection import NEAREST
from graphsage.serving.app import make_app
from graphsage.serving.layouts import Layout, Layouts, positions
from graphsage.serving.service import Service
from small_service import NEW, Small, eventually

IDS = tuple(f"n{i}" for i in range(60))
Z = np.random.default_rng(0).normal(size=(60, 5)).astype(np.float32) * np.array([9, 4, 1, 1, 1], np.float32)


def kept(folder: Path, ids: tuple[str, ...], z: np.ndarray, model: str = "model") -> np.ndarray:
    layout = Layouts(folder, "pca").first(ids, z, model)
    assert (layout.ids, layout.method, layout.coming) == (ids, "pca", "")
    return layout.xy


def awaited(layouts: Layouts) -> Layout:
    end = time.monotonic() + 60
    while (layout := layouts.finished()) is None:
        assert time.monotonic() < end
        time.sleep(0.02)
    return layout


@pytest.mark.parametrize("method", ["pca", "tsne"])
def test_positions_fill_the_square(method: str) -> None:
    xy = positions(Z, method)
    assert xy.shape == (60, 2)
    assert np.abs(xy).max() <= 1.2
    assert np.abs(xy).max() > 0.8


@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_few_nodes_have_positions_too(count: int) -> None:
    xy = positions(Z[:count], "pca")
    assert xy.shape == (count, 2)
    assert np.isfinite(xy).all()


def test_positions_are_kept_until_nodes_or_model_change(tmp_path: Path) -> None:
    first = kept(tmp_path, IDS, Z, "model 1")
    assert np.array_equal(kept(tmp_path, IDS, Z[::-1], "model 1"), first), "not read from the file"
    assert not np.array_equal(kept(tmp_path, IDS, Z[::-1], "model 2"), first)


def test_nodes_that_came_since_land_among_the_others_which_stay(tmp_path: Path) -> None:
    first = kept(tmp_path, IDS, Z)
    more = kept(tmp_path, (*IDS[1:], "new"), np.concatenate([Z[1:], Z[5:6]]))
    assert np.array_equal(more[:-1], first[1:]), "the others moved, or the one that went is still there"
    cosines = Z[1:] @ Z[5] / np.linalg.norm(Z[1:], axis=1)
    assert more[-1] == pytest.approx(first[1:][np.argsort(-cosines)[:NEAREST]].mean(axis=0), abs=1e-5)
    assert np.array_equal(kept(tmp_path, (*IDS[1:], "new"), np.concatenate([Z[1:], Z[6:7]])), more)


@pytest.mark.parametrize("name", ["map.npy", "map.json"])
def test_a_damaged_file_is_made_anew(tmp_path: Path, name: str) -> None:
    first = kept(tmp_path, IDS, Z)
    content = bytearray((tmp_path / name).read_bytes())
    content[-3] ^= 64
    (tmp_path / name).write_bytes(content)
    assert np.array_equal(kept(tmp_path, IDS, Z), first)
    (tmp_path / name).write_bytes(b"")
    assert np.array_equal(kept(tmp_path, IDS, Z), first)


def test_principal_components_stand_in_until_t_sne_is_ready_which_is_kept(tmp_path: Path) -> None:
    layouts = Layouts(tmp_path, "tsne")
    first = layouts.first(IDS, Z, "model")
    assert (first.method, first.coming) == ("pca", "tsne")
    assert np.array_equal(first.xy, positions(Z, "pca"))
    made = awaited(layouts)
    assert (made.ids, made.method, made.coming) == (IDS, "tsne", "")
    assert np.array_equal(made.xy, positions(Z, "tsne")), "the process computes what this one does"
    assert layouts.finished() is None, "taken twice"
    again = Layouts(tmp_path, "tsne").first(IDS, Z, "model")
    assert (again.method, again.coming) == ("tsne", "")
    assert np.array_equal(again.xy, made.xy)
    assert np.array_equal(kept(tmp_path, IDS, Z), first.xy), "the other method's positions were read"


def test_a_failed_process_is_a_warning_and_principal_components_stay(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    layouts = Layouts(tmp_path, "tsne")
    layouts.first(IDS, Z, "model")
    assert layouts._job is not None
    os.kill(layouts._job._process.pid, signal.SIGKILL)
    assert awaited(layouts).ids == ()
    assert "t-SNE of the map failed" in caplog.text
    assert not (tmp_path / "map.npy").exists()


def test_closing_ends_the_process(tmp_path: Path) -> None:
    layouts = Layouts(tmp_path, "tsne")
    layouts.first(IDS, Z, "model")
    assert layouts._job is not None
    process = layouts._job._process
    layouts.close()
    assert process.poll() == -signal.SIGKILL
    assert layouts.finished() is None


def test_the_service_replaces_its_map_when_t_sne_is_ready(small: Small, tmp_path: Path) -> None:
    copied = small.copy(tmp_path)
    service = Service(copied.run, copied.graph, map_method="tsne")
    try:
        client = TestClient(make_app(service))
        eventually(lambda: service.updater.map is not None)
        first = service.updater.map
        assert first is not None
        assert (first.method, first.coming) == ("pca", "tsne")
        client.put("/v1/nodes", json={"nodes": [{"id": "new", **NEW}]})
        client.delete("/v1/nodes/node-7")
        eventually(lambda: client.get("/v1/map/changes").json()["method"] == "tsne", 60)
        eventually(service.updater.caught_up)
        made = service.updater.map
        assert made is not None
        assert (made.coming, made.epoch) == ("", first.epoch + 1)
        assert made.place("new") is not None, "it came after t-SNE began"
        assert made.place("node-7") is None
        assert made.place("node-3") != first.place("node-3")
    finally:
        service.close()


def test_the_map_of_the_service_stays_if_t_sne_fails(small: Small, tmp_path: Path) -> None:
    copied = small.copy(tmp_path)
    service = Service(copied.run, copied.graph, map_method="tsne")
    try:
        eventually(lambda: service.updater.map is not None)
        job = service.updater._layouts._job
        assert job is not None
        os.kill(job._process.pid, signal.SIGKILL)
        eventually(lambda: service.updater.map is not None and service.updater.map.coming == "")
        assert service.updater.map is not None
        assert service.updater.map.method == "pca"
        assert service.updater.trouble == ""
    finally:
        service.close()

"""The map: positions are computed once and kept, changes are numbered, damaged files are made anew."""

import json
from pathlib import Path

import numpy as np
import pytest

from graphsage.serving.map import NEAREST, UNKNOWN, NodeMap, positions, stored_positions

IDS = tuple(f"n{i}" for i in range(60))
Z = np.random.default_rng(0).normal(size=(60, 5)).astype(np.float32) * np.array([9, 4, 1, 1, 1], np.float32)


def drawn() -> NodeMap:
    return NodeMap(IDS, positions(Z, "pca"), np.zeros(60, np.uint16), ("a", "b"), "pca")


@pytest.mark.parametrize("method", ["pca", "tsne"])
def test_positions_fill_the_square(method: str) -> None:
    xy = positions(Z, method)
    assert xy.shape == (60, 2)
    assert np.abs(xy).max() <= 1.2
    assert np.abs(xy).max() > 0.8


def test_principal_components_are_the_axes() -> None:
    xy = positions(Z, "pca")
    assert abs(np.corrcoef(xy[:, 0], Z[:, 0])[0, 1]) > 0.95
    assert abs(np.corrcoef(xy[:, 1], Z[:, 1])[0, 1]) > 0.9


def test_positions_are_kept_until_nodes_or_model_change(tmp_path: Path) -> None:
    first = stored_positions(tmp_path, IDS, Z, "model 1", "pca")
    assert np.array_equal(stored_positions(tmp_path, IDS, Z[::-1], "model 1", "pca"), first), "not read from the file"
    assert not np.array_equal(stored_positions(tmp_path, IDS, Z[::-1], "model 2", "pca"), first)


def test_nodes_that_came_since_land_among_the_others_which_stay(tmp_path: Path) -> None:
    first = stored_positions(tmp_path, IDS, Z, "model", "pca")
    more = stored_positions(tmp_path, (*IDS[1:], "new"), np.concatenate([Z[1:], Z[5:6]]), "model", "pca")
    assert np.array_equal(more[:-1], first[1:]), "the others moved, or the one that went is still there"
    cosines = Z[1:] @ Z[5] / np.linalg.norm(Z[1:], axis=1)
    assert more[-1] == pytest.approx(first[1:][np.argsort(-cosines)[:NEAREST]].mean(axis=0), abs=1e-5)
    assert np.array_equal(
        stored_positions(tmp_path, (*IDS[1:], "new"), np.concatenate([Z[1:], Z[6:7]]), "model", "pca"), more
    )


@pytest.mark.parametrize("name", ["map.npy", "map.json"])
def test_a_damaged_file_is_made_anew(tmp_path: Path, name: str) -> None:
    first = stored_positions(tmp_path, IDS, Z, "model", "pca")
    content = bytearray((tmp_path / name).read_bytes())
    content[-3] ^= 64
    (tmp_path / name).write_bytes(content)
    assert np.array_equal(stored_positions(tmp_path, IDS, Z, "model", "pca"), first)
    (tmp_path / name).write_bytes(b"")
    assert np.array_equal(stored_positions(tmp_path, IDS, Z, "model", "pca"), first)


def test_a_new_node_lands_among_its_nearest() -> None:
    map = drawn()
    map.put("new", [("n1", 1.0)], 1)
    assert map.place("new") == pytest.approx(map.place("n1"))
    map.put("new", [("n1", 0.9), ("n2", 0.9), ("nobody", 1.0)], 1)
    between = (np.array(map.place("n1")) + np.array(map.place("n2"))) / 2
    assert map.place("new") == pytest.approx(between.tolist(), abs=1e-6)
    map.put("alone", [], UNKNOWN)
    assert map.place("alone") == (0, 0)


def test_changes_are_told_once_and_in_order() -> None:
    map = drawn()
    map.put("new", [("n1", 1.0)], 1)
    map.remove("n2")
    said = map.since(0)
    assert [(each["id"], each.get("gone", False)) for each in said["changes"]] == [("new", False), ("n2", True)]
    map.put("new", [("n3", 1.0)], 0)
    later = map.since(said["next"])
    assert [each["id"] for each in later["changes"]] == ["new"]
    assert map.since(later["next"])["changes"] == []
    assert len(map.since(0)["changes"]) == 2, "a node is told as it is, not as it was"
    assert map.place("n2") is None


def test_folding_keeps_places_and_starts_a_new_epoch() -> None:
    map = drawn()
    map.put("new", [("n1", 1.0)], 1)
    map.remove("n2")
    ids = tuple(id for id in (*IDS, "new") if id != "n2")
    folded = map.folded(ids, np.zeros(60, np.uint16))
    assert folded.epoch == map.epoch + 1
    assert folded.since(0)["changes"] == []
    assert folded.place("new") == pytest.approx(map.place("n1"))
    content = folded.packed()
    assert json.loads(content[4 + 10 * 60 :]) == list(ids)

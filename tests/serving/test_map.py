"""The map: changes are numbered, new nodes land among their nearest, a new layout keeps what is present."""

import json

import numpy as np
import pytest

from graphsage.serving.layouts import Layout, positions
from graphsage.serving.map import UNKNOWN, NodeMap

IDS = tuple(f"n{i}" for i in range(60))
Z = np.random.default_rng(0).normal(size=(60, 5)).astype(np.float32) * np.array([9, 4, 1, 1, 1], np.float32)


def drawn() -> NodeMap:
    return NodeMap(IDS, positions(Z, "pca"), np.zeros(60, np.uint16), ("a", "b"), "pca")


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


def test_a_new_layout_moves_the_present_nodes_and_asks_for_the_others() -> None:
    map = drawn()
    map.coming = "tsne"
    map.put("new", [("n1", 1.0)], 1)
    map.put("n3", [("n1", 1.0)], 1)
    map.remove("n2")
    xy = np.arange(120, dtype=np.float32).reshape(60, 2)
    made, missing = map.laid_out(Layout(("n2", "n3", "n4", "went"), xy[:4], "tsne"))
    assert (made.ids, made.method, made.coming, made.epoch) == (("n3", "n4"), "tsne", "", map.epoch + 1)
    assert made.xy.tolist() == xy[1:3].tolist()
    assert made.colors.tolist() == [1, 0], "n3 has its present color"
    assert sorted(missing) == sorted({*IDS, "new"} - {"n2", "n3", "n4"})

"""A walk over all nodes lists each node exactly once, whatever happens meanwhile."""

from pathlib import Path

import numpy as np
import pytest

from graphsage.live import listing
from graphsage.live.change import Change, NodeChange
from graphsage.live.listing import page_of
from graphsage.live.store import LiveGraph
from live_models import features_of, graph_of, live_from, model_of

IDS = [*(f"node-{i}" for i in range(60)), *(f"{i}" for i in range(-10, 30))]


@pytest.fixture
def live(tmp_path: Path) -> LiveGraph:
    return live_from(tmp_path / "store", graph_of({id: features_of(id) for id in IDS}, set()), model_of())


def walk(live: LiveGraph, limit: int, prefix: str = "", meanwhile: list[Change] | None = None) -> list[str]:
    found: list[str] = []
    last: str | None = None
    waiting = list(meanwhile or [])
    while True:
        with live.reading() as (overlay, _):
            page = page_of(overlay, last, limit, prefix)
            found += [overlay.id_of(row) for row in page.rows]
        assert len(page.rows) <= limit
        if page.last is None:
            assert not waiting
            return found
        last = page.last
        if waiting:
            live.apply(waiting.pop())
            live.compact()


@pytest.mark.parametrize("limit", [1, 7, 1000])
def test_a_walk_lists_all_nodes_once(live: LiveGraph, limit: int) -> None:
    for turn in range(12):  # a node that comes and goes leaves many rows
        live.apply(Change((NodeChange("node-3", features_of("x", turn)), NodeChange(f"late-{turn}", features_of("l")))))
        live.apply(Change(removed_nodes=("node-3",)))
    live.apply(Change((NodeChange("node-4", features_of("x")),), removed_nodes=("node-5",)))
    wanted = {*IDS, *(f"late-{turn}" for turn in range(12))} - {"node-3", "node-5"}
    found = walk(live, limit)
    assert sorted(found) == sorted(wanted)
    live.compact()
    assert walk(live, limit) == found
    assert walk(live, limit, "late-") == [id for id in found if id.startswith("late-")]


def test_nodes_that_stay_are_listed_once_beside_writes_and_compaction(live: LiveGraph) -> None:
    draw = np.random.default_rng(0)
    gone = [f"node-{i}" for i in draw.permutation(60)[:12]]
    meanwhile = [Change((NodeChange(f"new-{i}", features_of("n")),), removed_nodes=(id,)) for i, id in enumerate(gone)]
    found = walk(live, 5, meanwhile=meanwhile)
    assert len(set(found)) == len(found)
    assert set(IDS) - {*gone} <= {*found}


def test_a_prefix_looks_at_a_bounded_number_of_nodes(live: LiveGraph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "_SCANNED", 10)
    assert sorted(walk(live, 100, "node-5")) == sorted(id for id in IDS if id.startswith("node-5"))

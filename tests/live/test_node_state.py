"""A change for a node in a stated state is made in that state or not at all."""

import threading
from pathlib import Path

import pytest

from graphsage.errors import NodeStateError
from graphsage.live.change import Change, NodeChange
from graphsage.live.node_state import Expected, node_state
from graphsage.live.store import LiveGraph
from live_models import features_of, graph_of, live_from, model_of, open_live

MODEL = model_of()
NODES = {f"n{i}": features_of(f"n{i}") for i in range(6)}


@pytest.fixture
def live(tmp_path: Path) -> LiveGraph:
    return live_from(tmp_path / "store", graph_of(NODES, {("n0", "n1"), ("n1", "n2"), ("n3", "n4")}), MODEL)


def state(live: LiveGraph, id: str) -> str:
    with live.reading() as (overlay, _):
        found = node_state(overlay, id)
    assert found is not None
    return found


def test_every_part_of_a_node_changes_its_state_and_compaction_and_restarts_do_not(live: LiveGraph) -> None:
    seen = [state(live, "n1")]
    for change in (
        Change((NodeChange("n1", attributes={"a": 1}),)),
        Change((NodeChange("n1", features_of("n1", 1)),)),
        Change((NodeChange("new", features_of("new")),), edges=(("n1", "new"),)),
        Change(removed_edges=(("n1", "n2"),)),
        Change(removed_nodes=("n0",)),
    ):
        live.apply(change)
        seen.append(state(live, "n1"))
    assert len(set(seen)) == len(seen)
    live.apply(Change((NodeChange("n3", features_of("n3", 1)),)))
    assert state(live, "n1") == seen[-1], "a change of another node"
    live.compact()
    assert state(live, "n1") == seen[-1]
    live.close()
    assert state(open_live(live.folder, MODEL), "n1") == seen[-1]


def test_a_node_that_is_not_as_expected_is_left_alone(live: LiveGraph) -> None:
    def note(id: str, expected: Expected) -> None:
        live.apply(Change((NodeChange(id, features_of(id), {"by": "us"}),)), expected)

    old = state(live, "n1")
    made = Expected("n1", states=frozenset({old}))
    note("n1", made)
    assert made.state == state(live, "n1") != old
    for id, expected in (
        ("n1", Expected("n1", states=frozenset({old}))),
        ("n1", Expected("n1", exists=False)),
        ("new", Expected("new", exists=True)),
        ("new", Expected("new", states=frozenset({old}))),
    ):
        with pytest.raises(NodeStateError):
            note(id, expected)
    assert live.version.sequence == 1
    note("new", Expected("new", exists=False))
    gone = Expected("new", states=frozenset({state(live, "new")}))
    live.apply(Change(removed_nodes=("new",)), gone)
    assert gone.state is None


def test_of_changes_for_one_state_exactly_one_is_made(live: LiveGraph) -> None:
    won: list[int] = []

    def count(rounds: int) -> None:
        for _ in range(rounds):
            while True:
                with live.reading() as (overlay, _):
                    row = overlay.find("n0")
                    assert row is not None
                    number = overlay.attributes_of(row).get("count", 0)
                    before = node_state(overlay, "n0")
                assert before is not None
                try:
                    live.apply(
                        Change((NodeChange("n0", attributes={"count": number + 1}),)),
                        Expected("n0", states=frozenset({before})),
                    )
                except NodeStateError:
                    continue
                won.append(number)
                break

    threads = [threading.Thread(target=count, args=(15,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(won) == list(range(60))


def test_states_follow_the_earlier_changes_of_a_group(live: LiveGraph) -> None:
    """Changes that wait together are journaled together; a state must be that after all before it."""
    old, other = state(live, "n0"), state(live, "n4")
    assert live._journal is not None
    with live._journal._guard:  # the writing thread waits here, so that the rest becomes one group
        first = live.submit(Change((NodeChange("n5", attributes={"a": 1}),)))
        while not live._queue.empty():
            pass
        futures = [
            live.submit(Change((NodeChange("n0", attributes={"a": 1}),))),
            live.submit(Change((NodeChange("n0", attributes={"a": 2}),)), Expected("n0", states=frozenset({old}))),
            live.submit(Change((NodeChange("n4", attributes={"a": 2}),)), Expected("n4", states=frozenset({other}))),
            live.submit(Change(removed_nodes=("n3",))),
            live.submit(Change(edges=(("n4", "n5"),)), Expected("n4", states=frozenset({other}))),
        ]
    refused = [future.exception(10) for future in (first, *futures)]
    assert [type(error).__name__ for error in refused] == [
        "NoneType",
        "NoneType",
        "NodeStateError",
        "NoneType",
        "NoneType",
        "NodeStateError",
    ]

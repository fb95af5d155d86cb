"""A store: one owner, nothing acknowledged is lost, compaction beside reads and writes, backup and verification."""

import multiprocessing
import os
import sqlite3
import threading
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from graphsage.errors import ChangesGoneError, DataError, OutputError, StoreError, UnknownNodeError
from graphsage.graph.graph import UNKNOWN
from graphsage.live.adjacency import Cap
from graphsage.live.backup import backup, restore, verify
from graphsage.live.change import Change, NodeChange
from graphsage.live.faults import POINTS, arm
from graphsage.live.materialize import whole, within_cap
from graphsage.live.overlay import Overlay
from graphsage.live.store import LiveGraph, create_store
from live_models import WIDTH, features_of, graph_of, live_from, model_of, open_live, vectors

NODES = {f"n{i}": features_of(f"n{i}") for i in range(6)}
EDGES = {("n0", "n1"), ("n1", "n2"), ("n3", "n4")}
MODEL = model_of()


@pytest.fixture
def live(tmp_path: Path) -> LiveGraph:
    said = [{"word": id} for id in NODES]
    return live_from(tmp_path / "store", graph_of(NODES, EDGES), MODEL, attributes=said)


def node(id: str, version: int = 0) -> NodeChange:
    return NodeChange(id, features_of(id, version), {"version": version})


def test_one_process_owns_a_store(live: LiveGraph) -> None:
    with pytest.raises(StoreError, match=f"in use by process {os.getpid()}; one process owns a live graph"):
        open_live(live.folder, MODEL)
    live.close()
    open_live(live.folder, MODEL).close()


def test_a_folder_that_is_no_store_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"not a live graph: manifest\.json is missing"):
        open_live(tmp_path, MODEL)
    (tmp_path / "manifest.json").write_text("{")
    with pytest.raises(StoreError, match=r"manifest\.json is damaged"):
        open_live(tmp_path, MODEL)


def test_creating_twice_is_refused(live: LiveGraph) -> None:
    live.close()
    with pytest.raises(StoreError, match="already"):
        create_store(live.folder, graph_of(NODES, EDGES))


@pytest.mark.parametrize(
    ("change", "error", "sentence"),
    [
        (Change(edges=(("n0", "nobody"),)), UnknownNodeError, r"edges\[0\] has a target that is not in the graph"),
        (Change(removed_edges=(("n0", "n1"), ("nobody", "n1"))), UnknownNodeError, r"removed_edges\[1\] has a source"),
        (Change(removed_nodes=("nobody",)), UnknownNodeError, r"removed_nodes.0. is not in the graph"),
        (Change(removed_nodes=("n0", "n0")), UnknownNodeError, r"removed_nodes.1. is not in the graph"),
        (Change((NodeChange("new"),)), DataError, r"nodes\[0\] is new and needs features"),
        (Change((NodeChange("new", features_of("x")[:2]),)), DataError, f"must have {WIDTH} features; got 2"),
        (Change((NodeChange("", features_of("x")),)), DataError, "id of 1 to 512"),
        (Change((NodeChange("n0", label=3),)), DataError, "label that is not a class of the graph"),
    ],
)
def test_a_change_that_cannot_be_made_is_refused_and_nothing_of_it_is_kept(
    live: LiveGraph, change: Change, error: type[Exception], sentence: str
) -> None:
    both = Change((node("half"), *change.nodes), change.edges, change.removed_edges, change.removed_nodes)
    with pytest.raises(error, match=sentence.replace(r"nodes\[0\]", r"nodes\[1\]")):
        live.apply(both)
    assert live.version.sequence == 0
    with live.reading() as (overlay, _):
        assert overlay.find("half") is None
    live.close()


def test_changes_of_one_group_see_each_other(live: LiveGraph) -> None:
    futures = [
        live.submit(change)
        for change in (
            Change((node("new"),)),
            Change(edges=(("new", "n0"),)),
            Change(removed_nodes=("new",)),
            Change(edges=(("new", "n0"),)),
        )
    ]
    assert [future.result().sequence for future in futures[:3]] == [1, 2, 3]
    with pytest.raises(UnknownNodeError):
        futures[3].result()
    live.close()


def test_unknown_label_sets_stay_unknown(tmp_path: Path) -> None:
    marks = [[1, 0, 1], [UNKNOWN] * 3, [0, 0, 0], [0, 1, 0], [UNKNOWN] * 3, [1, 1, 1]]
    live = live_from(tmp_path / "many", graph_of(NODES, EDGES, labels=np.array(marks)), MODEL)
    live.apply(Change((NodeChange("n4", label=(1,)), NodeChange("new", features_of("new")))))
    with live.reading() as (overlay, _):
        assert [overlay.label_of(row) for row in range(7)] == [(0, 2), None, (), (1,), (1,), (0, 1, 2), None]
        labels = whole(overlay).graph.labels
    live.close()
    assert labels is not None
    assert labels.tolist() == [*marks[:4], [0, 1, 0], marks[5], [UNKNOWN] * 3]


def test_attributes_and_labels_are_kept_through_compaction(live: LiveGraph) -> None:
    live.apply(Change((NodeChange("n1", attributes={"more": [1, None]}), node("new", 2))))
    for _ in range(2):
        with live.reading() as (overlay, _):
            found = {id: overlay.attributes_of(overlay.find(id) or 0) for id in ("n0", "n1", "new")}
        assert found == {"n0": {"word": "n0"}, "n1": {"word": "n1", "more": [1, None]}, "new": {"version": 2}}
        live.compact()
    live.close()


def test_compaction_goes_on_beside_writes_and_loses_nothing(live: LiveGraph) -> None:
    stop = threading.Event()

    def write(name: int) -> None:
        count = 0
        while not stop.is_set() or count < 20:
            id = f"w{name}-{count}"
            live.apply(Change((node(id),), ((id, "n0"), (id, f"n{count % 6}"))))
            if count % 3 == 0:
                live.apply(Change(removed_nodes=(id,)))
            count += 1
        made.append((name, count))

    made: list[tuple[int, int]] = []
    threads = [threading.Thread(target=write, args=(name,)) for name in range(3)]
    for thread in threads:
        thread.start()
    generations = [live.compact().generation for _ in range(5)]
    stop.set()
    for thread in threads:
        thread.join()
    assert generations == [2, 3, 4, 5, 6]
    assert sorted(path.name for path in live.folder.glob("generation-*")) == ["generation-000006"]
    expected = {*NODES} | {f"w{name}-{count}" for name, total in made for count in range(total) if count % 3}
    with live.reading() as (overlay, _):
        found, z = whole(overlay).graph, vectors(overlay, MODEL, sorted(expected))
    assert {*found.ids} == expected
    live.close()
    with open_live(live.folder, MODEL) as again, again.reading() as (overlay, _):
        assert torch.equal(vectors(overlay, MODEL, sorted(expected)), z)


def test_readers_do_not_wait_while_a_change_is_applied(live: LiveGraph, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, finish, apply = threading.Event(), threading.Event(), Overlay.apply

    def slowly(self: Overlay, change: Change) -> None:
        begun.set()
        assert finish.wait(20)
        apply(self, change)

    monkeypatch.setattr(Overlay, "apply", slowly)
    done = live.submit(Change((node("a"), node("b")), (("a", "n0"), ("b", "n0"))))
    assert begun.wait(20)
    seen = []

    def read() -> None:
        with live.reading() as (overlay, version):
            seen.append((overlay.find("a"), len(overlay.adjacency.neighbors(0)), version.sequence))

    reader = threading.Thread(target=read)
    reader.start()
    reader.join(10)
    during = list(seen)
    finish.set()
    reader.join()
    assert during == [(None, 1, 0)]
    assert done.result(20).sequence == 1
    read()
    assert seen[-1] == (6, 3, 1)


@pytest.mark.parametrize("cap", ["row", "symmetric"])
def test_many_edges_of_one_change_are_joined_together(tmp_path: Path, cap: str) -> None:
    ids = [f"h{i}" for i in range(60)]
    ring = {(a, b) for a, b in zip(ids, [*ids[1:], ids[0]], strict=True)}
    model = model_of(cap=cap)
    with live_from(tmp_path / "store", graph_of({id: features_of(id) for id in ids}, ring), model) as live:
        new = [node(f"x{i}") for i in range(150)]
        edges = {each.id: tuple((id, each.id) for id in ids) for each in new}
        live.apply(Change((node("warm"),), (("h0", "warm"), ("h1", "warm"))))
        overlay, _ = live.frozen()
        began = time.thread_time()
        for each in new:
            overlay.apply(Change((each,), edges[each.id]))
        single = time.thread_time() - began
        whole_change = Change(tuple(new), tuple(pair for each in new for pair in edges[each.id]))
        other, _ = live.frozen()
        began = time.thread_time()
        other.apply(whole_change)
        assert time.thread_time() - began < single
        for row in range(other.num_rows):
            assert other.adjacency.neighbors(row).tolist() == overlay.adjacency.neighbors(row).tolist()
            assert other.adjacency.capped(row).tolist() == overlay.adjacency.capped(row).tolist()


@pytest.mark.parametrize("directed", [False, True])
def test_a_change_tells_which_nodes_it_affects(tmp_path: Path, directed: bool) -> None:
    graph = graph_of(NODES, EDGES, directed)
    told: list[set[str]] = []
    with live_from(tmp_path / "store", graph, MODEL) as live:
        live.on_change = lambda ids: told.append(set(ids))
        live.apply(Change((node("new"),), (("n5", "new"), ("n0", "new"))))
        live.apply(Change((node("other", 1),)))
        live.apply(Change(edges=(("new", "n4"), ("n4", "n4"))))
        live.apply(Change(removed_edges=(("n3", "n4"),)))
        live.apply(Change(removed_nodes=("n1",)))
        live.apply(Change(removed_nodes=("new",)))
    ends = {"n4"} if directed else {"n3", "n4"}
    assert told == [
        {"new"} if directed else {"new", "n0", "n5"},
        {"other"},
        {"n4"} if directed else {"new", "n4"},
        ends,
        {"n1", "n2"} if directed else {"n0", "n1", "n2"},
        {"new", "n4"} if directed else {"new", "n0", "n4", "n5"},
    ]


def test_reading_with_another_cap_is_reading_a_graph_built_with_it(live: LiveGraph) -> None:
    for i in range(8):
        live.apply(Change((node(f"w{i}"),), ((f"w{i}", "n0"), (f"w{i}", "n1"))))
    other = model_of(max_degree=2, seed=5)
    live.use(Cap.of(other.sampling, other.seed))
    with live.reading() as (overlay, _):
        ids = list(whole(overlay).graph.ids or ())
        shown, z = within_cap(overlay, whole(overlay)), vectors(overlay, other, [str(id) for id in ids])
    assert int(shown.degrees.max()) == 2
    live.close()
    with open_live(live.folder, other) as again, again.reading() as (overlay, _):
        assert torch.equal(vectors(overlay, other, [str(id) for id in ids]), z)


def test_a_backup_restores_to_the_same_graph(live: LiveGraph, tmp_path: Path) -> None:
    live.apply(Change((node("new"),), (("new", "n0"),)))
    live.compact()
    live.apply(Change(removed_nodes=("n5",)))
    assert live.backup(tmp_path / "copy").sequence == 2
    live.apply(Change(removed_nodes=("n4",)))  # after the backup
    live.close()
    with pytest.raises(OutputError, match="already exists"):
        backup(live.folder, tmp_path / "copy")
    report = restore(tmp_path / "copy", tmp_path / "back")
    assert (report.generation, report.sequence, report.changes) == (2, 2, 1)
    with open_live(tmp_path / "back", MODEL) as again, again.reading() as (overlay, _):
        assert {*whole(overlay).graph.ids} == {"n0", "n1", "n2", "n3", "n4", "new"}


def test_verification_names_what_was_altered(live: LiveGraph) -> None:
    live.apply(Change((node("new"),)))
    live.close()
    assert verify(live.folder).changes == 1
    path = live.folder / "generation-000001" / "graph" / "features.npy"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(StoreError, match=r"features\.npy is damaged .* restore a backup"):
        verify(live.folder)


def write_until_killed(folder: Path, point: str, acknowledged: Any) -> None:
    arm(f"{point}:3" if point.startswith("write") else point)
    live = open_live(folder, MODEL)
    for i in range(4):
        live.apply(Change((node(f"w{i}"),), ((f"w{i}", "n0"), (f"w{i}", "n1"))))
        acknowledged.send(i)
        if i == 1:
            live.compact()


@pytest.mark.parametrize("point", [p for p in POINTS if not p.startswith("reload")])
def test_killed_at_any_step_it_is_the_old_or_the_new_graph(live: LiveGraph, point: str) -> None:
    live.close()
    fork = multiprocessing.get_context("fork")
    heard, said = fork.Pipe(duplex=False)
    process = fork.Process(target=write_until_killed, args=(live.folder, point, said))
    process.start()
    said.close()
    process.join(60)
    assert process.exitcode == -9
    acknowledged = 0
    with suppress(EOFError):
        while True:
            acknowledged = heard.recv() + 1
    with open_live(live.folder, MODEL) as again, again.reading() as (overlay, _):
        graph = whole(overlay).graph
        added = [str(id) for id in graph.ids or () if str(id).startswith("w")]
        assert added == [f"w{i}" for i in range(len(added))]
        assert acknowledged <= len(added) <= acknowledged + 1
        for id in added:
            assert graph.neighbors(int(graph.rows_of([id])[0])).tolist() == [0, 1], "half a change"
    assert len(list(again.folder.glob("generation-*"))) == 1
    verify(again.folder)


def test_a_change_that_is_called_off_does_not_stop_the_ones_after_it(live: LiveGraph) -> None:
    with live.reading():  # the writing thread waits for those who read
        first = live.submit(Change((node("first"),)))
        second = live.submit(Change((node("second"),)))
        called_off = [first.cancel(), second.cancel()]
    assert live.submit(Change((node("third"),))).result(timeout=30).sequence >= 1
    with live.reading() as (overlay, _):
        assert [overlay.find(id) is None for id in ("first", "second", "third")] == [*called_off, False]
    live.close()


@pytest.mark.parametrize("left", [None, b""])
def test_a_journal_that_is_missing_or_empty_is_refused_not_begun_anew(live: LiveGraph, left: bytes | None) -> None:
    live.apply(Change((node("new"),)))
    live.close()
    journal = live.folder / "journal.sqlite"
    journal.unlink()
    if left is not None:
        journal.write_bytes(left)
    for opened in (
        lambda: open_live(live.folder, MODEL),
        lambda: verify(live.folder),
        lambda: backup(live.folder, live.folder.parent / "copy"),
    ):
        with pytest.raises(StoreError, match=r"journal\.sqlite is missing or empty; .* restore a backup"):
            opened()


def test_a_new_store_does_not_take_over_the_journal_of_another(live: LiveGraph) -> None:
    live.apply(Change((node("new"),)))
    live.close()
    (live.folder / "manifest.json").unlink()
    with pytest.raises(StoreError, match="journal of another live graph"):
        create_store(live.folder, graph_of(NODES, EDGES))


def test_the_feed_begins_after_any_kept_change_and_says_where_it_does_not(
    live: LiveGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("graphsage.live.store.KEPT", 4)
    assert live.changes(0, 10) == []
    for version in range(6):
        live.apply(Change((node("n0", version),)))
    assert [number for number, _ in live.changes(2, 3)] == [3, 4, 5]
    assert [number for number, _ in live.changes(0, 10, size=1)] == [1], "a page has a change, however large"
    live.compact()
    kept = [number for number, change in live.changes(3, 10) if change.nodes[0].attributes is not None]
    assert kept == [4, 5, 6]
    live.apply(Change((node("n0", 6),)))
    live.close()
    with open_live(live.folder, MODEL) as again:
        assert [number for number, _ in again.changes(3, 10)] == [4, 5, 6, 7]
        assert again.changes(7, 10) == []
        with pytest.raises(ChangesGoneError, match="after number 1"):
            again.changes(1, 10)
        with pytest.raises(DataError, match="the graph has 7 changes, none after number 8"):
            again.changes(8, 10)


def test_a_kept_change_that_was_altered_is_not_handed_out(live: LiveGraph) -> None:
    for version in range(3):
        live.apply(Change((node("n0", version),)))
    live.compact()
    live.close()
    with closing(sqlite3.connect(live.folder / "journal.sqlite", isolation_level=None)) as file:
        file.execute("UPDATE journal SET body = CAST(replace(body, 'n0', 'n1') AS BLOB) WHERE sequence = 2")
    with open_live(live.folder, MODEL) as again:
        assert [number for number, _ in again.changes(0, 1)] == [1]
        with pytest.raises(StoreError, match="damaged at change 2"):
            again.changes(1, 1)

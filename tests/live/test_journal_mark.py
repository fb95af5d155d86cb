"""The mark beside the journal: an end of the journal that was acknowledged and is gone is refused, with the way out."""

import random
import shutil
from pathlib import Path

import pytest

from graphsage.errors import DataError, LostChangesError, StoreError
from graphsage.live.backup import backup, recover, restore, verify
from graphsage.live.change import Change, NodeChange
from graphsage.live.mark import Mark, read_mark
from graphsage.live.materialize import whole
from live_models import features_of, graph_of, live_from, model_of, open_live

NODES = {f"n{i}": features_of(f"n{i}") for i in range(6)}
MODEL = model_of()
CHANGES = 9


@pytest.fixture
def crashed(tmp_path: Path) -> Path:
    """A store as a kill leaves it: a generation up to change 2, and nine changes in the WAL."""
    live = live_from(tmp_path / "store", graph_of(NODES, {("n0", "n1")}), MODEL)
    for i in range(2):
        live.apply(Change((NodeChange(f"old{i}", features_of("old")),)))
    live.compact()
    for i in range(CHANGES):
        live.apply(Change((NodeChange(f"w{i}", features_of(f"w{i}")),), ((f"w{i}", "n0"),)))
    shutil.copytree(live.folder, tmp_path / "crashed")
    live.close()
    assert (tmp_path / "crashed" / "journal.sqlite-wal").stat().st_size > 1000
    return tmp_path / "crashed"


def added(folder: Path) -> list[str]:
    with open_live(folder, MODEL) as live, live.reading() as (overlay, _):
        return [str(id) for id in whole(overlay).graph.ids or () if str(id).startswith("w")]


def damage(path: Path, draw: random.Random) -> None:
    content = bytearray(path.read_bytes())
    content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
    path.write_bytes(content)


def test_after_a_kill_nothing_is_lost_and_nothing_is_refused(crashed: Path) -> None:
    assert verify(crashed).sequence == CHANGES + 2
    assert added(crashed) == [f"w{i}" for i in range(CHANGES)]


def test_no_flipped_bit_of_the_wal_loses_a_change_silently(crashed: Path, tmp_path: Path) -> None:
    draw, refused = random.Random(3), 0
    for number in range(40):
        hurt = tmp_path / str(number)
        shutil.copytree(crashed, hurt)
        damage(hurt / f"journal.sqlite{draw.choice(['-wal', '-wal', ''])}", draw)
        last = last_good(hurt)
        if last is None:
            assert added(hurt) == [f"w{i}" for i in range(CHANGES)]
        else:
            refused += 1
            accept_the_loss(hurt, last)
        shutil.rmtree(hurt)
    assert refused > 20


def last_good(folder: Path) -> int | None:
    """The last good change that opening names; None if it opens."""
    before = (folder / "journal.sqlite-wal").read_bytes()
    try:
        open_live(folder, MODEL).close()
    except LostChangesError as error:
        named = [f"--last-good {error.last}" in str(error), f"last_good={error.last}" in str(error)]
        left = (folder / "journal.sqlite-wal").read_bytes()
        return error.last if any(named) and left == before else -1  # what is refused is left as it was found
    return None


def accept_the_loss(folder: Path, last: int) -> None:
    wal = (folder / "journal.sqlite-wal").read_bytes()
    for refusing in (lambda: verify(folder), lambda: backup(folder, folder.parent / "copy")):
        with pytest.raises(LostChangesError):
            refusing()
    with pytest.raises(DataError, match=f"last good change of .* is {last}, not {last + 1}"):
        recover(folder, last + 1)
    kept = recover(folder, last)
    assert (kept / "journal.sqlite-wal").read_bytes() == wal
    assert added(folder) == [f"w{i}" for i in range(last - 2)]
    assert verify(folder, deep=True).sequence == last


@pytest.mark.parametrize("end", ["", "-wal"])
def test_a_journal_file_that_is_gone_is_refused_and_can_be_given_up(crashed: Path, end: str) -> None:
    (crashed / f"journal.sqlite{end}").unlink()
    with pytest.raises(LostChangesError, match="the last good change is 2"):
        open_live(crashed, MODEL)
    recover(crashed, 2)
    assert added(crashed) == []
    assert verify(crashed).sequence == 2


def test_a_journal_of_another_history_is_refused(crashed: Path) -> None:
    mark = read_mark(crashed)
    Mark(crashed, mark[0] - 3, bytes(16)).close()
    with pytest.raises(LostChangesError, match="change 8 is not the one that was acknowledged"):
        open_live(crashed, MODEL)


def test_a_missing_mark_is_refused_and_a_half_written_one_is_not(crashed: Path) -> None:
    path = crashed / "journal.mark"
    content = path.read_bytes()
    newest = max((0, 64), key=lambda start: content[start : start + 8])
    path.write_bytes(content[:newest] + bytes(64) + content[newest + 64 :])
    assert verify(crashed).sequence == CHANGES + 2
    path.unlink()
    with pytest.raises(LostChangesError, match=rf"journal\.mark is missing; the last good change is {CHANGES + 2}"):
        open_live(crashed, MODEL)
    recover(crashed, CHANGES + 2)
    assert len(added(crashed)) == CHANGES


def test_a_store_that_has_lost_nothing_is_not_cut(crashed: Path) -> None:
    with pytest.raises(StoreError, match="has lost no change"):
        recover(crashed, 4)
    assert len(added(crashed)) == CHANGES


def test_verification_and_restoring_write_nothing_into_a_backup(crashed: Path, tmp_path: Path) -> None:
    backup(crashed, tmp_path / "copy")
    for source in (tmp_path / "copy", crashed):  # also with a WAL
        before = {path: (path.stat().st_mtime_ns, path.is_file() and path.read_bytes()) for path in source.rglob("*")}
        verify(source, deep=True)
        restore(source, tmp_path / f"back-{source.name}")
        after = {path: (path.stat().st_mtime_ns, path.is_file() and path.read_bytes()) for path in source.rglob("*")}
        assert before == after
        assert added(tmp_path / f"back-{source.name}") == [f"w{i}" for i in range(CHANGES)]

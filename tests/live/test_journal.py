"""The journal: what was appended is there again; what was torn or altered is a clean prefix or a clear refusal."""

import random
import shutil
from pathlib import Path

import apsw
import numpy as np
import pytest

from graphsage.errors import StoreError
from graphsage.live.change import Change, NodeChange
from graphsage.live.journal import START, Journal
from live_models import features_of

CHANGES = [
    Change((NodeChange("a", features_of("a"), {"word": "π", "none": None}, 2),), (("a", "b"),)),
    Change(removed_edges=(("a", "b"),)),
    Change((NodeChange("c", None, {"x": 1.5}), NodeChange("d", features_of("d"), None, (0, 2))), removed_nodes=("a",)),
]


def said(change: Change) -> tuple[object, ...]:
    nodes = [(n.id, None if n.features is None else n.features.tolist(), n.attributes, n.label) for n in change.nodes]
    return nodes, change.edges, change.removed_edges, change.removed_nodes


def filled(path: Path, count: int = 9) -> list[tuple[object, ...]]:
    """A journal of `count` changes in groups of three, left as a crash leaves it: with a WAL."""
    made = [Change((NodeChange(f"n{i}", features_of(f"n{i}")),), ((f"n{i}", "a"),)) for i in range(count)]
    journal = Journal(path, 0, START)
    for start in range(0, count, 3):
        journal.append(made[start : start + 3])
        if start == 3:  # the first two groups are in the file itself, the third in the WAL
            journal._connection.execute("PRAGMA wal_checkpoint(FULL)")
    for end in ("", "-wal"):
        shutil.copy(f"{path}{end}", f"{path}.crashed{end}")
    journal.close()
    for end in ("", "-wal"):
        Path(f"{path}{end}").unlink(missing_ok=True)
        Path(f"{path}.crashed{end}").rename(f"{path}{end}")
    return [said(change) for change in made]


def test_what_was_appended_comes_back_in_order(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j", 0, START)
    assert journal.append(CHANGES[:1])[0] == 1
    assert journal.append(CHANGES[1:])[0] == 3
    journal.close()
    again = Journal(tmp_path / "j", 0, START)
    assert [number for number, _, _ in again.since(0)] == [1, 2, 3]
    assert [said(change) for _, change, _ in again.since(0)] == [said(change) for change in CHANGES]
    assert [said(change) for _, change, _ in again.since(2)] == [said(CHANGES[2])]
    again.close()


def test_trimmed_changes_are_gone_and_numbers_go_on(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j", 0, START)
    journal.append(CHANGES)
    check = journal.check_of(2)
    journal.trim(2)
    assert [number for number, _, _ in journal.since(0)] == [3]
    journal.close()
    again = Journal(tmp_path / "j", 2, check)
    assert again.append(CHANGES[:1])[0] == 4
    again.close()
    with pytest.raises(StoreError, match="damaged at change 3"):
        Journal(tmp_path / "j", 2, START)


def test_settings_are_durable_ones(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j", 0, START)
    assert journal._connection.execute("PRAGMA journal_mode").get == "wal"
    assert journal._connection.execute("PRAGMA synchronous").get == 2
    journal.close()


def test_an_old_sqlite_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apsw, "sqlite_lib_version", lambda: "3.45.1")
    with pytest.raises(StoreError, match=r"needs SQLite 3\.51\.3 or later; got 3\.45\.1"):
        Journal(tmp_path / "j", 0, START)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE journal SET body = x'7b7d' WHERE sequence = 4",
        "DELETE FROM journal WHERE sequence = 4",
        "UPDATE journal SET sequence = 99 WHERE sequence = 9",
    ],
)
def test_an_altered_row_is_refused_by_number(tmp_path: Path, statement: str) -> None:
    filled(tmp_path / "j")
    other = apsw.Connection(str(tmp_path / "j"))
    other.execute(statement)
    other.close()
    with pytest.raises(StoreError, match=r"damaged at change \d.*restore a backup"):
        Journal(tmp_path / "j", 0, START)


def test_another_database_is_refused(tmp_path: Path) -> None:
    other = apsw.Connection(str(tmp_path / "j"))
    other.execute("CREATE TABLE mine (x)")
    other.close()
    with pytest.raises(StoreError, match="not a journal"):
        Journal(tmp_path / "j", 0, START)


def test_torn_and_bit_flipped_journals_are_a_prefix_or_a_refusal(tmp_path: Path) -> None:
    expected = filled(tmp_path / "whole")
    outcomes = {"prefix": 0, "refused": 0}
    draw = random.Random(0)
    for number in range(50):
        folder = tmp_path / str(number)
        folder.mkdir()
        for end in ("", "-wal"):
            shutil.copy(tmp_path / f"whole{end}", folder / f"j{end}")
        damage(folder / f"j{draw.choice(['', '-wal', '-wal'])}", draw)
        try:
            journal = Journal(folder / "j", 0, START)
        except StoreError as error:
            outcomes["refused"] += "restore a backup" in str(error)
            continue
        found = [said(change) for _, change, _ in journal.since(0)]
        journal.close()
        assert found == expected[: len(found)]
        assert len(found) % 3 == 0, "part of a group"
        outcomes["prefix"] += 1
    assert sum(outcomes.values()) == 50, outcomes
    assert min(outcomes.values()) > 0, outcomes


def damage(path: Path, draw: random.Random) -> None:
    content = bytearray(path.read_bytes())
    place = draw.randrange(len(content))
    if draw.random() < 0.4:
        content = content[:place]
    else:
        content[place] ^= 1 << draw.randrange(8)
    path.write_bytes(content)


def test_features_come_back_as_the_same_bits(tmp_path: Path) -> None:
    odd = np.array([np.float32(0.1), -0.0, np.finfo(np.float32).tiny], np.float32)
    body, floats = Change((NodeChange("a", odd),)).encode()
    found = Change.decode(body, floats).nodes[0].features
    assert found is not None
    assert found.tobytes() == odd.tobytes()

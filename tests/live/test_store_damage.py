"""Damage on disk: a flipped bit or a cut is refused, or changes nothing; it is never served and never copied."""

import multiprocessing
import os
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from graphsage.checksummed_blocks import BLOCK, sums_of
from graphsage.errors import DamageError, StoreError
from graphsage.live.backup import backup, verify
from graphsage.live.change import Change, NodeChange
from graphsage.live.faults import arm
from graphsage.live.manifest import read_manifest, write_manifest
from graphsage.live.overlay import Overlay
from graphsage.live.store import LiveGraph
from live_models import WIDTH, features_of, graph_of, live_from, model_of, open_live, vectors

NODES = {f"n{i}": features_of(f"n{i}") for i in range(6)}
EDGES = {("n0", "n1"), ("n1", "n2"), ("n3", "n4")}
MODEL = model_of(classes=2)
WIDE = 3 * BLOCK // (4 * WIDTH)  # nodes whose features fill three blocks


@contextmanager
def flipped(path: Path, place: int, bit: int = 0) -> Iterator[None]:
    """One bit of a file is wrong within the block."""
    with path.open("r+b") as file:
        file.seek(place)
        (old,) = file.read(1)
        file.seek(place)
        file.write(bytes([old ^ 1 << bit]))
    yield
    if path.exists():
        with path.open("r+b") as file:
            file.seek(place)
            file.write(bytes([old]))


def everything(overlay: Overlay) -> Any:
    """What a client can learn of a graph."""
    ids = [overlay.id_of(row) for row in range(overlay.num_rows) if row not in overlay.gone]
    rows = [overlay.find(id) or 0 for id in ids]
    said = [
        (overlay.attributes_of(row), overlay.label_of(row), overlay.adjacency.neighbors(row).tolist()) for row in rows
    ]
    return ids, said, vectors(overlay, MODEL, ids).tolist()


def files_of(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file() and path.stat().st_size)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A closed store with a generation after the first, and changes in its journal."""
    graph = graph_of(NODES, EDGES, labels=np.array([0, 1, 0, 1, 0, 1]))
    with live_from(tmp_path / "store", graph, MODEL, attributes=[{"word": id} for id in NODES]) as live:
        live.apply(Change((NodeChange("new", features_of("new"), {"word": "new"}),), (("new", "n0"),)))
        live.compact()
        live.apply(Change((NodeChange("n1", features_of("n1", 2)),), (("n1", "n5"),)))
        live.apply(Change(removed_nodes=("n2",)))
    return tmp_path / "store"


def test_no_flipped_bit_in_any_file_changes_an_answer(folder: Path) -> None:
    with open_live(folder, MODEL) as live, live.reading() as (overlay, _):
        right = everything(overlay)
    draw, sentences = random.Random(7), list[str]()
    for path in files_of(folder) * 8:
        with flipped(path, draw.randrange(path.stat().st_size), draw.randrange(8)):
            try:
                with open_live(folder, MODEL) as live, live.reading() as (overlay, _):
                    found = everything(overlay)
            except StoreError as error:
                sentences.append(str(error))
            else:
                assert found == right, path
    assert len(sentences) > 80
    assert [s for s in sentences if not any(way in s for way in ("restore a backup", "upgrade", "make it again"))] == []
    with open_live(folder, MODEL) as live, live.reading() as (overlay, _):
        assert everything(overlay) == right, "a refused store is left as it was"


@pytest.mark.parametrize("name", ["generation", "sequence"])
def test_a_wrong_number_in_the_manifest_deletes_nothing(folder: Path, name: str) -> None:
    text = (folder / "manifest.json").read_bytes()
    (folder / "generation-000003").mkdir()
    before = sorted(folder.rglob("*"))
    with flipped(folder / "manifest.json", text.index(f'"{name}": '.encode()) + len(name) + 4):
        for use in (lambda: open_live(folder, MODEL), lambda: verify(folder)):
            with pytest.raises(StoreError, match=r"manifest\.json .*restore a backup"):
                use()
    assert sorted(folder.rglob("*")) == before


@pytest.fixture
def wide(tmp_path: Path) -> Iterator[LiveGraph]:
    """An open store with features of three blocks; only the third is damaged."""
    table = np.random.default_rng(0).normal(size=(WIDE, WIDTH)).astype(np.float32)
    nodes = {f"n{i}": x for i, x in enumerate(table)}
    live = live_from(tmp_path / "store", graph_of(nodes, EDGES), MODEL)
    live.close()
    path = live.folder / "generation-000001" / "graph" / "features.npy"
    with flipped(path, path.stat().st_size - 5), open_live(live.folder, MODEL) as again:
        yield again


def test_only_the_nodes_of_a_damaged_block_are_refused(wide: LiveGraph) -> None:
    wide.apply(Change((NodeChange("new", features_of("new")),), (("new", "n0"),)))
    with wide.reading() as (overlay, _):
        assert torch.isfinite(vectors(overlay, MODEL, ["n0", "n4", "new"])).all()
        with pytest.raises(DamageError, match=r"features\.npy is damaged between bytes 196,608"):
            vectors(overlay, MODEL, [f"n{WIDE - 1}"])


def test_compaction_and_backup_copy_no_damage(wide: LiveGraph, tmp_path: Path) -> None:
    wide.apply(Change(removed_nodes=("n5",)))
    for use in (wide.compact, lambda: wide.backup(tmp_path / "copy")):
        with pytest.raises(DamageError, match=r"features\.npy is damaged"):
            use()
    assert sorted(path.name for path in wide.folder.glob("generation-*")) == ["generation-000001"]
    assert not (tmp_path / "copy").exists()


def test_damage_after_a_block_was_verified_is_not_copied_either(folder: Path) -> None:
    with open_live(folder, MODEL) as live:
        with live.reading() as (overlay, _):
            everything(overlay)
        path = folder / "generation-000002" / "graph" / "features.npy"
        with flipped(path, path.stat().st_size - 1), pytest.raises(DamageError):
            live.compact()


def test_a_file_cut_under_a_running_store_is_an_error_and_not_the_end(folder: Path) -> None:
    with open_live(folder, MODEL) as live:
        os.truncate(folder / "generation-000002" / "graph" / "features.npy", 0)
        with pytest.raises(DamageError, match=r"features\.npy has 0 bytes"), live.reading():
            pass
        with pytest.raises(DamageError, match=r"features\.npy has 0 bytes"):
            live.apply(Change(removed_nodes=("n0",)))


@pytest.mark.parametrize("name", ["manifest.json", "lock", "journal.sqlite", "generation-000002/keys.npy"])
def test_a_fifo_or_a_link_in_a_store_is_refused_without_waiting(folder: Path, name: str) -> None:
    kept = folder.parent / "kept"
    (folder / name).rename(kept)
    for make in (lambda: os.mkfifo(folder / name), lambda: (folder / name).symlink_to(kept)):
        make()
        for use in (lambda: open_live(folder, MODEL), lambda: verify(folder)):
            with pytest.raises(StoreError, match="only regular files are read"):
                use()
        (folder / name).unlink()


def test_a_killed_backup_leaves_nothing_once_another_is_made(folder: Path, tmp_path: Path) -> None:
    def make() -> None:
        arm("backup.half")
        backup(folder, tmp_path / "copies" / "monday")

    process = multiprocessing.get_context("fork").Process(target=make)
    process.start()
    process.join(60)
    assert process.exitcode == -9
    left = list((tmp_path / "copies").iterdir())
    assert len(left) == 1
    assert left[0].name.startswith(".monday")
    (tmp_path / "copies" / ".other.part").mkdir()
    backup(folder, tmp_path / "copies" / "tuesday")
    assert sorted(path.name for path in (tmp_path / "copies").iterdir()) == [".other.part", "tuesday"]
    assert verify(tmp_path / "copies" / "tuesday", deep=True).sequence == 3


@pytest.mark.parametrize(
    ("name", "wrong", "sentence"),
    [
        ("keys.npy", lambda array: array[::-1].copy(), "does not sort|wrong key"),
        ("order.npy", lambda array: np.zeros_like(array), "does not sort"),
        ("graph/features.npy", lambda array: array * np.nan, "NaN or infinity"),
        ("graph/labels.npy", lambda array: array - 7, "classes must be -1"),
        ("graph/indices.npy", lambda array: array + 99, "points at node"),
    ],
)
def test_deep_verification_finds_what_checksums_cannot(folder: Path, name: str, wrong: Any, sentence: str) -> None:
    """Values that were wrong when they were written, under right checksums."""
    manifest = read_manifest(folder)
    path = folder / manifest.folder / name
    np.save(path, wrong(np.load(path)))
    write_manifest(folder, replace(manifest, files={**manifest.files, name: sums_of(path)}))
    with pytest.raises(StoreError, match=sentence):
        verify(folder, deep=True)

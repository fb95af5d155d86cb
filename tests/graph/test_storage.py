"""A saved graph comes back as it was, mapped; a damaged one is refused in one sentence."""

import json
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from graphs import SEEDS, edge_lists, normal
from graphsage.checksummed_json import read_checksummed
from graphsage.errors import DataError, OutputError
from graphsage.graph.build import from_edges
from graphsage.graph.graph import Graph
from graphsage.graph.split import Split
from graphsage.graph.storage import load_array, open_graph, open_splits, save_graph, write_about

TENSORS = ("indptr", "indices", "features", "labels", "time", "graph_number", "edge_time")


@st.composite
def full_graphs(draw: Callable[..., Any]) -> Graph:
    """Graphs with every mix of attributes, present and not."""
    n, edges = draw(edge_lists())
    texts = st.lists(st.text(max_size=4), min_size=n, max_size=n, unique=True)
    numbers = st.lists(st.integers(-(2**63), 2**63 - 1), min_size=n, max_size=n, unique=True)
    seed = draw(SEEDS)
    labels = draw(st.sampled_from([None, np.arange(n) % 3 - 1, np.arange(2 * n).reshape(n, 2) % 2]))
    return from_edges(
        edges,
        n,
        features=draw(st.sampled_from([None, normal(seed, n, 3), normal(seed, n, 1).half()])),
        labels=labels,
        class_names=None if labels is None else draw(st.sampled_from([None, ["a", "é"]])),
        ids=draw(st.one_of(st.none(), texts, numbers)),
        time=draw(st.sampled_from([None, np.arange(n)])),
        graph_number=draw(st.sampled_from([None, np.arange(n) % 2])),
        edge_time=draw(st.sampled_from([None, np.arange(len(edges))])),
        directed=draw(st.booleans()),
    )


@given(full_graphs())
def test_saving_and_opening_is_the_identity(graph: Graph) -> None:
    with TemporaryDirectory() as folder:
        graph.save(Path(folder) / "g")
        back = Graph.open(Path(folder) / "g")
        for name in TENSORS:
            a, b = getattr(graph, name), getattr(back, name)
            assert (a is None) == (b is None), name
            if a is not None:
                assert a.dtype == b.dtype, name
                assert torch.equal(a, b), name
        assert back.ids == graph.ids
        assert back.class_names == graph.class_names
        assert back.directed == graph.directed


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    graph = from_edges([(0, 1), (1, 2)], features=np.eye(3), labels=[0, 1, 1], ids=["a", "b", "c"], time=[1, 2, 3])
    splits = {"random": Split.masks([1, 0, 0], [0, 1, 0]), "years": Split.at_times(torch.tensor([1, 2, 3]), 1, 2)}
    save_graph(graph, tmp_path / "g", splits)
    return tmp_path / "g"


def test_splits_are_kept_with_the_graph(saved: Path) -> None:
    splits = open_splits(saved)
    assert {name: (s.codes.tolist(), s.cutoff) for name, s in splits.items()} == {
        "random": ([0, 1, 3], None),
        "years": ([0, 1, 2], 1),
    }


def test_arrays_are_mapped_and_not_read(saved: Path) -> None:
    graph = open_graph(saved)
    assert graph.features is not None
    maps = Path("/proc/self/maps").read_text()
    assert str(saved / "features.npy") in maps
    assert str(saved / "indices.npy") in maps


def test_a_graph_can_be_saved_over_itself_and_opened_graphs_live_on(saved: Path) -> None:
    graph = open_graph(saved)
    graph.replace(features=None).save(saved)
    assert graph.features is not None
    assert graph.features.tolist() == np.eye(3).tolist()
    assert open_graph(saved).features is None
    assert not (saved / "features.npy").exists()
    assert [p.name for p in saved.parent.iterdir()] == ["g"]


def test_a_graph_takes_the_place_of_nothing_but_a_graph_folder(saved: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "precious").write_text("all there is")
    for taken in (tmp_path / "mine", tmp_path / "mine" / "precious"):
        with pytest.raises(OutputError, match="not ours to replace"):
            open_graph(saved).save(taken)
    assert (tmp_path / "mine" / "precious").read_text() == "all there is"
    open_graph(saved).save(tmp_path / "mine" / "graph")
    (tmp_path / "mine" / "graph" / "run").mkdir()  # such as a model beside the graph it was trained on
    with pytest.raises(OutputError, match="not ours to replace"):
        open_graph(saved).save(tmp_path / "mine" / "graph")
    (tmp_path / "empty").mkdir()
    open_graph(saved).save(tmp_path / "empty")
    assert open_graph(tmp_path / "empty").num_nodes == open_graph(saved).num_nodes


def test_nothing_in_the_folder_can_execute_code(saved: Path) -> None:
    assert {p.suffix for p in saved.iterdir()} == {".npy", ".json"}
    np.save(saved / "labels.npy", np.array([print], dtype=object), allow_pickle=True)
    with pytest.raises(DataError, match="labels"):
        open_graph(saved)


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


DAMAGE: dict[str, Callable[[Path], object]] = {
    "truncated": truncate,
    "half a header": lambda path: path.write_bytes(path.read_bytes()[:20]),
    "empty": lambda path: path.write_bytes(b""),
    "missing": lambda path: path.unlink(),
    "text": lambda path: path.write_text("hello"),
    "a folder": lambda path: (path.unlink(), path.mkdir()),
    "big-endian": lambda path: np.save(path, np.load(path).astype(">i8")),
    "a zip": lambda path: (np.savez(path.with_suffix(".npz"), np.zeros(3)), path.with_suffix(".npz").replace(path)),
    "no rows": lambda path: np.save(path, np.zeros((), np.int64)),
    "strings": lambda path: np.save(path, np.array(["a", "b", "c"])),
    "records": lambda path: np.save(path, np.zeros(3, [("a", "i4"), ("b", "f4")])),
    "too few rows": lambda path: np.save(path, np.zeros(1, np.int64)),
    "three dimensions": lambda path: np.save(path, np.zeros((3, 1, 1), np.int64)),
    "no elements": lambda path: np.save(path, np.zeros(0, np.int64)),
    "a huge header": lambda path: path.write_bytes(path.read_bytes()[:128].replace(b"(", b"(9" + b"0" * 14, 1)),
}


@pytest.mark.parametrize("name", ["indptr", "labels", "time", "ids_offsets", "features"])
@pytest.mark.parametrize("damage", list(DAMAGE))
def test_a_damaged_array_is_a_clear_error(saved: Path, name: str, damage: str) -> None:
    DAMAGE[damage](saved / f"{name}.npy")
    with pytest.raises(DataError, match=name):
        open_graph(saved)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        "{}",
        '{"format": "x"}',
        '{"format": 3}',
        '{"format": 3, "a": ' + "[" * 200 + "]" * 200 + "}",
        '{"format": 3, "arrays": 5, "direction": 0}',
        '{"format": 3, "arrays": ["indptr", "indices"]}',
        '{"format": 3, "arrays": [7], "direction": "in"}',
        "\xff",
    ],
)
def test_damaged_json_is_a_clear_error(saved: Path, text: str) -> None:
    (saved / "graph.json").write_text(text, encoding="latin-1")
    with pytest.raises(DataError, match=r"graph\.json (is damaged|cannot be trusted|has no checksum)"):
        open_graph(saved)
    with pytest.raises(DataError, match=r"graph\.json (is damaged|cannot be trusted|has no checksum)"):
        open_splits(saved)


def test_a_newer_format_is_refused(saved: Path) -> None:
    about = json.loads((saved / "graph.json").read_text("utf-8"))
    (saved / "graph.json").write_text(json.dumps(about | {"format": 4}), "utf-8")
    with pytest.raises(DataError, match="format 4, this version reads format 3; upgrade"):
        open_graph(saved)


def test_what_is_not_a_graph_folder_is_named(saved: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="does not exist"):
        open_graph(tmp_path / "nowhere")
    (tmp_path / "other").mkdir()
    with pytest.raises(DataError, match=r"graph\.json is missing"):
        open_graph(tmp_path / "other")
    with pytest.raises(DataError, match="not a graph folder"):
        open_graph(saved / "indptr.npy")


def write(folder: Path, name: str, array: Any) -> None:
    """Replace an array, with the right checksum."""
    np.save(folder / f"{name}.npy", array)
    about = read_checksummed(folder / "graph.json")
    write_about(folder, {key: about[key] for key in about if key not in ("format", "files")})


@pytest.mark.parametrize(
    ("name", "array", "sentence"),
    [
        ("indices", np.array([1, 0, 2, 7], np.int32), "indices.npy holds rows"),
        ("indices", np.array([1, -1, 2, 1], np.int32), "indices.npy holds rows"),
        ("indptr", np.array([0, 3, 1, 4]), "indptr.npy decreases"),
    ],
)
def test_wild_neighbors_are_refused(saved: Path, name: str, array: Any, sentence: str) -> None:
    write(saved, name, array)
    with pytest.raises(DataError, match=sentence):
        open_graph(saved)


def test_no_flipped_bit_changes_an_array(saved: Path) -> None:
    draw, right = random.Random(5), {path.name: path.read_bytes() for path in saved.iterdir()}
    for name in sorted(right) * 12:
        content = bytearray(right[name])
        content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
        (saved / name).write_bytes(content)
        with pytest.raises(DataError, match=name.removesuffix(".npy")):
            open_graph(saved)
        (saved / name).write_bytes(right[name])
    open_graph(saved)


@pytest.mark.parametrize("name", ["graph.json", "features.npy"])
def test_a_fifo_or_a_link_is_refused_without_waiting(saved: Path, name: str) -> None:
    (saved / name).rename(saved.parent / "kept")
    for make in (lambda: os.mkfifo(saved / name), lambda: (saved / name).symlink_to(saved.parent / "kept")):
        make()
        with pytest.raises(DataError, match="only regular files are read"):
            open_graph(saved)
        (saved / name).unlink()


def test_an_array_of_another_name_is_refused(saved: Path) -> None:
    about = read_checksummed(saved / "graph.json")
    shutil.copy(saved / "labels.npy", saved.parent / "labels.npy")
    arrays = [*about["arrays"], "../labels"]
    write_about(saved, {**{key: about[key] for key in about if key not in ("format", "files")}, "arrays": arrays})
    with pytest.raises(DataError, match="arrays is wrong"):
        open_graph(saved)


def test_files_too_large_to_read_on_opening_are_sampled(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = open_graph(saved)
    monkeypatch.setattr("graphsage.graph.storage.WHOLE_BYTES", 100)
    monkeypatch.setattr("graphsage.checksummed_blocks.BLOCK", 64)
    graph.save(saved)
    content = bytearray((saved / "features.npy").read_bytes())
    content[-1] ^= 1  # the last block is always among those that are looked at
    (saved / "features.npy").write_bytes(content)
    with pytest.raises(DataError, match=r"features\.npy is damaged"):
        open_graph(saved)


def test_offsets_that_do_not_fit_the_edges_are_refused(saved: Path) -> None:
    write(saved, "indptr", np.array([0, 1, 3, 9]))
    with pytest.raises(DataError, match="indptr must run from 0 to 4"):
        open_graph(saved)


def test_an_array_without_elements_is_read(tmp_path: Path) -> None:
    np.save(tmp_path / "none.npy", np.zeros((0, 3), np.float32))
    assert load_array(tmp_path / "none.npy").shape == (0, 3)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_features_keep_their_precision(dtype: torch.dtype, tmp_path: Path) -> None:
    features = torch.randn(3, 4).to(dtype)
    from_edges([[0, 1]], 3, features=features).save(tmp_path / "graph")
    assert torch.equal(open_graph(tmp_path / "graph").features, features)


@pytest.mark.slow
def test_a_graph_larger_than_memory_opens_and_trains(tmp_path: Path) -> None:
    """60 GB of features in a file with holes, of which training touches what it needs."""
    import graphsage as gs

    n, width = 1_000_000, 15_000
    rng = np.random.default_rng(0)
    edges = rng.integers(0, n, (3 * n, 2))
    folder = tmp_path / "graph"
    from_edges(edges, n, labels=rng.integers(0, 3, n)).save(folder)
    table = np.lib.format.open_memmap(folder / "features.npy", "w+", np.float32, (n, width))
    table[:300, :5] = 1.0
    del table
    about = read_checksummed(folder / "graph.json")
    kept = {key: about[key] for key in about if key not in ("format", "files")}
    write_about(folder, {**kept, "arrays": [*about["arrays"], "features"]})
    graph = open_graph(folder)
    assert graph.features is not None
    assert graph.features.numel() * 4 == 60_000_000_000
    codes = torch.full((n,), 3, dtype=torch.uint8)
    codes[:300], codes[300:310] = 0, 1
    model = gs.train(graph, gs.Split(codes), dim=8, sample_sizes=(3, 2), batch_size=64, epochs=2)
    assert torch.isfinite(model.embed(graph, [5, 999_999])).all()

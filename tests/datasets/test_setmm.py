"""The embedded data set, and the builder that made it."""

import gzip
import lzma
from datetime import date
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from graphsage.datasets import setmm
from graphsage.datasets.dataset import Dataset, text_plan
from graphsage.datasets.open import open_data
from graphsage.datasets.setmm import EDGES, NODES, build_setmm, load_setmm
from graphsage.errors import DataError
from graphsage.graph.split import training_graph

DATA = Path(__file__).parents[2] / "../shared/data/metamath"
RULE = "#" * 20
SOURCE = f"""\
$c |- wff $.
$( Before any heading.  (Contributed by NM, 1-Jan-1993.) $)
early $a |- x $.
$(
{RULE}
  LOGIC
{RULE}
$)
$( An axiom.  (Contributed by NM, 2-Jan-1970.) $)
one $a |- x x $.
$( A theorem.  (Contributed by NM, 3-Jan-1970.) $)
two $p |- x y $= ( one early ) A $.
$( No date. $)
undated $p |- y $= ( one two ) A $.
$(
{RULE}
  SETS
{RULE}
$)
$( Another.  (Contributed by NM, 1-Feb-1970.) $)
three $p |- y y $= ( two undated one ) A $.
$(
{RULE}
  SUPPLEMENTARY MATERIAL (USER'S MATHBOXES)
{RULE}
$)
$( Mine.  (Contributed by ME, 1-Feb-2000.) $)
mine $p |- z $= ( one three ) A $.
"""


@pytest.fixture(scope="module")
def data() -> Dataset:
    return load_setmm()


@pytest.fixture
def built(tmp_path: Path) -> Path:
    (tmp_path / "set.mm").write_text(SOURCE)
    build_setmm(tmp_path / "set.mm", tmp_path / "out")
    return tmp_path / "out"


def test_it_has_27222_theorems_in_20_parts(data: Dataset) -> None:
    graph = data.graph
    assert (graph.num_nodes, graph.num_edges, graph.num_self_loops) == (27_222, 482_846, 0)
    assert not graph.directed
    assert graph.class_names is not None
    assert len(set(graph.class_names)) == 20
    assert "GRAPH THEORY" in graph.class_names
    assert graph.labels is not None
    assert torch.unique(graph.labels).tolist() == list(range(20))
    assert graph.features is None


def test_a_known_theorem_is_as_in_the_book(data: Dataset) -> None:
    graph = data.graph
    assert graph.class_names is not None
    assert graph.labels is not None
    assert graph.time is not None
    row = int(graph.rows_of(["pm2.43"])[0])
    assert data.columns["formula"][row] == "( ( ph -> ( ph -> ps ) ) -> ( ph -> ps ) )"
    assert data.columns["comment"][row].startswith("Absorption of redundant antecedent.")
    assert int(graph.time[row]) == (date(1993, 1, 10) - date(1970, 1, 1)).days
    assert graph.class_names[graph.labels[row]] == "CLASSICAL FIRST-ORDER LOGIC WITH EQUALITY"
    cited = graph.rows_of(["pm2.27", "a2i"])
    assert set(cited.tolist()) <= set(graph.neighbors(row).tolist())


def test_ids_are_strings_even_where_they_look_otherwise(data: Dataset) -> None:
    assert data.graph.id_of(int(data.graph.rows_of(["nan"])[0])) == "nan"


def test_comments_tell_no_date(data: Dataset) -> None:
    assert data.plan == text_plan("comment", "formula")
    assert list(data.columns) == ["comment", "formula"]
    text = "\n".join(data.columns["comment"])
    assert text.count("\n") == 27_221
    for month in ("Jan", "Aug", "Dec"):
        assert f"-{month}-" not in text
    assert "(Contributed by" not in text


def test_splits_are_seven_one_and_two(data: Dataset) -> None:
    assert data.default_split == "random"
    assert data.split().sizes() == {"train": 19_055, "val": 2_722, "test": 5_445}
    assert data.split("date").sizes() == {"train": 19_116, "val": 2_681, "test": 5_425}
    assert torch.equal(data.split().codes, load_setmm().split().codes)


def test_the_split_by_date_trains_on_the_past(data: Dataset) -> None:
    time, split = data.graph.time, data.split("date")
    assert time is not None
    train, val, test = (time[split.nodes(part)] for part in ("train", "val", "test"))
    assert train.max() < val.min()
    assert val.max() < test.min()


@pytest.mark.parametrize("name", ["random", "date"])
def test_training_sees_no_edge_of_a_held_out_node(data: Dataset, name: str) -> None:
    split = data.split(name)
    seen = training_graph(data.graph, split)
    held_out = split.codes != 0
    assert int(seen.degrees[held_out].sum()) == 0
    assert not held_out[seen.indices].any()
    assert seen.num_edges > 100_000


def test_the_files_are_small() -> None:
    assert sum(len((files("graphsage.datasets") / "files" / name).read_bytes()) for name in (NODES, EDGES)) < 2_000_000


@pytest.mark.data
def test_it_agrees_with_an_independent_reading_of_set_mm(data: Dataset) -> None:
    if not DATA.exists():
        pytest.skip("the data sets of ../shared/data are not here")
    arrays = np.load(DATA / "setmm.npz")
    with gzip.open(DATA / "setmm_nodes.tsv.gz", "rt", encoding="utf-8") as file:
        lines = [line.rstrip("\n").split("\t") for line in file]
    names = arrays["part_name"][arrays["y_part"]]
    kept = np.flatnonzero(names != "SUPPLEMENTARY MATERIAL (USER'S MATHBOXES)")
    graph = data.graph
    assert graph.ids is not None
    assert list(graph.ids) == [lines[i][0] for i in kept]
    assert data.columns["formula"] == [lines[i][2] for i in kept]
    assert [graph.class_names[c] for c in graph.labels] == names[kept].tolist()  # type: ignore[index,union-attr]
    shift = int((np.datetime64("1990-01-01") - np.datetime64("1970-01-01")).astype(int))
    assert graph.time is not None
    assert graph.time.tolist() == (arrays["day"][kept] + shift).tolist()
    new = np.full(len(names), -1)
    new[kept] = np.arange(len(kept))
    edges = new[arrays["edges"]]
    edges = np.sort(edges[(edges >= 0).all(axis=1)], axis=1)
    rows = torch.repeat_interleave(torch.arange(graph.num_nodes), graph.degrees)
    ours = torch.stack([rows, graph.indices.long()], dim=1)[rows < graph.indices].numpy()
    assert np.array_equal(np.unique(edges, axis=0), ours)


def test_a_source_becomes_a_data_set(built: Path) -> None:
    data = load_setmm(built)
    graph = data.graph
    assert graph.ids is not None
    assert list(graph.ids) == ["one", "two", "three"]
    assert graph.class_names == ("LOGIC", "SETS")
    assert graph.labels is not None
    assert graph.labels.tolist() == [0, 0, 1]
    assert graph.time is not None
    assert graph.time.tolist() == [1, 2, 31]
    assert [graph.neighbors(row).tolist() for row in range(3)] == [[1, 2], [0, 2], [0, 1]]
    assert data.columns == {"comment": ["An axiom.", "A theorem.", "Another."], "formula": ["x x", "x y", "y y"]}
    assert open_data(built).graph.num_nodes == 3


def test_building_twice_writes_the_same_bytes(built: Path, tmp_path: Path) -> None:
    build_setmm(tmp_path / "set.mm", tmp_path / "again")
    for name in (NODES, EDGES):
        assert (built / name).read_bytes() == (tmp_path / "again" / name).read_bytes()


@given(st.sets(st.tuples(st.integers(0, 20), st.integers(0, 20))))
def test_packed_edges_unpack_to_themselves(pairs: set[tuple[int, int]]) -> None:
    edges = np.array(sorted(pairs), np.int64).reshape(-1, 2)
    assert np.array_equal(setmm._unpack(setmm._pack(edges)), edges)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "cannot be read as a Metamath database"),
        (b"\xff\xfe", "cannot be read as a Metamath database"),
        (b"$( nothing here $)", "holds no dated theorem"),
        (b"a $p |- x $= (", "ends inside the statement"),
    ],
)
def test_a_source_that_is_none_is_an_error(tmp_path: Path, content: bytes | None, message: str) -> None:
    if content is not None:
        (tmp_path / "set.mm").write_bytes(content)
    with pytest.raises(DataError, match=message):
        build_setmm(tmp_path / "set.mm", tmp_path / "out")
    assert not (tmp_path / "out").exists()


HEADER = "id\tdate\tpart\tsection\tcomment\tformula\n"


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("id\tdate\na\t1970-01-01\n", "must begin with the columns"),
        (HEADER, "have rows"),
        (HEADER + "a\t1970-01-01\n", "row 0 has 2 columns, not 6"),
        (HEADER + "a\tyesterday\tp\ts\tc\tf\n", "has a date that is none"),
        (HEADER + "a\t1970-01-01\tp\ts\tc\tf\n", "points at node"),
    ],
)
def test_a_wrong_table_is_an_error(built: Path, table: str, message: str) -> None:
    (built / NODES).write_bytes(lzma.compress(table.encode()))
    with pytest.raises(DataError, match=message):
        load_setmm(built)


@pytest.mark.parametrize("name", [NODES, EDGES])
def test_damaged_files_are_errors_that_name_them(built: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    content = (built / name).read_bytes()
    for damaged, message in ((content[:-20], "cut short"), (b"", "cut short"), (b"not xz", "cannot be unpacked")):
        (built / name).write_bytes(damaged)
        with pytest.raises(DataError, match=f"{name} .*{message}"):
            load_setmm(built)
    (built / name).write_bytes(content)
    monkeypatch.setattr(setmm, "_MAX_BYTES", 10)
    with pytest.raises(DataError, match="larger than 10 bytes"):
        load_setmm(built)
    (built / name).unlink()
    monkeypatch.undo()
    with pytest.raises(DataError, match=f"{name} does not exist"):
        load_setmm(built)


@pytest.mark.parametrize("content", [b"no array", b""])
def test_edges_that_are_no_array_are_an_error(built: Path, content: bytes) -> None:
    (built / EDGES).write_bytes(lzma.compress(content))
    with pytest.raises(DataError, match=f"{EDGES} does not hold a .npy array"):
        load_setmm(built)

"""Tables read in batches make the graph folder that reading them into memory makes, byte for byte."""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphs import edge_lists, normal
from graphsage.datasets import table_folder
from graphsage.datasets.table_folder import build_large
from graphsage.datasets.tables import open_tables
from graphsage.errors import ConfigError, DataError
from graphsage.graph.external import csr
from graphsage.graph.external.csr import EdgeSort
from graphsage.graph.graph import Graph
from graphsage.graph.storage import open_splits, save_graph
from graphsage.tables.spec import TableSpec
from table_makers import write_table

MEMORY = 10**9


def folders_equal(one: Path, two: Path) -> None:
    assert sorted(p.name for p in one.iterdir()) == sorted(p.name for p in two.iterdir())
    for path in one.iterdir():
        assert path.read_bytes() == (two / path.name).read_bytes(), path.name


def in_batches(path: Path, columns: dict[str, Any], rows: int) -> None:
    """An Arrow file that is read a few rows at a time."""
    table = pa.table(columns)
    with pa.ipc.new_file(str(path), table.schema) as writer:
        writer.write_table(table, max_chunksize=rows)


def in_memory(spec: TableSpec, folder: Path) -> None:
    data = open_tables(spec)
    split = data.split()
    graph = data.with_features(split)[0] if data.columns else data.graph
    save_graph(graph, folder, {"given": split} if spec.split_column is not None else {})


def test_label_type_and_missing_words_mean_the_same_in_memory_and_in_batches(tmp_path: Path) -> None:
    nodes = {"id": list("abcd"), "price": ["1.5", "NA", "2;3", "7"], "v": [[1.0], [2.0], [3.0], [4.0]]}
    in_batches(tmp_path / "n.arrow", nodes, 2)
    in_batches(tmp_path / "e.arrow", {"source": ["a", "b"], "target": ["b", "NA"]}, 1)
    files = {"nodes": tmp_path / "n.arrow", "edges": tmp_path / "e.arrow", "unknown_nodes": "drop"}
    spec = TableSpec(**files, label="price", label_type="class", missing="NA", vectors="v")
    in_memory(spec, tmp_path / "memory")
    built = build_large(spec, tmp_path / "disk", memory=MEMORY)
    folders_equal(tmp_path / "memory", tmp_path / "disk")
    assert (built.classes, built.dropped) == (3, 1)
    with pytest.raises(DataError, match="'price' row 3 has many labels"):
        build_large(TableSpec(**files, label="price", missing="NA"), tmp_path / "no", memory=MEMORY)
    prices = {**files, "nodes": {**nodes, "price": ["1.5", "2", "3", "7"]}}
    with pytest.raises(DataError, match=r"numbers with a fraction \(1.5\)"):
        build_large(TableSpec(**prices, label="price"), tmp_path / "no", memory=MEMORY)


@settings(max_examples=60)
@given(edge_lists(), st.integers(1, 40), st.booleans())
def test_sorting_on_disk_gives_the_csr_of_memory(
    made: tuple[int, list[tuple[int, int]]], most: int, directed: bool
) -> None:
    n, edges = made
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        save_graph(Graph.from_edges(edges, n, directed=directed), folder / "memory")
        (folder / "disk").mkdir()
        most = max(most, 2 * max(len(edges), 1))  # a row may have that many
        sort = EdgeSort(folder / "scratch", n, most * csr.CODE_BYTES, directed=directed)
        for at in range(0, len(edges), 5):
            sort.add(np.array(edges[at : at + 5]).reshape(-1, 2))
        stored = sort.write(folder / "disk")
        for array in ("indptr.npy", "indices.npy"):
            assert (folder / "disk" / array).read_bytes() == (folder / "memory" / array).read_bytes()
        assert stored == len(np.load(folder / "disk" / "indices.npy"))
        assert list((folder / "scratch").iterdir()) == []


def test_buckets_too_large_for_memory_are_split(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csr, "BUCKETS", 3)
    rng = np.random.default_rng(0)
    edges = rng.integers(0, 50, (400, 2))
    save_graph(Graph.from_edges(edges, 50), tmp_path / "memory")
    (tmp_path / "disk").mkdir()
    sort = EdgeSort(tmp_path / "scratch", 50, 60 * csr.CODE_BYTES)
    sort.add(edges)
    assert max(sort._top.sizes) > 200
    sort.write(tmp_path / "disk")
    assert (tmp_path / "disk/indices.npy").read_bytes() == (tmp_path / "memory/indices.npy").read_bytes()


def test_a_node_whose_edges_exceed_memory_is_named(tmp_path: Path) -> None:
    sort = EdgeSort(tmp_path / "scratch", 5, 3 * csr.CODE_BYTES)
    sort.add(np.array([(2, 1)] * 9))
    with pytest.raises(ConfigError, match=r"node 1 alone has 9 edges, which need 288 B of memory"):
        sort.write(tmp_path)


@st.composite
def tables(draw: Callable[..., Any]) -> dict[str, Any]:
    """Columns of a node table and of an edge table, with ids of some kind."""
    n, edges = draw(edge_lists(8))
    kind = draw(st.sampled_from(["rows", "numbers", "words"]))
    ids: list[Any] = list(range(n))
    if kind == "numbers":
        ids = draw(st.lists(st.integers(-(2**62), 2**62), min_size=n, max_size=n, unique=True))
    elif kind == "words":
        ids = draw(
            st.lists(st.text("abcé1 ", min_size=1, max_size=3).filter(str.strip), min_size=n, max_size=n, unique=True)
        )
    if not edges:
        edges = [(0, 0)]
    word = st.sampled_from([None, "", "web", " math ", "net"])
    return {
        "id": ids,
        "x": normal(draw(st.integers(0, 99)), n, 2).numpy().tolist(),
        "y": normal(draw(st.integers(0, 99)), n, 1).numpy().tolist(),
        "kind": ["web", *draw(st.lists(word, min_size=n - 1, max_size=n - 1))],
        "part": [
            "train",
            *draw(st.lists(st.sampled_from(["train", "Val", "test", ""]), min_size=n - 1, max_size=n - 1)),
        ],
        "source": [ids[u] for u, _ in edges],
        "target": [ids[v] for _, v in edges],
        "batch": draw(st.integers(1, 5)),
        "direction": draw(st.sampled_from(["merged", "in", "out"])),
    }


@settings(max_examples=40)
@given(tables())
def test_both_ways_make_the_same_folder(made: dict[str, Any]) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for name, columns in (("n.arrow", ("id", "x", "y", "kind", "part")), ("e.arrow", ("source", "target"))):
            in_batches(folder / name, {c: made[c] for c in columns}, made["batch"])
        spec = TableSpec(
            nodes=str(folder / "n.arrow"),
            edges=str(folder / "e.arrow"),
            vectors=("x", "y"),
            label="kind",
            split_column="part",
            direction=made["direction"],
        )
        in_memory(spec, folder / "memory")
        built = build_large(spec, folder / "disk", memory=MEMORY)
        folders_equal(folder / "memory", folder / "disk")
        graph = Graph.open(folder / "disk")
        assert (built.nodes, built.features) == (graph.num_nodes, 3)
        assert built.stored_edges == graph.num_stored_edges
        assert built.classes == graph.num_classes
        assert open_splits(folder / "disk").keys() == {"given"}
        assert sorted(p.name for p in folder.iterdir()) == ["disk", "e.arrow", "memory", "n.arrow"]


@pytest.mark.parametrize("ids", [["b", "a", "c"], [7, 5, 9]])
def test_without_a_node_table_nodes_come_in_order_of_appearance(tmp_path: Path, ids: list[Any]) -> None:
    columns = {"source": [ids[1], ids[0], ids[1]], "target": [ids[2], ids[1], ids[1]]}
    spec = TableSpec(edges=str(write_table(tmp_path / "e.parquet", columns)))
    in_memory(spec, tmp_path / "memory")
    build_large(spec, tmp_path / "disk", memory=MEMORY)
    folders_equal(tmp_path / "memory", tmp_path / "disk")
    graph = Graph.open(tmp_path / "disk")
    assert [graph.id_of(row) for row in range(3)] == [ids[1], ids[2], ids[0]]


def test_csv_files_have_text_ids_and_a_matrix_may_lie_in_a_file(tmp_path: Path) -> None:
    nodes = write_table(tmp_path / "n.csv", {"id": ["10", "nan", "3"], "w": ["1;2", "3;4", "5;6"]})
    edges = write_table(tmp_path / "e.csv", {"source": ["10", "3"], "target": ["nan", "10"]})
    np.save(tmp_path / "m.npy", normal(0, 3, 4).numpy())
    spec = TableSpec(nodes=str(nodes), edges=str(edges), vectors=("w", str(tmp_path / "m.npy")))
    in_memory(spec, tmp_path / "memory")
    build_large(spec, tmp_path / "disk", memory=MEMORY)
    folders_equal(tmp_path / "memory", tmp_path / "disk")


def test_features_may_be_kept_in_half_precision(tmp_path: Path) -> None:
    nodes = write_table(tmp_path / "n.parquet", {"id": [0, 1], "x": [[0.1, 2.0], [3.0, 4.0]]})
    edges = write_table(tmp_path / "e.parquet", {"source": [0], "target": [1]})
    spec = TableSpec(nodes=str(nodes), edges=str(edges), vectors=("x",))
    build_large(spec, tmp_path / "disk", memory=MEMORY, feature_type="float16")
    assert np.load(tmp_path / "disk" / "features.npy").dtype == np.float16
    large = TableSpec(
        nodes=str(write_table(tmp_path / "l.parquet", {"id": [0, 1], "x": [[1.0], [1e6]]})),
        edges=str(edges),
        vectors=("x",),
    )
    with pytest.raises(DataError, match=r"l.parquet row 2 has a feature beyond float16"):
        build_large(large, tmp_path / "other", memory=MEMORY, feature_type="float16")
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize("ids", [[0, 1, 2], [4, 5, 6], ["a", "b", "c"]])
def test_edges_to_unknown_nodes_are_counted_dropped_or_an_error(tmp_path: Path, ids: list[Any]) -> None:
    other = "zz" if isinstance(ids[0], str) else 99
    nodes = write_table(tmp_path / "n.parquet", {"id": ids})
    edges = write_table(tmp_path / "e.parquet", {"source": [ids[0], other, ids[1]], "target": [other, ids[1], ids[2]]})
    spec = TableSpec(nodes=str(nodes), edges=str(edges))
    with pytest.raises(DataError) as whole:
        open_tables(spec)
    with pytest.raises(DataError) as pieces:
        build_large(spec, tmp_path / "disk", memory=MEMORY)
    assert str(pieces.value) == str(whole.value)
    assert f"{other!r} (column 'target' row 1), {other!r} (column 'source' row 2)" in str(whole.value)
    dropping = TableSpec(nodes=str(nodes), edges=str(edges), unknown_nodes="drop")
    in_memory(dropping, tmp_path / "memory")
    assert build_large(dropping, tmp_path / "disk", memory=MEMORY).dropped == 2
    folders_equal(tmp_path / "memory", tmp_path / "disk")


@pytest.mark.parametrize("ids", [[3, 4, 3, 4], ["b", "a", "b", "a"], [0, 1, 1, 0]])
def test_ids_that_repeat_are_named_as_in_memory(tmp_path: Path, ids: list[Any]) -> None:
    nodes = write_table(tmp_path / "n.parquet", {"id": ids})
    edges = write_table(tmp_path / "e.parquet", {"source": [ids[0]], "target": [ids[1]]})
    spec = TableSpec(nodes=str(nodes), edges=str(edges))
    messages = []
    for build in (open_tables, lambda spec: build_large(spec, tmp_path / "disk", memory=MEMORY)):
        with pytest.raises(DataError, match="2 ids more than once") as caught:
            build(spec)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]


@pytest.mark.parametrize(
    ("column", "sentence"),
    [
        ({"x": [[1.0], [2.0], [np.nan]]}, r"column 'x' row 3 holds NaN"),
        ({"x": [[1.0], [2.0], [1.0, 2.0]]}, r"column 'x' row 3 has 2 numbers; 1 were expected"),
        ({"x": [[1.0], [2.0], None]}, r"column 'x' row 3 is None, not a vector"),
        ({"kind": ["a", "b", "a;b"]}, r"column 'kind' row 3 has many labels"),
        ({"kind": ["", None, ""]}, r"column 'kind' has no label in any row"),
        ({"part": ["train", "", "trian"]}, r"column 'part' row 3 is 'trian'; a split column holds"),
        ({"part": ["", "", "test"]}, r"column 'part' puts no row into train"),
        ({"id": [0, 1, None]}, r"column 'id' row 3 has no id"),
    ],
)
def test_bad_cells_are_named_by_their_row_in_the_file(tmp_path: Path, column: dict[str, Any], sentence: str) -> None:
    columns = {"id": [0, 1, 2], "x": [[1.0], [2.0], [3.0]], "kind": ["a", "b", "a"], "part": ["train", "", ""]} | column
    in_batches(tmp_path / "n.arrow", columns, 2)
    edges = write_table(tmp_path / "e.parquet", {"source": [0], "target": [1]})
    spec = TableSpec(
        nodes=str(tmp_path / "n.arrow"), edges=str(edges), vectors=("x",), label="kind", split_column="part"
    )
    with pytest.raises(DataError, match=sentence):
        build_large(spec, tmp_path / "disk", memory=MEMORY)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["e.parquet", "n.arrow"]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"text": ("t",)}, "text is not read from tables larger than memory"),
        ({"time": "t"}, "time is not read"),
        ({"label_type": "labels", "label": "k"}, "one class a node"),
        ({"unknown_nodes": "add"}, "drop such edges"),
        ({"vectors": ("m.npz",)}, r"sparse \.npz files"),
    ],
)
def test_what_needs_the_table_in_memory_is_refused(tmp_path: Path, options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        build_large(TableSpec(nodes="n.csv", edges="e.csv", **options), tmp_path / "disk", memory=MEMORY)


def test_too_little_memory_and_unknown_types_are_refused(tmp_path: Path) -> None:
    spec = TableSpec(edges="e.csv")
    with pytest.raises(ConfigError, match="memory must be at least 414 MB; got 1 MB"):
        build_large(spec, tmp_path / "disk", memory=10**6)
    with pytest.raises(ConfigError, match="feature_type must be one of float32, float16"):
        build_large(spec, tmp_path / "disk", memory=MEMORY, feature_type="int8")
    assert table_folder.PROCESS_BYTES + table_folder.LEAST_BYTES == 414_000_000


def test_progress_tells_what_is_read(tmp_path: Path) -> None:
    seen: list[tuple[str, int, int | None]] = []
    nodes = write_table(tmp_path / "n.parquet", {"id": [0, 1, 2]})
    edges = write_table(tmp_path / "e.parquet", {"source": [0, 1], "target": [1, 2]})
    build_large(
        TableSpec(nodes=str(nodes), edges=str(edges)),
        tmp_path / "disk",
        memory=MEMORY,
        report=lambda what, rows, of: seen.append((what, rows, of)),
    )
    assert seen[0] == ("reading nodes", 3, None)
    assert ("reading edges", 2, None) in seen
    assert seen[-1] == ("sorting edges", 3, 3)


def test_numbers_to_predict_are_the_same_in_memory_and_in_batches(tmp_path: Path) -> None:
    nodes = {"id": list("abcd"), "price": ["1.5", "", "2e3", "7"], "rent": [None, None, 1, -2], "v": [[1.0]] * 4}
    in_batches(tmp_path / "n.arrow", nodes, 2)
    edges = write_table(tmp_path / "e.parquet", {"source": ["a", "b"], "target": ["b", "c"]})
    spec = TableSpec(nodes=tmp_path / "n.arrow", edges=edges, label="price,rent", label_type="number", vectors="v")
    in_memory(spec, tmp_path / "memory")
    build_large(spec, tmp_path / "disk", memory=MEMORY)
    folders_equal(tmp_path / "memory", tmp_path / "disk")
    in_batches(tmp_path / "n.arrow", nodes | {"rent": [None] * 4}, 2)
    with pytest.raises(DataError, match="column 'rent' has no number in any row"):
        build_large(spec, tmp_path / "none", memory=MEMORY)
    in_batches(tmp_path / "n.arrow", nodes | {"price": ["1", "2", "3", "many"]}, 2)
    with pytest.raises(DataError, match="'price' row 4"):
        build_large(spec, tmp_path / "text", memory=MEMORY)

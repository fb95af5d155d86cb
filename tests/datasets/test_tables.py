"""Two tables become the graph that they describe."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse

from graphsage.datasets.dataset import Dataset
from graphsage.datasets.tables import new_labels_only_in, open_tables
from graphsage.errors import ConfigError, DataError
from graphsage.graph.split import training_graph
from graphsage.tables.spec import TableSpec
from table_makers import write_table

NODES: dict[str, list[Any]] = {
    "id": ["nan", "2048", "c", "d"],
    "kind": ["x", "y", "x", ""],
    "size": ["1", "", "3", "4"],
    "about": ["one two", "", "two", "three"],
    "release": ["old", "old", "new", "newest"],
}
EDGES: dict[str, list[Any]] = {"src": ["nan", "2048", "c"], "dst": ["2048", "c", "d"], "when": ["old", "new", "newest"]}
ORDER = ("old", "new", "newest")


@pytest.fixture
def make(tmp_path: Path) -> Any:
    def build(nodes: Any = NODES, edges: Any = EDGES, suffix: str = ".csv", **roles: Any) -> Dataset:
        files = {"edges": str(write_table(tmp_path / f"edges{suffix}", edges))}
        if nodes is not None:
            files["nodes"] = str(write_table(tmp_path / f"nodes{suffix}", nodes))
        return open_tables(TableSpec(**files, **roles))

    return build


def neighbors(data: Dataset) -> dict[Any, list[Any]]:
    graph = data.graph
    return {graph.id_of(v): [graph.id_of(int(u)) for u in graph.neighbors(v)] for v in range(graph.num_nodes)}


def test_two_tables_make_the_graph_that_they_describe(make: Any) -> None:
    data = make(label="kind", numeric=("size",), text=("about",), time="release", time_order=ORDER)
    assert neighbors(data) == {"nan": ["2048"], "2048": ["nan", "c"], "c": ["2048", "d"], "d": ["c"]}
    assert data.graph.class_names == ("x", "y")
    assert data.graph.labels.tolist() == [0, 1, 0, -1]
    assert data.graph.time.tolist() == [0, 0, 1, 2]
    assert list(data.columns["about"]) == ["one two", "", "two", "three"]
    assert np.array_equal(data.columns["size"], [1, np.nan, 3, 4], equal_nan=True)
    assert data.plan.columns == ("about", "size")


def test_whole_number_ids_of_typed_files_stay_numbers(make: Any) -> None:
    data = make({"id": [10, 20, 30]}, {"source": [10, 20], "target": [20, 30]}, suffix=".parquet")
    assert neighbors(data) == {10: [20], 20: [10, 30], 30: [20]}


def test_numbers_and_words_of_two_formats_meet(make: Any, tmp_path: Path) -> None:
    words = write_table(tmp_path / "e.csv", {"source": ["10"], "target": ["20"]})
    numbers = write_table(tmp_path / "n.parquet", {"id": [10, 20]})
    assert neighbors(open_tables(TableSpec(nodes=str(numbers), edges=str(words)))) == {10: [20], 20: [10]}
    words, numbers = (
        write_table(tmp_path / "n.csv", {"id": ["10", "20"]}),
        write_table(tmp_path / "e.parquet", {"source": [10], "target": [20]}),
    )
    assert neighbors(open_tables(TableSpec(nodes=str(words), edges=str(numbers)))) == {"10": ["20"], "20": ["10"]}


def test_without_a_node_table_the_edges_name_the_nodes_in_order(make: Any) -> None:
    data = make(None, {"from": ["b", "a", "b"], "to": ["z", "b", "z"]})
    assert list(data.graph.ids) == ["b", "z", "a"]
    assert neighbors(data) == {"b": ["z", "a"], "z": ["b"], "a": ["b"]}
    assert data.plan is None


def test_column_names_can_be_said(make: Any) -> None:
    edges = {"source": ["1"], "u": ["c"], "v": ["d"]}
    data = make({"id": ["?", "?"], "key": ["c", "d"]}, edges, id="key", source="u", target="v", direction="in")
    assert neighbors(data) == {"c": [], "d": ["c"]}


def test_edges_to_unknown_nodes_are_counted_and_shown(make: Any) -> None:
    edges = {"source": ["c", "p", "q", "r", "s"], "target": ["d", "c", "c", "c", "c"]}
    with pytest.raises(DataError, match=r"4 edges name nodes .*'p' .column 'source' row 3.*'q'.*'r' .*unknown_nodes"):
        make(edges=edges)
    dropped = make(edges=edges, unknown_nodes="drop")
    assert (dropped.graph.num_nodes, dropped.graph.num_edges, dropped.dropped_edges) == (4, 1, 4)
    added = make(edges=edges, unknown_nodes="add", label="kind", numeric=("size",), text=("about",))
    assert list(added.graph.ids) == ["nan", "2048", "c", "d", "p", "q", "r", "s"]
    assert added.graph.labels.tolist() == [0, 1, 0, -1, -1, -1, -1, -1]
    graph, _ = added.with_features(added.split("random"))
    assert graph.features.shape[0] == 8


def test_dropped_edges_take_their_times_with_them(make: Any) -> None:
    edges = {"source": ["c", "?", "nan"], "target": ["d", "c", "2048"], "when": ["7", "8", "9"]}
    data = make(
        {**NODES, "t": list("1234")}, edges=edges, time="t", edge_time="when", unknown_nodes="drop", direction="in"
    )
    assert data.graph.edge_time.tolist() == [9, 7]


def test_many_labels_are_lists_or_joined_by_a_sign(make: Any) -> None:
    tags = [["b", "a"], [], ["a"], ["c"]]
    for suffix, cells in ((".parquet", tags), (".csv", [";".join(tag) or "[]" for tag in tags])):
        data = make({**NODES, "tags": cells}, suffix=suffix, label="tags", label_type="labels")
        assert data.graph.class_names == ("a", "b", "c")
        assert data.graph.labels.tolist() == [[1, 1, 0], [0, 0, 0], [1, 0, 0], [0, 0, 1]]
    joined = {**NODES, "tags": ["b|a", "", "a", "c"]}
    many = make(joined, label="tags", label_separator="|", label_type="labels")
    assert many.graph.labels.tolist() == [[1, 1, 0], [255, 255, 255], [1, 0, 0], [0, 0, 1]]
    assert many.graph.class_counts() == [2, 1, 1]
    assert make(joined, label="tags", label_separator="|", label_type="class").graph.class_names == ("a", "b|a", "c")


def test_a_split_column_is_the_default_split(make: Any) -> None:
    data = make({**NODES, "part": ["train", "Valid", "", "test"]}, split_column="part")
    assert data.default_split == "given"
    assert data.split().codes.tolist() == [0, 1, 3, 2]


def test_named_times_split_in_their_order_and_date_the_edges(make: Any) -> None:
    data = make(time="release", time_order=ORDER, edge_time="when", train_until="new", val_until="new")
    assert data.default_split == "time"
    assert data.split().codes.tolist() == [0, 0, 0, 2]
    earlier = make(time="release", time_order=ORDER, edge_time="when", train_until="old", val_until="new")
    assert earlier.split().codes.tolist() == [0, 0, 1, 2]
    seen = training_graph(earlier.graph, earlier.split())
    assert seen.num_edges == 1
    late = {**EDGES, "when": ["new", "new", "newest"]}
    data = make(edges=late, time="release", time_order=ORDER, edge_time="when", train_until="old")
    assert training_graph(data.graph, data.split()).num_edges == 0


@pytest.mark.parametrize(
    ("times", "until", "codes"),
    [
        (["1990", "1999", "2000", "2001"], ("1999", "2000"), [0, 0, 1, 2]),
        (["2020-01-01", "2020-02-01", "2020-02-02", "2021-01-01"], ("2020-02-01", "2020-02-02"), [0, 0, 1, 2]),
        (
            ["2020-01-01T23:00", "2020-01-02 00:01Z", "2020-01-02", "2020-01-03"],
            ("2020-01-01", "2020-01-02"),
            [0, 1, 1, 2],
        ),
        (["10", "9", "-3", "100"], ("9", "10"), [1, 0, 0, 2]),
    ],
)
def test_numbers_and_dates_need_no_order(make: Any, times: list[str], until: tuple[str, str], codes: list[int]) -> None:
    data = make({**NODES, "t": times}, time="t", train_until=until[0], val_until=until[1])
    assert data.split().codes.tolist() == codes


def test_names_without_an_order_are_never_sorted(make: Any) -> None:
    with pytest.raises(DataError, match=r"nodes.csv column 'release' row 2 is 'old'.*time_order"):
        make(time="release")


def test_random_splits_take_their_fractions_and_seed(make: Any) -> None:
    data = make(fractions=(0.5, 0.25, 0.25), split_seed=3)
    assert data.split().sizes() == {"train": 2, "val": 1, "test": 1}


def test_vectors_come_from_files_and_columns(make: Any, tmp_path: Path) -> None:
    dense = np.arange(8, dtype=np.float64).reshape(4, 2)
    np.save(tmp_path / "dense.npy", dense)
    scipy.sparse.save_npz(tmp_path / "sparse.npz", scipy.sparse.csr_matrix(dense))
    lists = {**NODES, "v": dense.tolist()}
    data = make(lists, suffix=".parquet", vectors=("v", str(tmp_path / "dense.npy"), str(tmp_path / "sparse.npz")))
    graph, fitted = data.with_features(data.split())
    assert np.array_equal(graph.features.numpy(), np.concatenate([dense] * 3, axis=1))
    assert fitted.columns == ("v", "dense", "sparse")


def test_classes_that_only_test_nodes_have_are_counted(make: Any) -> None:
    parts = {**NODES, "part": ["train", "test", "test", "test"]}
    data = make({**parts, "kind": ["x", "x", "z", "z"]}, label="kind", split_column="part")
    assert new_labels_only_in(data, data.split()) == {"z": 2}
    many = make({**parts, "kind": ["x;y", "x", "z;y", "z"]}, label="kind", label_type="labels", split_column="part")
    assert new_labels_only_in(many, many.split()) == {"z": 2}


def test_a_spec_survives_being_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    spec = TableSpec(nodes="n.csv", edges="e.csv", text=("a",), vectors=("x.npy", "v"), fractions=(0.5, 0.2, 0.3))
    saved = spec.lasting().as_dict()
    assert saved["nodes"] == str(tmp_path / "n.csv")
    assert saved["vectors"] == (str(tmp_path / "x.npy"), "v")
    assert TableSpec.from_dict({n: list(v) if isinstance(v, tuple) else v for n, v in saved.items()}) == spec.lasting()


@pytest.mark.parametrize(
    ("roles", "message"),
    [
        ({"unknown_nodes": "keep"}, "unknown_nodes must be one of error, drop, add"),
        ({"text_method": "magic"}, "text_method must be one of"),
        ({"text": ("a",), "text_method": "vectors"}, "needs text_model"),
        ({"nodes": None, "label": "kind"}, "there is no node table"),
        ({"time_order": ("a", "a")}, "names a moment twice"),
        ({"train_until": "x"}, "give time"),
        ({"time": "t", "val_until": "x"}, "val_until needs train_until"),
        ({"label": "a", "text": ("a",)}, "cannot be a feature too"),
        ({"label_separator": ""}, "label_separator must be one character"),
    ],
)
def test_a_spec_that_makes_no_sense_is_refused(roles: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        TableSpec(**{"nodes": "n.csv", "edges": "e.csv", **roles})

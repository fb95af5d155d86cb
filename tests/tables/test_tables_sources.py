"""Laws of the one table reader: the source of a table changes neither the graph nor the messages."""

import re
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphs import edge_lists, facts
from graphsage.datasets.table_folder import build_large
from graphsage.datasets.tables import open_tables
from graphsage.errors import ConfigError, DataError, DataWarning
from graphsage.graph.graph import Graph
from graphsage.inference.new_rows import attach
from graphsage.tables.spec import TableSpec
from table_makers import FORMATS, write_table

Columns = dict[str, list[Any]]


def in_batches(columns: Columns) -> Any:
    """An Arrow table with one batch per row."""
    table = pa.table(columns)
    return pa.concat_tables(table.slice(row, 1) for row in range(table.num_rows))


IN_MEMORY: dict[str, Callable[[Columns], Any]] = {
    "dict": dict,
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "arrow": pa.table,
    "arrow batches": in_batches,
}
SOURCES = (*FORMATS, *IN_MEMORY)


def made(source: str, folder: Path, name: str, columns: Columns) -> Any:
    """The columns as a table of a source: a path or an object in memory."""
    if source in IN_MEMORY:
        return IN_MEMORY[source](columns)
    return str(write_table(folder / f"{name}{source}", columns))


@st.composite
def text_tables(draw: Callable[..., Any]) -> tuple[Columns, Columns, dict[str, Any]]:
    """A node table, an edge table and the roles of columns. All cells are text, so that CSV files can hold them."""
    n, edges = draw(edge_lists(6))
    edges = edges or [(0, 0)]
    word = st.text("aé1 ,;\"'\n", min_size=1, max_size=3).filter(str.strip)
    ids = draw(
        st.lists(
            st.one_of(word, st.sampled_from(["nan", "NA", "007", "7", "null"])), min_size=n, max_size=n, unique=True
        )
    )
    kind = st.sampled_from(["x", " y", "", "10", "9", "NA"])
    number = st.sampled_from(["1", "", "NA", " NA", "-2.5", "1e3", " 7"])
    nodes = {
        "t": ids,
        "kind": [
            "x",
            *draw(st.lists(kind, min_size=n - 1, max_size=n - 1)),
        ],
        "f1": draw(st.lists(number, min_size=n, max_size=n)),
        "f2": draw(st.lists(number, min_size=n, max_size=n)),
        "color": draw(st.lists(st.sampled_from(["red", "nan", ""]), min_size=n, max_size=n)),
        "part": ["train", *draw(st.lists(st.sampled_from(["Train", "valid", ""]), min_size=n - 1, max_size=n - 1))],
    }
    ends = {"t": [ids[u] for u, _ in edges], "target": [ids[v] for _, v in edges]}
    roles = {
        "id": "t",
        "source": "t",
        "label": "kind",
        "numeric": ("f*",),
        "categorical": ("color",),
        "split_column": "part",
        "missing": ("NA",),
        "direction": draw(st.sampled_from(["merged", "in", "out", "both"])),
    }
    return nodes, ends, roles


@given(text_tables(), st.sampled_from(SOURCES), st.sampled_from(SOURCES))
def test_every_source_gives_the_same_data(tables: tuple[Columns, Columns, dict[str, Any]], one: str, two: str) -> None:
    nodes, edges, roles = tables
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for source, other in (("dict", "dict"), (one, two)):
            spec = TableSpec(
                nodes=made(source, Path(folder), "n", nodes), edges=made(other, Path(folder), "e", edges), **roles
            )
            data = open_tables(spec)
            codes = data.split("given").codes.tolist()
            found.append((facts(data.graph), codes, {name: repr(list(c)) for name, c in data.columns.items()}))
    assert found[0] == found[1]
    assert list(data.columns) == ["f1", "f2", "color"]
    plain = Graph.from_arrow(
        nodes=nodes, edges=edges, id="t", source="t", label="kind", missing="NA", direction=roles["direction"]
    )
    assert facts(plain) == found[0][0]


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=2, max_size=5, unique=True))
def test_integer_ids_stay_integers_in_typed_sources_and_edges_follow_the_nodes(ids: list[int]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for source in SOURCES:
            nodes = made(source, Path(folder), "n", {"id": ids, "t": ids})
            text = {"source": [str(ids[0])], "target": [str(ids[1])], "t": ["1"]}
            for edges in (text, {"source": ids[:1], "target": ids[1:2], "t": [1]}):
                graph = open_tables(TableSpec(nodes=nodes, edges=made(source, Path(folder), "e", edges))).graph
                words = source.startswith((".csv", ".tsv"))
                assert [graph.id_of(row) for row in range(len(ids))] == [str(i) if words else i for i in ids]
                assert graph.num_edges == 1


BAD: list[tuple[Columns, Columns, str]] = [
    ({"t": ["a", "b", ""]}, {}, "column 't' row ROW has no id"),
    ({"t": ["a", "b", "a"]}, {}, r"column 't' has an id more than once: 'a' \(rows FIRST, ROW\); ids must differ"),
    ({"part": ["train", "", "exam"]}, {}, "column 'part' row ROW is 'exam'; a split column holds train, val and test"),
    ({"v": ["1;2", "3;4", "5"]}, {}, "column 'v' row ROW has 1 numbers; 2 were expected"),
    ({"v": ["1;2", "3;4", "x"]}, {}, "column 'v' row ROW is 'x', not a vector; give a list of numbers"),
    ({}, {"target": ["a", "b", "zz"]}, "1 edge names a node .* such as 'zz' .column 'target' row ROW"),
    ({}, {"t": ["a", "b", " "]}, "column 't' row ROW has no id"),
]


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize(("bad", "bad_edges", "message"), BAD, ids=[message for _, _, message in BAD])
def test_messages_number_rows_as_an_editor_shows_them(
    source: str, bad: Columns, bad_edges: Columns, message: str, tmp_path: Path
) -> None:
    """The header of a CSV file is row 1. The third row of the table is row 4 there, and row 3 elsewhere."""
    first = 2 if source.startswith((".csv", ".tsv")) else 1
    columns = {"t": ["a", "b", "c"], "part": ["train", "", ""], "v": ["1;2", "3;4", "5;6"]} | bad
    nodes = made(source, tmp_path, "n", columns)
    edges = made(source, tmp_path, "e", {"t": ["a", "b", "c"], "target": ["a", "b", "c"]} | bad_edges)
    spec = TableSpec(nodes=nodes, edges=edges, id="t", source="t", split_column="part", vectors=("v",))
    text = message.replace("ROW", str(first + 2)).replace("FIRST", str(first))
    readers: list[Callable[[], Any]] = [
        lambda: open_tables(spec),
        lambda: build_large(spec, tmp_path / "graph", memory=10**9),
    ]
    if bad.keys() <= {"t"}:
        readers.append(lambda: Graph.from_arrow(edges, nodes, id="t", source="t"))
        readers.append(lambda: attach(None, None, nodes, edges, spec))
    messages = set()
    for read in readers:
        with pytest.raises(DataError, match=text) as caught:
            read()
        said = re.sub(r"^(\S*/|new_)", "", str(caught.value))
        messages.add(
            re.sub(r" that the new nodes do not have| that the node table does not have|, or give .*$", "", said)
        )
    assert len(messages) == 1  # but for what new rows are looked up in


def test_a_model_of_tables_in_memory_says_that_they_were_not_saved() -> None:
    spec = TableSpec(nodes=pd.DataFrame({"id": [1, 2]}), edges={"source": [1], "target": [2]})
    saved = open_tables(spec).about["tables"]
    assert saved == {"nodes": "(in memory)", "edges": "(in memory)", "id": "id"}
    assert spec.name == "nodes + edges"
    with pytest.raises(DataError, match="trained on tables in memory, which were not saved; pass the graph"):
        open_tables(TableSpec.from_dict(saved))


def test_patterns_choose_columns_that_have_no_other_role() -> None:
    nodes = {"id": [1, 2], "f1": [1, 2], "f2": [2, 3], "f_label": ["a", "b"], "f3": ["x", "y"], "[f]": [0, 1]}
    spec = TableSpec(
        nodes=nodes, edges={"source": [1], "target": [2]}, label="f_label", numeric=("f*", "[f]"), categorical=("f3",)
    )
    data = open_tables(spec)
    assert data.plan is not None
    assert data.plan.columns == ("f1", "f2", "[f]", "f3")
    assert data.about["tables"]["numeric"] == ("f1", "f2", "[f]")
    with pytest.raises(DataError, match=r"nodes has no column that matches 'g\*'; its columns are 'id', 'f1'"):
        open_tables(TableSpec(nodes=nodes, edges={"source": [1], "target": [2]}, text=("g*",)))


@pytest.mark.parametrize("source", SOURCES)
def test_unknown_labels_and_no_labels_mean_the_same_in_every_source(source: str, tmp_path: Path) -> None:
    sets: list[Any] = [["a"], [], None, ["b", "a"]]
    if source.startswith((".csv", ".tsv")):
        sets = ["a", "[]", "", "b;a"]
    nodes = made(source, tmp_path, "n", {"id": ["1", "2", "3", "4"], "tags": sets})
    edges = made(source, tmp_path, "e", {"source": ["1"], "target": ["2"]})
    data = open_tables(TableSpec(nodes=nodes, edges=edges, label="tags", label_type="labels"))
    unknown = [255, 255]
    assert data.graph.labels is not None
    assert data.graph.labels.tolist() == [[1, 0], [0, 0], unknown, [1, 1]]
    if source in IN_MEMORY:
        plain = Graph.from_arrow(edges, nodes, label="tags")
        assert facts(plain) == facts(data.graph)
        assert facts(Graph.from_arrow(*plain.to_arrow())) == facts(plain)


@pytest.mark.parametrize("source", SOURCES)
def test_columns_that_are_not_used_are_listed_once_by_every_reader(source: str, tmp_path: Path) -> None:
    nodes = made(source, tmp_path, "n", {"id": ["1", "2"], "kind": ["x", "y"], "color": ["r", "g"], "size": [1, 2]})
    edges = made(source, tmp_path, "e", {"source": ["1"], "target": ["2"], "weight": [3], "type": ["cites"]})
    names = (
        r"columns that are not used: \S+: 'color', 'size'; \S+: 'weight', 'type' "
        r"\(edge_type, edge_weight, edge_time read columns of edges\)$"
    )
    spec = TableSpec(nodes=nodes, edges=edges, label="kind")
    readers: list[Callable[[], Any]] = [
        lambda: open_tables(spec),
        lambda: build_large(spec, tmp_path / "graph", memory=10**9),
        lambda: Graph.from_arrow(edges, nodes, label="kind"),
    ]
    for read in readers:
        with pytest.warns(DataWarning, match=names) as caught:
            read()
        assert len(caught) == 1
        assert caught[0].filename == __file__


def test_a_used_column_is_not_listed() -> None:
    spec = TableSpec(nodes={"id": [1, 2], "f1": [1, 2]}, edges={"source": [1], "target": [2]}, numeric="f*")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        open_tables(spec)


def test_one_name_is_one_column() -> None:
    spec = TableSpec(nodes="n.csv", edges="e.csv", text="notes", vectors=Path("x.npy"), time_order="old")
    assert (spec.text, spec.vectors, spec.time_order) == (("notes",), ("x.npy",), ("old",))


@pytest.mark.parametrize(
    ("roles", "message"),
    [
        (
            {"split_column": "part", "categorical": ("part",)},
            "column 'part' is the split column; it cannot be a feature",
        ),
        ({"label_type": "labels"}, "label_type has no effect without label"),
        ({"text_dim": 3}, "text_dim has no effect without text"),
        ({"label": "kind", "label_type": "words"}, "label_type must be one of class, labels, number; got 'words'"),
    ],
)
def test_roles_without_effect_or_sense_are_refused(roles: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        open_tables(TableSpec(nodes={"id": [1]}, edges={"source": [1], "target": [1], "when": [1]}, **roles))

"""Every format gives the same table, and no cell is guessed at."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from graphsage.errors import ConfigError, DataError
from graphsage.tables import source
from graphsage.tables.source import as_table, open_table
from table_makers import FORMATS, write_table

CELLS = {"id": ["nan", "2048", "NA", 'ünï,"code\nx', "007"], "text": ["", "null", "1e5", "a\tb", "true"]}


@pytest.mark.parametrize("suffix", FORMATS)
def test_every_format_gives_the_same_words(tmp_path: Path, suffix: str) -> None:
    table = open_table(write_table(tmp_path / f"t{suffix}", CELLS))
    assert table.names == ("id", "text")
    assert {name: array.to_pylist() for name, array in table.read(["text", "id"]).items()} == CELLS


@pytest.mark.parametrize("suffix", FORMATS)
def test_whole_numbers_stay_numbers_in_typed_files_and_are_words_in_others(tmp_path: Path, suffix: str) -> None:
    table = open_table(write_table(tmp_path / f"t{suffix}", {"id": [3, 10]}))
    words = suffix.removesuffix(".gz") in (".csv", ".tsv")
    assert table.read(["id"])["id"].to_pylist() == (["3", "10"] if words else [3, 10])


def test_a_byte_order_mark_and_windows_lines_are_no_part_of_a_cell(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(b"\xef\xbb\xbfid,b\r\n1,x\r\n")
    table = open_table(tmp_path / "t.csv")
    assert table.names == ("id", "b")
    assert table.read(["b"])["b"].to_pylist() == ["x"]


def test_another_delimiter_can_be_set(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("id;b\n1;x\n")
    assert open_table(tmp_path / "t.csv", ";").names == ("id", "b")
    with pytest.raises(DataError, match="separated by ';', not ',': set delimiter"):
        open_table(tmp_path / "t.csv")
    with pytest.raises(ConfigError, match="delimiter must be one character"):
        open_table(tmp_path / "t.csv", "ab")


def test_long_files_are_read_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "_BLOCK", 1000)
    path = write_table(tmp_path / "t.csv", {"id": range(1000), "b": ["x"] * 1000})
    pieces = [batch["id"].to_pylist() for batch in open_table(path).batches(["id"])]
    assert len(pieces) > 3
    assert [value for piece in pieces for value in piece] == [str(i) for i in range(1000)]


@pytest.mark.parametrize(
    "data",
    [
        {"id": ["a", "b"], "x": [1, 2]},
        pa.table({"id": ["a", "b"], "x": [1, 2]}),
        pa.record_batch({"id": ["a", "b"], "x": [1, 2]}),
        pd.DataFrame({"id": ["a", "b"], "x": [1, 2]}, index=[7, 9]),
        pd.DataFrame({"id": pd.Categorical(["a", "b"]), "x": [1, 2]}),
        pl.DataFrame({"id": ["a", "b"], "x": [1, 2]}),
        {"id": np.array(["a", "b"]), "x": np.array([1, 2])},
    ],
)
def test_tables_in_memory_are_read_like_files(data: Any) -> None:
    table = as_table(data, "new_nodes")
    assert table.names == ("id", "x")
    read = table.read(["id", "x"])
    assert {name: array.to_pylist() for name, array in read.items()} == {
        "id": ["a", "b"],
        "x": [1, 2],
    }


@pytest.mark.parametrize("data", [3, [1, 2], None, {"a": [1], "b": [1, 2]}, {"a": [1, "x"]}])
def test_what_is_no_table_is_an_error(data: Any) -> None:
    with pytest.raises(DataError, match="new_nodes"):
        as_table(data, "new_nodes")

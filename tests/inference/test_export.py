"""Results as files."""

import json
from pathlib import Path

import numpy as np
import pyarrow.csv
import pyarrow.parquet
import pytest

from graphsage.errors import ConfigError, OutputError
from graphsage.inference.export import check_suffix, write_table

Z = np.arange(6, dtype=np.float32).reshape(3, 2) / 7
IDS = ["a", 'b"c', "d,é"]


def test_parquet_keeps_types_lists_and_matrices(tmp_path: Path) -> None:
    columns = {"id": IDS, "labels": [["x"], [], ["x", "y"]], "z": Z, "n": np.array([1, 2, 3])}
    assert write_table(tmp_path / "t.parquet", columns) == [tmp_path / "t.parquet"]
    table = pyarrow.parquet.read_table(tmp_path / "t.parquet")
    assert table["id"].to_pylist() == IDS
    assert table["labels"].to_pylist() == [["x"], [], ["x", "y"]]
    assert np.array_equal(np.array(table["z"].to_pylist(), np.float32), Z)
    assert str(table.schema.field("z").type).startswith("fixed_size_list")
    assert table["n"].to_pylist() == [1, 2, 3]


def test_csv_spreads_matrices_and_joins_lists(tmp_path: Path) -> None:
    write_table(
        tmp_path / "t.csv", {"id": IDS, "labels": [["x"], [], ["x", "y"]], "p": [[0.5], [], [0.25, 1.0]], "z": Z}
    )
    table = pyarrow.csv.read_csv(tmp_path / "t.csv")
    assert table.column_names == ["id", "labels", "p", "z_0", "z_1"]
    assert table["id"].to_pylist() == IDS
    assert table["labels"].to_pylist() == ["x", "[]", "x;y"]
    assert table["p"].to_pylist() == ["0.5", "[]", "0.25;1"]
    np.testing.assert_allclose(table["z_1"].to_numpy(), Z[:, 1], rtol=1e-6)


def test_npy_holds_the_matrix_and_puts_ids_beside_it(tmp_path: Path) -> None:
    made = write_table(tmp_path / "z.npy", {"id": IDS, "embedding": Z})
    assert made == [tmp_path / "z.ids.json", tmp_path / "z.npy"]
    assert np.array_equal(np.load(tmp_path / "z.npy"), Z)
    assert json.loads((tmp_path / "z.ids.json").read_text(encoding="utf-8")) == IDS
    with pytest.raises(ConfigError, match="holds one array"):
        write_table(tmp_path / "y.npy", {"id": IDS, "class": IDS})
    with pytest.raises(ConfigError, match="holds one array"):
        write_table(tmp_path / "y.npy", {"id": IDS, "class": IDS, "z": Z})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["z.ids.json", "z.npy"]


@pytest.mark.parametrize("name", ["t.xlsx", "t", "t.parquet.gz"])
def test_an_unknown_suffix_lists_the_known_ones(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match=r"must end in \.parquet, \.csv, \.npy"):
        write_table(tmp_path / name, {"id": IDS})
    assert list(tmp_path.iterdir()) == []


def test_suffixes_are_read_in_any_case_and_may_be_fewer() -> None:
    check_suffix("Z.PARQUET")
    with pytest.raises(ConfigError, match=r"must end in \.csv; got '\.npy'"):
        check_suffix("z.npy", (".csv",))


def test_a_write_that_fails_half_way_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def disk_full(path: Path, schema: object) -> None:
        path.write_text("half")
        raise OSError(28, "No space left on device")

    write_table(tmp_path / "t.csv", {"id": IDS})
    before = (tmp_path / "t.csv").read_bytes()
    monkeypatch.setattr(pyarrow.csv, "CSVWriter", disk_full)
    with pytest.raises(OutputError, match="No space left"):
        write_table(tmp_path / "t.csv", {"id": IDS})
    assert (tmp_path / "t.csv").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["t.csv"]


@pytest.mark.parametrize("suffix", ["parquet", "csv", "npy"])
def test_a_place_that_cannot_be_written_is_an_output_error(tmp_path: Path, suffix: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match="cannot write"):
        write_table(tmp_path / "file" / f"t.{suffix}", {"id": IDS, "z": Z})

"""Files of rows are NumPy's, byte for byte, and sizes read as people write them."""

import zlib
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphsage.errors import ConfigError, DataError, GraphError
from graphsage.graph.external.csr import CsrFiles, cut
from graphsage.graph.external.row_file import RowFile, RowWriter
from graphsage.graph.external.size import parse_size, shown_size
from graphsage.graph.graph import Graph
from graphsage.graph.storage import load_array, save_adjacency


@pytest.mark.parametrize("parts", [[], [0], [3], [2, 0, 5]])
@pytest.mark.parametrize(("kind", "shape"), [("<i8", ()), ("<f2", (3,)), ("<f4", (2, 2))])
def test_pieces_make_the_file_that_numpy_makes(
    tmp_path: Path, parts: list[int], kind: str, shape: tuple[int, ...]
) -> None:
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=(count, *shape)).astype(kind) for count in parts]
    with RowWriter(tmp_path / "ours.npy", kind, shape) as writer:
        for array in arrays:
            writer.write(array)
    joined = np.concatenate([np.empty((0, *shape), kind), *arrays])
    np.save(tmp_path / "theirs.npy", joined)
    assert (tmp_path / "ours.npy").read_bytes() == (tmp_path / "theirs.npy").read_bytes()
    file = RowFile(tmp_path / "theirs.npy")
    assert writer.checksum == file.checksum() == zlib.crc32(joined.tobytes())
    for start in range(len(joined) + 1):
        np.testing.assert_array_equal(file.read(start, len(joined)), joined[start:])


def test_broken_files_are_named(tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    with pytest.raises(DataError, match=r"a\.npy does not exist"):
        RowFile(path)
    np.save(path, np.arange(100))
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(DataError, match=r"a\.npy is not a whole \.npy file \(8 bytes are missing\)"):
        RowFile(path)
    path.write_bytes(b"nothing")
    with pytest.raises(DataError, match="is not a whole"):
        RowFile(path)
    np.save(path, np.asfortranarray(np.ones((3, 2))))
    with pytest.raises(DataError, match="cannot be read row by row"):
        RowFile(path)


def test_damaged_adjacency_is_named_before_it_is_used(tmp_path: Path) -> None:
    save_adjacency(Graph.from_edges([(0, 1), (1, 2)], 3), tmp_path / "g")
    np.save(tmp_path / "g" / "indices.npy", np.array([1, 0, 7, 1], np.int32))
    with pytest.raises(GraphError, match=r"indices.npy is damaged: it names a node beyond 2"):
        CsrFiles.open(tmp_path / "g").neighbors(0, 4)
    np.save(tmp_path / "g" / "indptr.npy", np.array([0, 3, 1, 4]))
    with pytest.raises(GraphError, match=r"indptr.npy is damaged at node 1"):
        CsrFiles.open(tmp_path / "g").pointers(0, 3)


@given(st.lists(st.integers(1, 9), max_size=20), st.integers(1, 30))
def test_runs_cover_every_row_once_within_the_limit(weights: list[int], limit: int) -> None:
    runs = cut(np.array(weights, np.int64), limit)
    assert [row for start, stop in runs for row in range(start, stop)] == list(range(len(weights)))
    assert all(stop - start == 1 or sum(weights[start:stop]) <= limit for start, stop in runs)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("4GB", 4 * 10**9),
        ("1.5 GiB", 3 << 29),
        ("500m", 5 * 10**8),
        ("123", 123),
        ("2kb", 2000),
        (".5TB", 5 * 10**11),
        ("64e9", 64 * 10**9),
    ],
)
def test_sizes_are_read_as_people_write_them(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "four", "4XB", "-1GB", "GB", "0", "e9"])
def test_other_words_are_refused_as_sizes(text: str) -> None:
    with pytest.raises(ConfigError, match=r"must be .*4GB"):
        parse_size(text)


@given(st.integers(1, 10**15))
def test_a_shown_size_is_enough_and_can_be_typed_back(size: int) -> None:
    assert size <= parse_size(shown_size(size)) <= 1.01 * size + 1


def test_sizes_are_shown_short() -> None:
    sizes = (0, 12, 999, 1500, 488_100_000, 3_000_000_000, 3.1e9, 3.256e12, 5e15)
    shown = ["0 B", "12 B", "999 B", "1.5 kB", "489 MB", "3 GB", "3.1 GB", "3.26 TB", "5000 TB"]
    assert [shown_size(size) for size in sizes] == shown


def test_no_flipped_bit_of_a_header_is_a_traceback(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.arange(12.0).reshape(4, 3))
    right = (tmp_path / "a.npy").read_bytes()
    for place in range(128):
        for bit in range(8):
            hurt = bytearray(right)
            hurt[place] ^= 1 << bit
            (tmp_path / "a.npy").write_bytes(hurt)
            for read in (RowFile, load_array):
                with suppress(DataError):
                    read(tmp_path / "a.npy")

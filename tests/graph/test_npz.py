"""Archives of arrays, whole, lazy and hostile."""

import io
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from scipy import sparse

from graphsage.errors import DataError
from graphsage.graph.npz import Archive, read_sparse

ARRAYS = npst.arrays(
    st.one_of(
        npst.integer_dtypes(endianness="?"), npst.floating_dtypes(endianness="?"), npst.unicode_string_dtypes(max_len=3)
    ),
    npst.array_shapes(min_dims=0, max_dims=3, min_side=0),
)


@given(array=ARRAYS, packed=st.booleans(), columns=st.booleans())
def test_what_numpy_writes_is_what_is_read(
    tmp_path_factory: pytest.TempPathFactory, array: Any, packed: bool, columns: bool
) -> None:
    path = tmp_path_factory.mktemp("any") / "a.npz"
    (np.savez_compressed if packed else np.savez)(
        path, first=np.ones(1), a=np.asarray(array, order="F" if columns else "C")
    )
    back = Archive(path).array("a")
    assert (back.shape, back.dtype) == (array.shape, array.dtype.newbyteorder("="))
    assert np.array_equal(back, array, equal_nan=array.dtype.kind == "f")
    assert back.flags.aligned


def aligned(path: Path, array: Any) -> Path:
    """An archive whose only array lies at a multiple of its number size: the name's length moves it there."""
    for length in range(1, 17):
        np.savez(path, **{"a" * length: array})
        if Archive(path).array("a" * length).base is not None:
            return path
    raise AssertionError


def test_a_stored_array_is_mapped_and_not_read(tmp_path: Path) -> None:
    path = aligned(tmp_path / "a.npz", np.arange(10, dtype=np.float32))
    archive = Archive(path)
    mapped = archive.array(archive.names[0])
    assert isinstance(mapped.base, np.memmap)
    assert mapped.tolist() == list(range(10))


def member(path: Path, content: bytes, packed: bool = True) -> Archive:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED if packed else zipfile.ZIP_STORED) as file:
        file.writestr("a.npy", content)
    return Archive(path)


def header(shape: tuple[int, ...], kind: str = "<f8") -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(buffer, {"descr": kind, "fortran_order": False, "shape": shape})
    return buffer.getvalue()


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (header((1 << 40,)) + b"x" * 8, "says that it holds float64"),
        (header((1,)) + b"x" * 16, "says that it holds float64"),
        (header((2,), "|O") + b"x" * 16, "holds Python objects, which only pickle can read"),
        (b"not an array", "cannot be read"),
        (b"", "cannot be read"),
    ],
)
def test_a_header_that_is_not_true_is_an_error(tmp_path: Path, content: bytes, message: str, packed: bool) -> None:
    with pytest.raises(DataError, match=message):
        member(tmp_path / "a.npz", content, packed).array("a")


def test_a_size_that_no_compression_reaches_is_refused_before_it_is_reserved(tmp_path: Path) -> None:
    length = 2**28
    content = header((length // 8,))
    archive = member(tmp_path / "a.npz", content + b"x" * 8)
    raw = bytearray(archive.path.read_bytes())
    for place, size in ((raw.find(b"PK\x03\x04"), 22), (raw.find(b"PK\x01\x02"), 24)):
        struct.pack_into("<I", raw, place + size, len(content) + length)
    archive.path.write_bytes(raw)
    with pytest.raises(DataError, match="too much to be true"):
        Archive(archive.path).array("a")


@pytest.mark.parametrize("name", ["a.npz", "b.npz"])
def test_files_that_are_no_archives_are_errors(tmp_path: Path, name: str) -> None:
    (tmp_path / "a.npz").write_bytes(b"PK nothing")
    with pytest.raises(DataError, match=r"is not a whole .npz file|does not exist"):
        Archive(tmp_path / name)


def test_a_damaged_array_is_an_error(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "a.npz", a=np.arange(1000))
    raw = bytearray((tmp_path / "a.npz").read_bytes())
    raw[200:260] = bytes(60)
    (tmp_path / "a.npz").write_bytes(raw)
    with pytest.raises(DataError, match="a cannot be read"):
        Archive(tmp_path / "a.npz").array("a")


def test_a_missing_array_is_named_with_those_there_are(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=1, y=2)
    with pytest.raises(DataError, match="lacks the array 'z'; it has x, y"):
        Archive(tmp_path / "a.npz").array("z")


@pytest.mark.parametrize("kind", ["csr", "csc", "coo"])
@pytest.mark.parametrize("packed", [True, False])
def test_sparse_matrices_that_scipy_saved_are_read(tmp_path: Path, kind: str, packed: bool) -> None:
    matrix = sparse.coo_matrix(np.array([[0, 1, 0], [2, 0, 3]])).asformat(kind)
    sparse.save_npz(tmp_path / "m.npz", matrix, compressed=packed)
    assert read_sparse(Archive(tmp_path / "m.npz")).toarray().tolist() == matrix.toarray().tolist()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"indices": np.array([0, 9])}, "the sparse matrix in it is damaged"),
        ({"indices": np.array([0, -1])}, "the sparse matrix in it is damaged"),
        ({"indptr": np.array([0, 5, 2])}, "the sparse matrix in it is damaged"),
        ({"indptr": np.array([0, 1])}, "the sparse matrix in it is damaged"),
        ({"shape": np.array([2])}, "shape must be two integers"),
        ({"shape": np.array([2.0, 2.0])}, "shape must be two integers"),
        ({"format": np.array("bsr")}, "sparse format 'bsr' is not read"),
    ],
)
def test_damaged_sparse_matrices_are_errors(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    whole = {"data": np.ones(2), "indices": np.array([0, 1]), "indptr": np.array([0, 1, 2]), "shape": np.array([2, 2])}
    np.savez(tmp_path / "m.npz", **{**whole, **change})
    with pytest.raises(DataError, match=message):
        read_sparse(Archive(tmp_path / "m.npz"))

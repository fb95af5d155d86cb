"""Pickles of plain data are read; no pickle is obeyed."""

import collections
import os
import pickle
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import python2
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from scipy import sparse

from graphsage.datasets.pickles import read_pickle
from graphsage.errors import DataError


def written(folder: Path, content: bytes) -> Path:
    (folder / "thing").write_bytes(content)
    return folder / "thing"


WRITERS = [python2.dumps, *(lambda value, p=p: pickle.dumps(value, p) for p in range(5))]


@pytest.mark.parametrize("dumps", WRITERS, ids=["python2", *map(str, range(5))])
@pytest.mark.parametrize("kind", ["float32", "float64", "int32", "int64", ">i4", "uint8"])
def test_arrays_of_every_python_and_protocol_are_read(tmp_path: Path, dumps: Any, kind: str) -> None:
    array = np.arange(6).reshape(2, 3).astype(kind)
    back = read_pickle(written(tmp_path, dumps(array)))
    assert back.dtype == array.dtype.newbyteorder("=")
    assert back.tolist() == array.tolist()


@pytest.mark.parametrize("dumps", WRITERS, ids=["python2", *map(str, range(5))])
def test_matrices_and_dictionaries_of_lists_are_read(tmp_path: Path, dumps: Any) -> None:
    matrix = sparse.csr_matrix(np.array([[0, 1.5, 0], [2, 0, 0]], np.float32))
    back = read_pickle(written(tmp_path, dumps(matrix)))
    assert back.toarray().tolist() == matrix.toarray().tolist()
    links = collections.defaultdict(list, {0: [1, 300], 70_000: [0]})
    assert read_pickle(written(tmp_path, dumps(links))) == {0: [1, 300], 70_000: [0]}


def test_an_array_in_columns_is_read(tmp_path: Path) -> None:
    array = np.asfortranarray(np.arange(6).reshape(2, 3))
    assert read_pickle(written(tmp_path, pickle.dumps(array, 2))).tolist() == array.tolist()


class Trap:
    """Runs when unpickled."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        self.call = function, arguments

    def __reduce__(self) -> Any:
        return self.call


def traps(mark: Path) -> dict[str, bytes]:
    touch = f"open({str(mark)!r}, 'w').close()"
    return {
        "system": pickle.dumps(Trap(os.system, f"touch {mark}"), 2),
        "exec": pickle.dumps(Trap(exec, touch), 4),
        "eval": pickle.dumps(Trap(eval, touch), 0),
        "inside a list": pickle.dumps({0: [Trap(exec, touch)]}, 2),
        "getattr": pickle.dumps(Trap(getattr, np.ndarray, "tofile"), 2),
        "numpy's loader": pickle.dumps(Trap(np.load, str(mark)), 2),
        "dotted name": b"\x80\x04\x8c\x05numpy\x8c\x12ndarray.__reduce__\x93.",
        "inst": b"(S'touch " + str(mark).encode() + b"'\nios\nsystem\n.",
        "obj": b"(cos\nsystem\nS'touch " + str(mark).encode() + b"'\no.",
        "extension": b"\x80\x02\x82\x01.",
        "persistent": b"Pid\n.",
        "buffers": b"\x80\x05\x97.",
        "called name": b"\x80\x02c__builtin__\nlist\n)R.",
        "object array": pickle.dumps(np.array([{}], object), 2),
        "record array": pickle.dumps(np.zeros(1, "i4,f4"), 2),
    }


@pytest.mark.parametrize("name", list(traps(Path("x"))))
def test_a_hostile_pickle_is_refused_and_nothing_of_it_runs(tmp_path: Path, name: str) -> None:
    mark = tmp_path / "executed"
    with pytest.raises(DataError, match="thing "):
        read_pickle(written(tmp_path, traps(mark)[name]))
    assert not mark.exists()


def test_the_traps_are_real(tmp_path: Path) -> None:
    for name in ("system", "exec", "eval", "inside a list"):
        pickle.loads(traps(tmp_path / name)[name])
        assert (tmp_path / name).exists()


def test_the_refused_name_is_told(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"asks for (posix|nt)\.system"):
        read_pickle(written(tmp_path, pickle.dumps(Trap(os.system, "true"), 2)))


REPEATED = b"\x80\x02}(K\x00](" + b"K\x01" * 60 + b"eq\x00" + b"".join(b"K%ch\x00" % i for i in range(1, 5)) + b"u."


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not a pickle"),
        (python2.dumps(np.ones(3))[:-9], "not a pickle"),
        (python2.dumps("text"), "holds a str"),
        (python2.dumps({0: "text"}), "must map each node to a list of nodes"),
        (python2.dumps({"a": [1]}), "must map each node to a list of nodes"),
        (b"\x80\x02]r\xff\xff\xff\xff.", "numbers its parts beyond its length"),
        (REPEATED, "more neighbors than"),
        (pickle.dumps(bytearray(b"x"), 5), "BYTEARRAY8"),
        (python2.dumps(np.ones(3)).replace(b"(K\x03t", b"(K\x09t"), "do not belong together"),
        (python2.dumps(sparse.csr_matrix(np.eye(2))).replace(b"(K\x02K\x02t", b"(K\x02K\x01t"), "not a pickle"),
    ],
)  # fmt: skip
def test_broken_pickles_are_errors(tmp_path: Path, content: bytes, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_pickle(written(tmp_path, content))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="nothing does not exist"):
        read_pickle(tmp_path / "nothing")


@given(content=st.binary(max_size=40), start=st.sampled_from([b"", b"\x80\x02", python2.dumps(np.ones(2))[:60]]))
def test_any_bytes_give_data_or_a_data_error(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, start: bytes
) -> None:
    with suppress(DataError):
        read_pickle(written(tmp_path_factory.mktemp("any"), start + content))


@given(array=npst.arrays(npst.integer_dtypes(endianness="?") | npst.floating_dtypes(endianness="?", sizes=(32, 64)),
                         npst.array_shapes(max_dims=3, min_side=0), elements={"allow_nan": False}))  # fmt: skip
def test_what_is_pickled_is_what_is_read(tmp_path_factory: pytest.TempPathFactory, array: Any) -> None:
    for dumps in (python2.dumps, lambda value: pickle.dumps(value, 2)):
        back = read_pickle(written(tmp_path_factory.mktemp("array"), dumps(array)))
        assert back.shape == array.shape
        assert np.array_equal(back, array)

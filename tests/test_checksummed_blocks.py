"""Every flipped bit, cut and longer file is found before the damaged block is used."""

from pathlib import Path

import numpy as np
import pytest

from graphsage.checksummed_blocks import BLOCK, CheckedFile, FileSums, sums_of
from graphsage.errors import DataError, StoreError


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "f.npy").write_bytes(np.random.default_rng(0).bytes(2 * BLOCK + 1000))
    return tmp_path / "f.npy"


def flip(path: Path, place: int) -> None:
    with path.open("r+b") as raw:
        raw.seek(place)
        old = raw.read(1)[0]
        raw.seek(place)
        raw.write(bytes([old ^ 4]))


def test_a_flipped_bit_is_found_in_its_block_and_only_there(file: Path) -> None:
    known = FileSums.from_json(sums_of(file).as_json())
    CheckedFile(file, known).check()
    flip(file, BLOCK + 17)
    checked = CheckedFile(file, known, StoreError, "restore a backup")
    checked.check(0, BLOCK)
    checked.check_rows(np.array([0, 3, BLOCK // 8 - 1, 2 * BLOCK // 8]), 0, 8)
    damaged = r"f\.npy is damaged between bytes 65,536 and 131,072.*restore a backup"
    for read in (
        lambda: checked.check(BLOCK - 1, BLOCK + 1),
        checked.check,
        lambda: checked.check_rows(np.array([0, BLOCK // 8 - 1]), 4, 8),  # the last row ends in the next block
        lambda: checked.check_rows(np.array([0]), 8, 2 * BLOCK),
    ):
        with pytest.raises(StoreError, match=damaged):
            read()


@pytest.mark.parametrize("size", [0, 1, BLOCK, 2 * BLOCK + 999, 2 * BLOCK + 1001])
def test_a_cut_or_longer_file_is_refused(file: Path, size: int) -> None:
    known = sums_of(file)
    open_before = CheckedFile(file, known)
    with file.open("r+b") as raw:
        raw.truncate(size)
    with pytest.raises(DataError, match="bytes, and 132,072 were written"):
        CheckedFile(file, known)
    with pytest.raises(DataError, match="bytes, and 132,072 were written"):
        open_before.check_size()


@pytest.mark.parametrize(
    "value", [None, {}, {"bytes": 5, "crc32": ""}, {"bytes": -1, "crc32": ""}, {"bytes": 1, "crc32": "x" * 8}]
)
def test_damaged_checksums_are_a_value_error(value: object) -> None:
    with pytest.raises(ValueError, match=r"must be|non-hexadecimal"):
        FileSums.from_json(value)
    assert FileSums.from_json({"bytes": 0, "crc32": ""}) == FileSums(0, ())

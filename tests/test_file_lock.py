import os
from pathlib import Path

import pytest

from graphsage.errors import OutputError
from graphsage.file_lock import FileLock, lock_folder


def test_only_one_holds_a_lock_until_it_is_released(tmp_path: Path) -> None:
    first, second = FileLock(tmp_path / "lock"), FileLock(tmp_path / "lock")
    with first:
        assert not second.acquire(wait=False)
    assert second.acquire(wait=False)
    assert not first.acquire(wait=False)
    second.release()
    with pytest.raises(KeyError), first:
        raise KeyError
    assert second.acquire(wait=False)
    second.release()


def test_a_folder_in_use_names_its_process_and_what_to_do(tmp_path: Path) -> None:
    with lock_folder(tmp_path, OutputError, "wait"), pytest.raises(OutputError) as error:
        lock_folder(tmp_path, OutputError, "wait")
    assert str(error.value) == f"{tmp_path} is in use by process {os.getpid()}; wait"
    lock_folder(tmp_path, OutputError, "wait").release()

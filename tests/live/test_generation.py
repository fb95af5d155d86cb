"""Nodes are found in the files of a generation before all keys are verified and sorted in memory."""

from itertools import count
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphsage.checksummed_blocks import BLOCK
from graphsage.errors import DamageError
from graphsage.graph.build import from_edges
from graphsage.live import generation
from graphsage.live.generation import Generation, open_generation, write_generation


def opened(folder: Path, ids: list[str]) -> Generation:
    graph = from_edges([(0, 0)], len(ids), ids=ids)
    return open_generation(folder, write_generation(folder, graph, [{}] * len(ids)))


@given(st.lists(st.text(max_size=3), min_size=1, unique=True), st.lists(st.text(max_size=3)))
def test_both_ways_of_finding_agree(
    tmp_path_factory: pytest.TempPathFactory, ids: list[str], others: list[str]
) -> None:
    folder = tmp_path_factory.mktemp("graph") / "generation"
    few, right = opened(folder, ids), {id: row for row, id in enumerate(ids)}
    object.__setattr__(few, "_finds", iter([0] * (2 * len(ids) + len(others))))
    assert {id: few.find(id) for id in ids} == right
    assert [few.find(id) for id in others] == [right.get(id) for id in others]
    assert "sorted_keys" not in few.__dict__
    assert few.sorted_keys.tolist() == sorted(few.keys.tolist())
    assert {id: few.find(id) for id in ids} == right


def test_opening_reads_no_keys_and_each_block_is_verified_before_its_first_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = [f"n{i}" for i in range(40_000)]
    made = opened(tmp_path / "generation", ids)
    files = [made.files[name] for name in ("keys.npy", "order.npy")]
    assert [int(file.done.sum()) for file in files] == [1, 1]  # headers
    last = len(files[0].known.sums) - 1
    with files[0].path.open("r+b") as file:
        file.seek(last * BLOCK + 11)
        file.write(b"\xff\xff")
    made = open_generation(tmp_path / "generation", {name: file.known for name, file in made.files.items()})
    object.__setattr__(made, "_finds", iter([0] * 1000))
    refused = 0
    for row in np.linspace(0, len(ids) - 1, 50).astype(int).tolist():
        try:
            assert made.find(ids[row]) == row
        except DamageError:
            refused += 1
    assert 0 < refused <= 50
    object.__setattr__(made, "_finds", count(generation._FEW))
    with pytest.raises(DamageError, match=r"keys\.npy"):
        made.find(ids[0])
    with pytest.raises(DamageError, match=r"keys\.npy"):
        made.check()  # stops all reads from now on

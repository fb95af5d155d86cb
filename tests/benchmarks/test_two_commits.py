"""The comparison of two commits: its verdicts on made-up numbers, and its rows on a small graph."""

import contextlib
import math
from pathlib import Path

import pytest

from benchmarks import workload
from benchmarks.commit_worker import HOMES, ROWS, Row, find, prepare
from benchmarks.two_commits import HEADER, judged, line_of, source_of
from benchmarks.workload import Shape, write

ROOT = Path(__file__).parents[2]


def verdict(
    old: list[float],
    new: list[float],
    device: str = "cpu",
    memory: int = 1000,
    check: float = 1.0,
    processor_ratio: float = 1.0,
    others: float = 0.0,
) -> str:
    peaks = {"old": _memory(1000), "new": _memory(memory)}
    times, processor = {"old": old, "new": new}, {"old": [1.0, 1.0], "new": [processor_ratio] * 2}
    return str(judged(times, processor, peaks, {"old": 1.0, "new": check}, device, others)["verdict"])


def _memory(runs: int) -> dict[str, dict[str, int]]:
    return {"set_up": {"peak": 500}, "runs": {"peak": runs}}


def test_the_verdict_names_every_limit_that_is_exceeded() -> None:
    old = [1.0] * 20
    assert verdict(old, [1.04] * 20) == "ok"
    assert verdict(old, [1.04] * 20, "cuda") == "slower"
    assert verdict(old, [1.06] * 20, memory=1100) == "slower, more memory"
    assert verdict(old, old, memory=900) == "ok"
    assert verdict(old, old, check=1.1) == "different results"


def test_rounds_are_compared_pairwise_and_a_wide_spread_is_noisy() -> None:
    drifting = [1.0 + i for i in range(20)]
    assert verdict(drifting, [1.01 * seconds for seconds in drifting]) == "ok"
    assert verdict([1.0] * 20, [0.7, 1.3] * 10) == "noisy"
    assert verdict([1.0] * 20, [0.7, 1.3] * 10, processor_ratio=1.2) == "slower, noisy"


def test_wall_times_of_a_busy_machine_are_not_judged() -> None:
    assert verdict([1.0] * 20, [1.2] * 20) == "slower"
    assert verdict([1.0] * 20, [1.2] * 20, others=0.5) == "noisy"


def test_a_printed_line_fits_its_header() -> None:
    times = {"old": [1.0, 1.0], "new": [1.0, 1.0]}
    row = judged(times, times, {"old": _memory(1), "new": _memory(1)}, {"old": 1.0, "new": 1.0}, "cpu")
    line = line_of("step mean", row)
    assert line.index("ok") == HEADER.index("verdict")


def test_a_folder_is_used_in_place(tmp_path: Path) -> None:
    with source_of(str(ROOT), "old", tmp_path) as found:
        assert Path(found["source"]) == ROOT / "src"
    assert not list(tmp_path.iterdir())


@pytest.fixture(scope="module")
def graph_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("graph")
    write(folder, Shape(300, 8, 12, 3, 200, max_degree=50))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(workload, "TABLE_ROWS", {"wide": 50, "mixed": 100, "edges": 300})
        workload.write_tables(folder / "tables")
    return folder


@pytest.mark.parametrize("row", ROWS["cpu"], ids=lambda row: row.name)
def test_every_row_runs_on_this_commit(row: Row, graph_folder: Path) -> None:
    with contextlib.ExitStack() as cleanup:
        run, check = prepare(row, graph_folder, "cpu", cleanup)
        run()
        assert math.isfinite(check())


@pytest.mark.parametrize("name", sorted(HOMES.keys() - {"reuse"}))
def test_every_name_has_a_home_on_this_commit(name: str) -> None:
    assert find(name) is not None

"""How the CPU benchmark judges itself, on numbers made up by hand."""

from typing import Any

import pytest

from benchmarks.targets import TARGETS, judge, quantity


def entry(seconds: float, peak: int = 1) -> dict[str, Any]:
    return {"seconds": seconds, "peak_bytes": peak}


MEAN: dict[str, dict[str, Any]] = {
    "ours: step mean": entry(3.0, 5),
    "floor: products mean": entry(1.25),
    "floor: gather": entry(0.75),
    "pyg: step mean": entry(12.0, 7),
    "dgl: step mean": entry(9.0, 10),
    "dgl: graphbolt mean": entry(6.0, 20),
}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("ours", 3.0),
        ("floor", 2.0),
        ("PyG", 12.0),
        ("DGL", 9.0),
        ("GraphBolt", 6.0),
        ("best peer", 6.0),
        ("our memory", 5.0),
        ("lowest memory of a peer", 7.0),
    ],
)
def test_each_side_of_a_ratio_is_found(name: str, expected: float) -> None:
    assert quantity(MEAN, name) == expected


def test_a_floor_with_a_part_missing_and_a_failed_peer_are_not_known() -> None:
    assert quantity(MEAN | {"floor: gather": {"error": "no memory"}}, "floor") is None
    assert quantity({"ours: walks": entry(1.0), "pyg: walks": {"error": "not installed"}}, "best peer") is None


def test_ratios_are_judged_by_their_targets_and_a_compiler_makes_the_floor_stricter() -> None:
    for compiler, told in ((False, "at most 1.5"), (True, "at most 1.35")):
        rows = {row["ratio"]: row for row in judge({"mean": MEAN}, compiler)}
        assert rows["mean: ours / floor"] == {
            "ratio": "mean: ours / floor",
            "measured": 1.5,
            "target": told,
            "met": not compiler,
        }
        assert rows["mean: PyG / ours"]["met"] is False
        assert rows["mean: our memory / lowest memory of a peer"]["met"] is True


def test_a_ratio_without_a_limit_is_stated_and_one_without_a_peer_is_open() -> None:
    rows = {row["ratio"]: row for row in judge({"lstm": {"ours: a": entry(2.0), "floor: b": entry(1.0)}}, True)}
    assert rows["lstm: ours / floor"] == {
        "ratio": "lstm: ours / floor",
        "measured": 2.0,
        "target": "stated",
        "met": None,
    }
    assert rows["lstm: best peer / ours"]["measured"] is None
    assert rows["lstm: best peer / ours"]["met"] is None


def test_every_target_names_a_group_of_the_benchmark() -> None:
    from benchmarks.cpu import GROUPS

    assert {target.group for target in TARGETS} <= {group.name for group in GROUPS}

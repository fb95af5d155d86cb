"""`graphsage plan`: words, JSON, mistakes, and a profile measured here."""

import json
from pathlib import Path

import pytest
from command_line import Command

from graphsage.cli.plan import duration
from graphsage.cluster.plan.profile import Profile, Rate
from graphsage.cluster.plan.work import AGGREGATORS

SIZES = ("--nodes", "10M", "--edges", "200M", "--dim", "128")


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    path = tmp_path / "profile.json"
    rates = (Rate(1e6, 1e-9, 1e-10), Rate(1e9, 5e-8, 2e-10))
    Profile(
        gather=dict.fromkeys(("mean", "half", "select", "merge", "ragged", "max"), rates), product_flops=1e11,
        recurrent_flops=5e10, recurrent_forward_flops=5e10, stream_bytes=1e10, fresh_bytes=5e9, call_seconds=1e-6,
        draw_row_seconds=1e-8, draw_seconds=2e-8, compare_seconds=1e-10, step_seconds=dict.fromkeys(AGGREGATORS, 1e-3),
        disk_bytes=1e9, disk_reads=1e4, reduce_seconds=1e-4, reduce_bytes=1e9, about={"memory_bytes": 24e9},
    ).save(path)  # fmt: skip
    return path


def test_a_plan_says_time_memory_disk_and_network_of_both_jobs(graphsage: Command, profile: Path) -> None:
    answer = graphsage("plan", *SIZES, "--profile", profile)
    assert answer.code == 0, answer.err
    assert answer.out.count("  time ") == answer.out.count("  memory ") == answer.out.count("  network ") == 2
    assert "10,000,000 nodes, 200,000,000 edges, 128 float32 features: 6.08 GB" in answer.out
    assert "7,000,000 targets, 13,672 steps of 512" in answer.out
    few = graphsage("plan", *SIZES, "--profile", profile, "--train-nodes", "100")
    assert "100 targets, 1 steps of 100" in few.out


def test_options_reach_the_simulation(graphsage: Command, profile: Path) -> None:
    words = ("plan", *SIZES, "--profile", profile, "--json")
    one, four = (graphsage(*words, "--machines", n).json for n in (1, 4))
    assert four["training_epoch"]["seconds"] < one["training_epoch"]["seconds"]
    assert one["training_epoch"]["network"] == 0 < four["training_epoch"]["network"]
    half = graphsage(*words, "--precision", "float16").json
    assert half["graph"]["folder_bytes"] == one["graph"]["folder_bytes"] - 10_000_000 * 128 * 2
    tiny = graphsage(*words, "--disk", "1GB", "--memory", "2GB").json
    assert not tiny["training_epoch"]["fits"]
    assert "a replicated folder ends here" in tiny["training_epoch"]["notes"][0]
    assert "DOES NOT FIT" in graphsage(*words[:-1], "--disk", "1GB").out
    pool = graphsage(*words, "--aggregator", "pool", "--hidden-dim", "64", "--sample-sizes", "5,5", "--width", "32",
                     "--batch-size", "100", "--train-nodes", "1000", "--classes", "3").json  # fmt: skip
    assert pool["training_epoch"]["counts"]["steps"] == 10
    assert pool["parameters"] == 64 * 129 + 32 * 192 + 64 * 33 + 32 * 96 + 3 * 33


@pytest.mark.parametrize(("words", "message"), [
    ((), "say how large the graph is"),
    (("--nodes", "ten", "--edges", "5"), "--nodes must be an integer of at least 1"),
    (("--nodes", "0", "--edges", "5"), "--nodes must be an integer of at least 1"),
    (("--nodes", "1.5", "--edges", "5"), "--nodes must be an integer"),
    (("--nodes", "5", "--edges", "-1"), "--edges must be an integer of at least 0"),
    ((*SIZES, "--memory", "much"), "--memory must be a size such as 4GB"),
    ((*SIZES, "--memory", "-4GB"), "--memory must be a size such as 4GB"),
    ((*SIZES, "--precision", "int8"), "--precision must be one of float32, float16, bfloat16; got 'int8'"),
    ((*SIZES, "--aggregator", "max"), "aggregator must be one of"),
    ((*SIZES, "--sample-sizes", "a"), "--sample-sizes must be whole numbers"),
    ((*SIZES, "--sample-sizes", "0,5"), "sample_sizes must hold one positive number"),
    ((*SIZES, "--train-nodes", "20M"), "--train-nodes must be at most --nodes, 10,000,000"),
    ((*SIZES, "--machines", "0"), "machines must be above 0"),
    ((*SIZES, "--network", "0"), "network must be above 0"),
    ((*SIZES, "--dim", "0"), "--dim must be at least 1"),
    ((*SIZES, "--machines", "4", "--ranks", "2"), "ranks must be at least the number of machines, 4; got 2"),
])  # fmt: skip
def test_a_mistake_is_one_sentence(graphsage: Command, profile: Path, words: tuple[str, ...], message: str) -> None:
    assert message in graphsage("plan", "--profile", profile, *words).error


def test_a_missing_profile_says_how_to_make_one(graphsage: Command, tmp_path: Path) -> None:
    error = graphsage("plan", *SIZES, "--profile", tmp_path / "none.json").error
    assert f"graphsage plan --calibrate {tmp_path / 'none.json'}" in error


@pytest.mark.slow
def test_this_machine_is_measured_and_planned_with(graphsage: Command, tmp_path: Path) -> None:
    path = tmp_path / "profile.json"
    assert graphsage("plan", "--calibrate", path).code == 0
    found = Profile.load(path)
    mean = found.gather["mean"]
    assert [rate.table_bytes for rate in mean] == sorted(rate.table_bytes for rate in mean)
    assert all(value > 0 for value in (found.product_flops, found.stream_bytes, found.disk_reads, found.reduce_bytes))
    assert json.loads(path.read_text())["about"]["cores"] >= 1
    assert graphsage("plan", *SIZES, "--profile", path, "--json").json["training_epoch"]["seconds"] > 0


def test_durations_are_written_as_people_do() -> None:
    assert [duration(s) for s in (0.05, 1.29, 119, 600, 7300, 2e5)] == [
        "50 ms", "1.29 s", "119 s", "10 min", "2.03 h", "2.31 days"]  # fmt: skip

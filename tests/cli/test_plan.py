"""`graphsage plan`: text, JSON and mistakes, without any prior measurement."""

import re
from pathlib import Path

import pytest

from command_line import Command
from graphsage.cli.plan import duration
from graphsage.cluster import plan_rates
from graphsage.cluster.plan_rates import Rates

ROOT = Path(__file__).parents[2]
SIZES = ("--num-nodes", "10M", "--num-edges", "200M", "--feature-dim", "128")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPHSAGE_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def rates(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_rates, "measure", lambda *sizes: Rates(1e-3, 1e-5, 1e-6, 1e-7, 1e9, 1e4))


def examples() -> list[str]:
    pages = [ROOT / "README.md", ROOT / "docs" / "scale.md"]
    found = [m for page in pages for m in re.findall(r"`graphsage (plan --[^`]*)`", page.read_text("utf-8"))]
    assert found
    return found


@pytest.mark.parametrize("words", examples())
def test_examples_of_the_documents_run(graphsage: Command, rates: None, words: str) -> None:
    answer = graphsage(*words.split())
    assert answer.code == 0, answer.err


def test_the_first_plan_measures_this_machine(graphsage: Command, tmp_path: Path) -> None:
    words = (
        "plan",
        "--num-nodes",
        "2000",
        "--num-edges",
        "20000",
        "--feature-dim",
        "8",
        "--dim",
        "8",
        "--sample-sizes",
        "3,2",
    )
    first = graphsage(*words, "--json").json
    assert len(list((tmp_path / "cache" / "plan").iterdir())) == 1
    assert graphsage(*words, "--json").json == first
    assert first["training_epoch"]["fits"]
    assert first["training_epoch"]["seconds"] > 0 < first["inference"]["seconds"]


def test_a_plan_shows_time_memory_disk_and_network_of_both_jobs(graphsage: Command, rates: None) -> None:
    answer = graphsage("plan", *SIZES)
    assert answer.code == 0, answer.err
    assert answer.out.count("  time ") == answer.out.count("  memory ") == answer.out.count("  network ") == 2
    assert "10,000,000 nodes, 200,000,000 edges, 128 float32 features: 6.08 GB" in answer.out
    assert "7,000,000 targets, 13,672 steps of 512" in answer.out
    assert "within a factor of 2" in answer.out
    assert "100 targets, 1 steps of 100" in graphsage("plan", *SIZES, "--train-nodes", "100").out


def test_options_reach_the_estimate(graphsage: Command, rates: None) -> None:
    words = ("plan", *SIZES, "--json")
    one, four, workers = (graphsage(*words, *more).json for more in ((), ("--machines", 4), ("--workers", 4)))
    assert four["training_epoch"]["seconds"] < one["training_epoch"]["seconds"]
    assert one["training_epoch"]["network"] == 0 < four["training_epoch"]["network"]
    assert workers["training_epoch"]["memory"] == pytest.approx(4 * one["training_epoch"]["memory"], rel=0.01)
    half = graphsage(*words, "--feature-type", "float16").json
    assert half["graph"]["folder_bytes"] == one["graph"]["folder_bytes"] - 10_000_000 * 128 * 2
    tiny = graphsage(*words, "--disk", "1GB", "--memory", "2GB").json
    assert not tiny["training_epoch"]["fits"]
    assert "DOES NOT FIT" in graphsage(*words[:-1], "--disk", "1GB").out
    pool = graphsage(
        *words,
        "--aggregator",
        "pool",
        "--hidden-dim",
        "64",
        "--sample-sizes",
        "5,5",
        "--dim",
        "32",
        "--batch-size",
        "100",
        "--train-nodes",
        "1000",
        "--classes",
        "3",
    ).json
    assert pool["steps"] == 10
    assert pool["parameters"] == 64 * 129 + 32 * 192 + 64 * 33 + 32 * 96 + 3 * 33


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((*SIZES, "--num-nodes", "ten"), "--num-nodes must be an integer of at least 1"),
        ((*SIZES, "--num-nodes", "0"), "--num-nodes must be an integer of at least 1"),
        ((*SIZES, "--num-nodes", "1.5"), "--num-nodes must be an integer"),
        ((*SIZES, "--num-edges", "-1"), "--num-edges must be an integer of at least 0"),
        ((*SIZES, "--memory", "much"), "--memory must be a size such as 4GB"),
        ((*SIZES, "--feature-type", "int8"), "--feature-type must be one of float32, float16, bfloat16; got 'int8'"),
        ((*SIZES, "--aggregator", "max"), "aggregator must be one of"),
        ((*SIZES, "--sample-sizes", "0,5"), "--sample-sizes must hold one positive number"),
        ((*SIZES, "--train-nodes", "20M"), "--train-nodes must be at most --num-nodes, 10,000,000"),
        ((*SIZES, "--machines", "0"), "machines must be above 0"),
        ((*SIZES, "--feature-dim", "0"), "--feature-dim must be at least 1"),
        ((*SIZES, "--dim", "wide"), "--dim must be a valid integer; got 'wide'"),
    ],
)
def test_a_mistake_is_one_sentence(graphsage: Command, rates: None, words: tuple[str, ...], message: str) -> None:
    assert message in graphsage("plan", *words).error


def test_the_size_of_the_graph_is_required(graphsage: Command) -> None:
    answer = graphsage("plan")
    assert answer.code == 2
    assert "--num-nodes" in answer.err


def test_durations_have_three_digits_and_a_unit() -> None:
    assert [duration(s) for s in (0.05, 1.29, 119, 600, 7300, 2e5)] == [
        "50 ms",
        "1.29 s",
        "119 s",
        "10 min",
        "2.03 h",
        "2.31 days",
    ]

"""Estimates: laws over sizes and machines, network and blocks by hand, and the cache of measured rates."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from graphsage.cluster import plan_rates
from graphsage.cluster.plan import (
    ALL_REDUCE_SECONDS,
    Machines,
    num_weights,
    training_epoch,
    whole_graph,
)
from graphsage.cluster.plan_rates import GraphSize, Rates, measure, random_graph, rates_of
from graphsage.errors import ConfigError, DataError
from graphsage.graph.storage import save_graph
from graphsage.inference.out_of_core.edges import EDGE_BYTES
from graphsage.inference.out_of_core.plan import PROCESS_BYTES, ROW_BYTES, SOURCE_SHARE
from graphsage.model.aggregators import AGGREGATORS
from graphsage.training.config import Config

RATES = Rates(
    step_seconds=1e-3, target_seconds=1e-5, node_seconds=1e-6, edge_seconds=1e-7, disk_bytes=1e9, disk_reads=1e4
)
GRAPH = GraphSize(100_000, 2_000_000, 64)
SMALL = Config(sample_sizes=(5, 3), dim=32, batch_size=100)


def both(graph: GraphSize, config: Config, on: Machines, targets: int | None = None) -> list[Any]:
    return [training_epoch(graph, config, on, RATES, targets or graph.nodes), whole_graph(graph, config, on, RATES)]


def test_an_epoch_takes_its_steps_and_its_targets() -> None:
    found = training_epoch(GRAPH, SMALL, Machines(), RATES, 1001)
    assert found.seconds == pytest.approx(11 * (1e-3 + 100 * 1e-5))
    assert (found.network, found.disk_read, found.problems) == (0, 0, [])
    assert training_epoch(GRAPH, SMALL, Machines(), RATES, 64).seconds == pytest.approx(1e-3 + 64 * 1e-5)


def test_gradients_cross_the_network() -> None:
    found = training_epoch(GRAPH, SMALL, Machines(4, network=1e9), RATES, 1000)
    sent = 10 * 2 * 3 / 4 * 4 * num_weights(GRAPH, SMALL)
    assert found.network == pytest.approx(sent)
    assert found.parts["network"] == pytest.approx(sent / 1e9 + 10 * ALL_REDUCE_SECONDS * 2)
    assert found.parts["computing"] == pytest.approx(10 * 25 * 1e-5)
    here = training_epoch(GRAPH, SMALL, Machines(1, workers=4), RATES, 1000)
    assert here.network == 0 < here.parts["network"]
    assert here.memory > 3 * training_epoch(GRAPH, SMALL, Machines(), RATES, 1000).memory


def test_a_folder_larger_than_memory_is_read_from_disk() -> None:
    graph = GraphSize(10**9, 10**9, 256)
    cold, warm = (training_epoch(graph, SMALL, Machines(memory=m), RATES, 100) for m in (100e9, 1e13))
    assert "exceeds memory: 9" in cold.notes[0]
    assert cold.parts["disk"] > 0.9 * 100 * 4 * 6 / 1e4
    assert warm.parts["disk"] == 0
    small = Machines(memory=1e13, disk=1e12)
    assert all("disk per machine is too small" in found.problems[0] for found in both(graph, SMALL, small))


def test_edges_must_fit_into_memory_for_training() -> None:
    found = training_epoch(GraphSize(10**8, 10**10, 8), SMALL, Machines(memory=64e9), RATES, 512)
    assert "memory per machine is too small for the edges" in found.problems[0]


def test_inference_in_blocks_reads_source_rows_once_per_block() -> None:
    graph, config = GraphSize(10**7, 2 * 10**8, 64), Config(sample_sizes=(5,), dim=64)
    held = graph.nodes * (4 * 64 + ROW_BYTES) + graph.edges * EDGE_BYTES
    blocks = whole_graph(graph, config, Machines(memory=PROCESS_BYTES + held / 2 / (1 - SOURCE_SHARE)), RATES)
    assert blocks.disk_read == pytest.approx(2 * graph.nodes * graph.row_bytes + 4 * graph.edges)
    assert blocks.disk_written == 4 * 64 * graph.nodes
    much = whole_graph(graph, config, Machines(memory=1e12), RATES)
    assert (much.disk_read, much.disk_written) == (graph.folder_bytes, 0)


GRAPHS = st.builds(
    GraphSize,
    st.integers(1000, 10**9),
    st.integers(0, 10**10),
    st.integers(1, 500),
    st.sampled_from([torch.float32, torch.float16]),
)
CONFIGS = st.builds(
    lambda name, sizes, dim: Config(aggregator=name, sample_sizes=sizes, dim=dim),
    st.sampled_from(list(AGGREGATORS)),
    st.tuples(st.integers(1, 30), st.integers(1, 30)),
    st.integers(2, 256),
)


@given(graph=GRAPHS, config=CONFIGS, more=st.integers(1, 10**9))
def test_larger_jobs_never_need_less(graph: GraphSize, config: Config, more: int) -> None:
    on = Machines(memory=64e9)
    for larger, deeper in (
        (replace(graph, nodes=graph.nodes + more), config),
        (replace(graph, edges=graph.edges + more), config),
        (replace(graph, dim=graph.dim + more % 100), config),
        (graph, replace(config, sample_sizes=(*config.sample_sizes, 5))),
        (graph, replace(config, sample_sizes=(config.sample_sizes[0] + 1, config.sample_sizes[1]))),
    ):
        small, large = (both(*job, on) for job in ((graph, config), (larger, deeper)))
        for before, after in zip(small, large, strict=True):
            assert before.parts["computing"] <= after.parts["computing"]
            assert before.memory <= after.memory
        assert small[0].seconds <= large[0].seconds * (1 + 1e-9)


@given(graph=GRAPHS, config=CONFIGS, machines=st.integers(1, 100), more=st.integers(1, 100))
def test_more_machines_never_compute_longer(graph: GraphSize, config: Config, machines: int, more: int) -> None:
    few, many = (both(graph, config, Machines(count, memory=1e15)) for count in (machines, machines + more))
    assert all(b.parts["computing"] <= a.parts["computing"] * (1 + 1e-9) for a, b in zip(few, many, strict=True))
    assert all(b.parts["network"] >= a.parts["network"] for a, b in zip(few[:1], many[:1], strict=True))


@given(graph=GRAPHS, config=CONFIGS, workers=st.integers(1, 8))
def test_memory_holds_at_least_the_arrays(graph: GraphSize, config: Config, workers: int) -> None:
    training, inference = both(graph, config, Machines(workers=workers, memory=1e15))
    assert training.memory >= workers * (graph.edge_bytes + 4 * num_weights(graph, config))
    assert inference.memory >= graph.folder_bytes + 4 * graph.nodes * config.dim


def test_the_folder_is_as_large_as_estimated(tmp_path: Path) -> None:
    save_graph(random_graph(GraphSize(5000, 50_000, 16, torch.float16), 10), tmp_path / "graph")
    size = sum(file.stat().st_size for file in (tmp_path / "graph").rglob("*") if file.is_file())
    assert GraphSize(5000, 50_000, 16, torch.float16).folder_bytes == pytest.approx(size, rel=0.05)


@pytest.mark.parametrize("change", [{"machines": 0}, {"memory": -1.0}, {"network": 0.0}, {"workers": 0}])
def test_impossible_machines_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=f"{next(iter(change))} must be above 0"):
        Machines(**change)


@pytest.mark.parametrize("aggregator", AGGREGATORS)
def test_every_aggregator_is_measured(aggregator: str) -> None:
    config = Config(aggregator=aggregator, sample_sizes=(2, 2), dim=8, hidden_dim=8)
    rates = measure(config, GraphSize(200, 0, 8, torch.float16))
    assert all(0 <= value < math.inf for value in vars(rates).values())
    assert rates.step_seconds + rates.target_seconds > 0
    assert rates.disk_reads > 0


def test_rates_are_measured_once_per_model_and_again_on_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRAPHSAGE_CACHE", str(tmp_path))
    measured: list[Config] = []
    monkeypatch.setattr(plan_rates, "measure", lambda config, *sizes: measured.append(config) or RATES)
    pool = Config(aggregator="pool")
    for config, again in ((SMALL, False), (SMALL, False), (pool, False), (SMALL, True)):
        assert rates_of(config, GRAPH, again=again) == RATES
    assert measured == [SMALL, pool, SMALL]
    for file in (tmp_path / "plan").iterdir():
        file.write_text("{}")
    assert rates_of(pool, GRAPH) == RATES
    assert measured[-1] == pool


def test_a_machine_that_cannot_be_measured_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPHSAGE_CACHE", str(tmp_path))

    def fail(*sizes: object) -> Rates:
        raise OSError("No space left on device")

    monkeypatch.setattr(plan_rates, "measure", fail)
    with pytest.raises(DataError, match="this machine cannot be measured: No space left on device"):
        rates_of(SMALL, GRAPH)

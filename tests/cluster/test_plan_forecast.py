"""Forecasts: hand-computed times under a made-up profile, and laws over sizes and machines."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphsage.cluster.plan.forecast import Cluster, training_epoch, whole_graph
from graphsage.cluster.plan.profile import Profile, Rate
from graphsage.cluster.plan.work import AGGREGATORS, Gather, Graph, Model, Work, training_step
from graphsage.errors import ConfigError, DataError
from graphsage.inference.out_of_core.edges import EDGE_BYTES
from graphsage.inference.out_of_core.plan import PROCESS_BYTES, ROW_BYTES, SOURCE_SHARE

RATES = (Rate(1e6, 1e-9, 1e-10), Rate(1e8, 3e-9, 3e-10))
KINDS = ("mean", "half", "select", "merge", "ragged", "max")
PROFILE = Profile(
    gather=dict.fromkeys(KINDS, RATES), product_flops=1e11, recurrent_flops=5e10, recurrent_forward_flops=5e10,
    stream_bytes=1e10, fresh_bytes=5e9, call_seconds=1e-6, draw_row_seconds=1e-8, draw_seconds=2e-8,
    compare_seconds=1e-10, step_seconds=dict.fromkeys(AGGREGATORS, 1e-3), disk_bytes=1e9, disk_reads=1e4,
    reduce_seconds=1e-4, reduce_bytes=1e9, about={"memory_bytes": 24e9},
)  # fmt: skip
GRAPH = Graph(100_000, 2_000_000, 64)


def test_each_kind_of_work_takes_its_time() -> None:
    work = Work((Gather("mean", 1000, 100, 1e6),), products=1e9, recurrent=5e8, streamed=1e8, fresh=5e7, calls=100,
                drawn=((1000, 10),))  # fmt: skip
    assert PROFILE.parts(work) == pytest.approx({
        "gathering": 1000 * (1e-9 + 100 * 1e-10), "products": 1e-2 + 1e-2, "passes": 1e-2 + 1e-2,
        "starting operations": 1e-4, "drawing": 1000 * (1e-8 + 10 * 2e-8 + 100 * 1e-10)})  # fmt: skip


@pytest.mark.parametrize(("table", "factor"), [(1e3, 1.0), (1e6, 1.0), (1e7, 2.0), (1e8, 3.0), (1e12, 3.0)])
def test_gathering_costs_more_from_larger_tables_until_memory(table: float, factor: float) -> None:
    assert PROFILE.gathering(Gather("mean", 10, 50, table)) == pytest.approx(10 * 6e-9 * factor)


def test_an_epoch_is_as_many_steps_as_batches() -> None:
    model, cluster = Model("mean", (5, 3), 32), Cluster()
    found = training_epoch(GRAPH, model, cluster, PROFILE, targets=1001, batch_size=100)
    step = sum(PROFILE.parts(training_step(GRAPH, model, 100)).values()) + 1e-3
    assert found.counts["steps"] == 11
    assert found.seconds == pytest.approx(11 * step)
    assert (found.network, found.disk_read, found.fits) == (0, 0, True)


def test_a_batch_has_no_more_targets_than_there_are() -> None:
    model, cluster = Model("mean", (5, 3), 32), Cluster(1, ranks=2)
    few, exact = (training_epoch(GRAPH, model, cluster, PROFILE, targets=64, batch_size=size) for size in (512, 64))
    assert few == exact
    assert (few.counts["steps"], few.counts["targets_a_rank"]) == (1, 32)


def test_gradients_are_added_over_the_network_by_hand() -> None:
    model = Model("mean", (5, 3), 32)
    found = training_epoch(GRAPH, model, Cluster(4, network=1e9), PROFILE, targets=1000, batch_size=100)
    bytes_each = 10 * 2 * 3 / 4 * 4 * model.parameters(64)
    assert found.network == pytest.approx(bytes_each)
    assert found.parts["network"] == pytest.approx(bytes_each / 1e9 + 10 * 1e-4 * 2)
    assert found.counts["targets_a_rank"] == 25
    here = training_epoch(GRAPH, model, Cluster(1, ranks=4), PROFILE, targets=1000, batch_size=100)
    assert here.network == 0  # loopback
    assert here.parts["network"] > 0


def test_a_folder_larger_than_memory_is_read_from_disk_and_one_larger_than_the_disk_is_refused() -> None:
    graph, model = Graph(10**9, 10**9, 256), Model()
    room = Cluster(memory=500e9)
    cold = training_epoch(graph, model, room, PROFILE, targets=512)
    left = 1 - (500e9 - cold.counts["resident_memory"]) / graph.folder_bytes
    rows = 512 * 11 * 26
    assert cold.parts["disk"] == pytest.approx(left * rows * (1 + 1023 / 4096) / 1e4)
    assert f"{left:.0%} of all reads go to disk" in cold.notes[0]
    small = training_epoch(graph, model, replace(room, disk=1e12), PROFILE, targets=512)
    assert not small.fits
    assert "a replicated folder ends here" in small.notes[0]
    warm = training_epoch(graph, model, Cluster(memory=3e12), PROFILE, targets=512)
    assert warm.parts["disk"] == 0
    assert "fits into the memory of each machine" in warm.notes[0]


def test_edges_that_a_rank_cannot_hold_are_said_to_be_too_many() -> None:
    found = training_epoch(Graph(10**8, 10**10, 8), Model(), Cluster(memory=64e9), PROFILE, targets=512)
    assert not found.fits
    assert "each rank holds the edges" in found.notes[-1]


def test_inference_goes_by_blocks_where_memory_is_short_and_then_reads_more() -> None:
    graph, model = Graph(10**7, 2 * 10**8, 128), Model()
    much, little, less = (whole_graph(graph, model, Cluster(memory=m), PROFILE) for m in (1e12, 4e9, 2e9))
    assert much.notes == ["in memory"]
    assert much.disk_read == graph.folder_bytes
    assert little.notes == ["in blocks, over files that every machine sees"]
    assert little.memory <= 4e9
    assert much.disk_read < little.disk_read < less.disk_read
    assert little.disk_written == 2 * 4 * 10**7 * 256


def test_blocks_are_reckoned_with_the_memory_that_inference_gives_them() -> None:
    """Half of the nodes with their edges fit at a time, so that the rows below are read twice."""
    graph, model = Graph(10**7, 2 * 10**8, 64), Model("mean", (5,), 64)
    held = graph.nodes * (4 * 64 + ROW_BYTES) + graph.edges * EDGE_BYTES
    memory = PROCESS_BYTES + held / 2 / (1 - SOURCE_SHARE)
    found = whole_graph(graph, model, Cluster(memory=memory), PROFILE)
    assert found.disk_read == pytest.approx(2 * graph.feature_bytes + 4 * graph.edges)


GRAPHS = st.builds(
    Graph, st.integers(1000, 10**9), st.integers(0, 10**10), st.integers(1, 1000), st.sampled_from([2, 4])
)
MODELS = st.builds(Model, st.sampled_from(AGGREGATORS), st.tuples(st.integers(1, 30), st.integers(1, 30)),
                   st.integers(2, 512))  # fmt: skip


@given(graph=GRAPHS, model=MODELS, machines=st.integers(1, 200), more=st.integers(1, 200))
def test_more_machines_never_compute_longer(graph: Graph, model: Model, machines: int, more: int) -> None:
    def computing(count: int) -> tuple[float, float]:
        cluster = Cluster(count, memory=1e15)
        both = (training_epoch(graph, model, cluster, PROFILE, targets=graph.nodes, batch_size=4096),
                whole_graph(graph, model, cluster, PROFILE))  # fmt: skip
        return tuple(sum(v for n, v in found.parts.items() if n not in ("network", "disk")) for found in both)

    few, many = computing(machines), computing(machines + more)
    assert all(b <= a * (1 + 1e-9) for a, b in zip(few, many, strict=True))


@given(graph=GRAPHS, model=MODELS, edges=st.integers(1, 10**10), dim=st.integers(1, 500))
def test_more_edges_or_features_never_take_less_time_or_memory(
    graph: Graph, model: Model, edges: int, dim: int
) -> None:
    def cost(graph: Graph) -> list[float]:
        cluster = Cluster(memory=64e9)
        both = (training_epoch(graph, model, cluster, PROFILE, targets=graph.nodes), whole_graph(graph, model, cluster,
                                                                                                PROFILE))  # fmt: skip
        return [both[0].seconds, both[0].memory, both[1].parts["gathering"], both[1].parts["products"]]

    here = cost(graph)
    for larger in (replace(graph, edges=graph.edges + edges), replace(graph, dim=graph.dim + dim)):
        assert all(a <= b * (1 + 1e-6) for a, b in zip(here[:2], cost(larger)[:2], strict=True))
    assert all(a <= b * (1 + 1e-6) for a, b in zip(here, cost(replace(graph, edges=graph.edges + edges)), strict=True))


@pytest.mark.parametrize(("change", "message"), [
    ({"machines": 0}, "machines must be above 0"), ({"memory": -1.0}, "memory must be above 0"),
    ({"network": 0.0}, "network must be above 0"), ({"machines": 4, "ranks": 2}, "at least the number of machines, 4"),
])  # fmt: skip
def test_a_cluster_that_cannot_be_is_refused(change: dict[str, float], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        replace(Cluster(), **change)


def test_a_profile_is_read_as_it_was_written_and_a_damaged_one_is_named(tmp_path: Path) -> None:
    path = tmp_path / "profile.json"
    PROFILE.save(path)
    assert Profile.load(path) == PROFILE
    text = path.read_text()
    for damaged in (text[:100], "[]", "{}", text.replace('"version": 1', '"version": 99'), text.replace("gather", "g")):
        path.write_text(damaged)
        with pytest.raises(DataError, match="measure again: graphsage plan --calibrate"):
            Profile.load(path)
    with pytest.raises(DataError, match="does not exist; measure this machine first"):
        Profile.load(tmp_path / "none.json")

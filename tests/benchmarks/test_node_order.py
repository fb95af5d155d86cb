"""Orders that the measurement of larger tables compares: they change where rows lie, and nothing else."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.node_order import InRuns, renumbered
from graphsage.graph.build import check_graph
from planted import planted_graph


@given(st.integers(0, 2**32 - 1))
def test_renumbering_keeps_every_edge_and_what_belongs_to_a_node(seed: int) -> None:
    graph = planted_graph(30, seed % 1000)
    order = torch.randperm(30, generator=torch.Generator().manual_seed(seed))
    moved = renumbered(graph, order)
    check_graph(moved)
    assert torch.equal(moved.features, graph.features[order])
    assert torch.equal(moved.labels, graph.labels[order])
    for row in range(30):
        neighbors = moved.neighbors(row)
        assert torch.equal(neighbors, neighbors.sort().values)
        assert sorted(order[neighbors.long()].tolist()) == graph.neighbors(int(order[row])).tolist()


@given(st.integers(1, 80), st.integers(1, 20), st.integers(1, 9), st.integers(0, 9))
def test_runs_cover_every_example_once_an_epoch(examples: int, batch: int, together: int, epoch: int) -> None:
    epochs = InRuns(examples, batch, seed=epoch, together=together)
    seen = torch.cat(
        [epochs.examples(epoch * epochs.steps + step, torch.device("cpu"))[0] for step in range(epochs.steps)]
    )
    assert sorted(seen.tolist()) == list(range(examples))
    whole = seen[: examples // together * together].view(-1, together)
    assert torch.equal(whole - whole[:, :1], torch.arange(together).expand_as(whole))

"""A user's aggregator runs plainly, and works everywhere: training, exact, sampled, out of core, live."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

import graphsage as gs
from graphsage.inference.out_of_core.embed import embed_in_blocks
from graphsage.inference.out_of_core.plan import Budget
from graphsage.kernels.gather import gather_max, gather_mean
from graphsage.kernels.neighborhood import Neighborhood
from graphsage.model.aggregators import AGGREGATORS
from graphsage.model.aggregators.pool import PoolAggregator
from live_models import overlay_of, vectors
from planted import planted_graph, planted_split


class MeanAndMax(gs.Aggregator):
    """Weights of its own, and products that are not calls of a module."""

    def __init__(self, in_dim: int, hidden_dim: int | None = None, depth: int = 1) -> None:
        super().__init__(in_dim)
        self.out_dim = 2 * (hidden_dim or 4)
        self.linear = nn.Linear(in_dim, hidden_dim or 4)

    def forward(self, h: Tensor, hood: Neighborhood) -> Tensor:
        h = h @ self.linear.weight.t()
        return torch.cat([gather_mean(h, hood), gather_max(h, hood)], dim=1)


class Centered(PoolAggregator):
    """A subclass of one of ours that computes something else."""

    def forward(self, h: Tensor, hood: Neighborhood) -> Tensor:
        return super().forward(h, hood) - gather_mean(self.message(h), hood)


class Gathered(gs.Aggregator):
    """Indexes with `hood.index` itself, which must be int64 on every path."""

    def forward(self, h: Tensor, hood: Neighborhood) -> Tensor:
        assert hood.index.dtype == torch.int64
        return gather_mean(h, hood)


@pytest.fixture(params=[MeanAndMax, Centered, Gathered], ids=lambda kind: kind.__name__)
def model(request: pytest.FixtureRequest) -> Iterator[gs.Model]:
    gs.register_aggregator("mine", request.param)
    graph = planted_graph()
    shape = {"dim": 8, "hidden_dim": 6, "sample_sizes": (4, 3)}
    try:
        yield gs.train(graph, planted_split(graph), aggregator="mine", epochs=2, max_degree=None, **shape)
    finally:
        del AGGREGATORS["mine"]


def test_every_path_gives_the_vectors_of_the_plain_forward(model: gs.Model, tmp_path: Path) -> None:
    graph = planted_graph()
    everyone = torch.arange(graph.num_nodes)
    assert graph.features is not None
    neighborhoods = gs.whole_graph(graph, 2, everyone)
    with torch.no_grad():
        expected = model.encoder.eval()(graph.features, neighborhoods)
    close = {"atol": 2e-5, "rtol": 1e-4}
    torch.testing.assert_close(model.embed(graph), expected, **close)
    torch.testing.assert_close(model.embed(graph, [5, 0, 7]), expected[[5, 0, 7]], **close)
    graph.save(tmp_path / "graph")
    found = embed_in_blocks(model, tmp_path / "graph", tmp_path / "work", budget=Budget(20_000))
    assert found.blocks > 2
    torch.testing.assert_close(torch.cat([z for _, z in found.batches()]), expected, **close)
    overlay, ids = overlay_of(graph, model), [str(v) for v in range(graph.num_nodes)]
    together = vectors(overlay, model, ids)
    torch.testing.assert_close(together, expected, **close)
    for v in (0, 9):
        assert torch.equal(vectors(overlay, model, [ids[v]])[0], together[v]), "other bits alone than in a batch"
    sampled = model.embed(graph, [3, 4], inference="sampled")
    torch.testing.assert_close(model.embed(graph, [4, 3], inference="sampled").flip(0), sampled, **close)


def test_a_bundle_of_it_can_be_loaded_while_it_is_registered(model: gs.Model, tmp_path: Path) -> None:
    model.save(tmp_path / "model")
    graph = planted_graph()
    torch.testing.assert_close(gs.load(tmp_path / "model").embed(graph), model.embed(graph))

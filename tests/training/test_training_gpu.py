"""The same draws, the same learning on a GPU. Run with `make test-gpu`."""

import warnings

import pytest
import torch

import graphsage as gs
from graphsage.inference import feature_placement
from graphsage.kernels.neighborhood import Neighborhood
from graphsage.kernels.random import Stream
from graphsage.model.aggregators import AGGREGATORS
from graphsage.sampling.minibatch import sample_minibatch
from planted import SMALL, planted_graph, planted_split

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="torch finds no GPU")]


@pytest.mark.parametrize("redraw", [True, False])
def test_a_gpu_draws_the_same_neighbors_as_a_cpu(redraw: bool) -> None:
    graph = planted_graph()
    targets = torch.arange(50)
    batches = []
    for device in ("cpu", "cuda"):
        nodes = targets.to(device)
        keys = Stream(3, "neighbors").keys(nodes)
        batches.append(sample_minibatch(graph.to(device), nodes, (4, 3), keys, redraw))
    one, two = batches
    assert torch.equal(one.rows, two.rows.cpu())
    for a, b in zip(one.neighborhoods, two.neighborhoods, strict=True):
        for part, same in zip(a, b, strict=True):
            assert torch.equal(part.index, same.index.cpu())
            assert torch.equal(part.present, same.present.cpu())


@pytest.mark.parametrize("task", ["supervised", "unsupervised", "contrastive", "joint"])
@pytest.mark.parametrize("aggregator", ["mean", "gcn", "pool", "meanpool", "lstm"])
def test_training_on_a_gpu_gives_nearly_the_weights_of_a_cpu(task: str, aggregator: str) -> None:
    graph = planted_graph()
    split = planted_split(graph)
    options = {**SMALL, "task": task, "aggregator": aggregator, "steps": 4, "max_degree": 6, "hidden_dim": 8}
    options |= {"task": "unsupervised", "objective": task} if task == "contrastive" else {}
    one, two = (gs.train(graph, split, device=device, **options) for device in ("cpu", "cuda"))
    torch.testing.assert_close(one.embed(graph), two.embed(graph), atol=2e-3, rtol=1e-2)


@pytest.mark.parametrize(
    "options", [{}, {"degree_features": True}, {"feature_type": "bfloat16"}, {"aggregator": "lstm"}]
)
def test_features_that_do_not_fit_on_a_gpu_are_read_over_the_bus(options: dict, monkeypatch) -> None:
    graph = planted_graph()
    one = gs.train(graph, planted_split(graph), device="cuda", **{**SMALL, **options})
    expected = one.embed(graph)
    monkeypatch.setattr(feature_placement, "SHARE", 0.0)
    two = gs.train(graph, planted_split(graph), device="cuda", **{**SMALL, **options})
    torch.testing.assert_close(two.embed(graph), expected, atol=1e-4, rtol=1e-3)
    assert not feature_placement.place(graph, two.device).features.is_cuda


@pytest.mark.parametrize("aggregator", ["mean", "pool", "lstm"])
def test_a_training_gives_its_gpu_memory_back(aggregator: str) -> None:
    graph = planted_graph()
    options = {**SMALL, "aggregator": aggregator, "batch_size": 64, "sample_sizes": (25, 25), "hidden_dim": 512}

    def kept_after_training() -> int:
        gs.train(graph, planted_split(graph), device="cuda", **options)
        torch.cuda.empty_cache()
        return torch.cuda.memory_reserved()

    first = kept_after_training()  # what torch keeps for the stream that everybody uses
    assert kept_after_training() <= first


def test_a_model_trained_on_a_gpu_is_loaded_on_a_cpu(tmp_path) -> None:
    graph = planted_graph()
    model = gs.train(graph, planted_split(graph), device="cuda", out=tmp_path, **SMALL)
    again = gs.load(tmp_path)
    assert again.device.type == "cpu"
    torch.testing.assert_close(again.embed(graph), model.embed(graph), atol=1e-4, rtol=1e-3)


class Spread(gs.Aggregator):
    """A user's aggregator, in plain torch."""

    def forward(self, h: torch.Tensor, hood: Neighborhood) -> torch.Tensor:
        mean = gs.gather_mean(h, hood)
        return gs.gather_mean(h * h, hood) - mean * mean


class Waiting(Spread):
    """One that waits for the GPU, which a capture does not allow."""

    def forward(self, h: torch.Tensor, hood: Neighborhood) -> torch.Tensor:
        assert float(h.detach().sum()) == float(h.detach().sum())
        return super().forward(h, hood)


@pytest.mark.parametrize("kind", [Spread, Waiting])
def test_a_users_aggregator_trains_on_a_gpu_captured_or_with_a_warning(kind: type[gs.Aggregator]) -> None:
    gs.register_aggregator("mine", kind)
    graph = planted_graph()
    options = {**SMALL, "aggregator": "mine", "steps": 4, "max_degree": 6}
    try:
        one = gs.train(graph, planted_split(graph), device="cpu", **options)
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            two = gs.train(graph, planted_split(graph), device="cuda", **options)
    finally:
        del AGGREGATORS["mine"]
    assert any("runs eagerly" in str(each.message) for each in found) == (kind is Waiting)
    torch.testing.assert_close(one.embed(graph), two.embed(graph), atol=2e-3, rtol=1e-2)

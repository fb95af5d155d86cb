"""Anybody's aggregator: ten lines, a name, and it works in the encoder."""

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

from graphs import normal, star
from graphsage.errors import ConfigError
from graphsage.execution.user_aggregators import register_aggregator
from graphsage.inference.embed import embed_exact
from graphsage.kernels.gather import gather_max, gather_mean
from graphsage.kernels.neighborhood import Consecutive, Neighborhood
from graphsage.kernels.random import Stream
from graphsage.model.aggregators import AGGREGATORS, aggregator_named, make_aggregator
from graphsage.model.aggregators.base import Aggregator
from graphsage.model.encoder import Encoder, EncoderConfig
from graphsage.sampling.minibatch import sample_minibatch


class MeanAndMax(Aggregator):
    def __init__(self, in_dim: int, hidden_dim: int | None = None, depth: int = 1) -> None:
        super().__init__(in_dim)
        self.out_dim = 2 * in_dim

    def forward(self, h: Tensor, hood: Neighborhood) -> Tensor:
        return torch.cat([gather_mean(h, hood), gather_max(h, hood)], dim=1)


@pytest.fixture
def registered() -> Iterator[None]:
    register_aggregator("mean-and-max", MeanAndMax)
    yield
    del AGGREGATORS["mean-and-max"]


@pytest.mark.usefixtures("registered")
def test_a_registered_aggregator_works_from_end_to_end() -> None:
    graph, x = star(4), normal(0, 5, 3)
    encoder = Encoder(EncoderConfig(aggregator="mean-and-max", dim=6), in_dim=3)
    batch = sample_minibatch(graph, torch.tensor([0, 2]), (3, 4), Stream(0, "test").keys(torch.tensor([0, 2])))
    z = encoder(x, batch.neighborhoods)
    torch.autograd.backward(z.sum())
    assert z.shape == (2, 6)
    assert all(p.grad is not None for p in encoder.parameters())
    assert embed_exact(encoder, graph, [x]).shape == (5, 6)


@pytest.mark.usefixtures("registered")
def test_registering_the_same_class_again_is_harmless() -> None:
    register_aggregator("mean-and-max", MeanAndMax)
    assert aggregator_named("mean-and-max") is MeanAndMax


def test_a_taken_name_is_refused() -> None:
    with pytest.raises(ConfigError, match="already"):
        register_aggregator("mean", MeanAndMax)
    assert AGGREGATORS["mean"] is not MeanAndMax


@pytest.mark.parametrize("thing", [torch.nn.Linear, "mean", MeanAndMax(3)], ids=["module", "text", "instance"])
def test_only_subclasses_of_aggregator_are_taken(thing: object) -> None:
    with pytest.raises(ConfigError, match="subclass"):
        register_aggregator("mine", thing)  # type: ignore[arg-type]
    assert "mine" not in AGGREGATORS


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(ConfigError, match="mean, gcn, lstm, pool, meanpool; got 'max'"):
        EncoderConfig(aggregator="max")


def test_an_aggregator_without_forward_says_what_to_define() -> None:
    class Lazy(Aggregator):
        pass

    hood = Consecutive(0, 1, torch.ones(1).bool(), torch.zeros(1).long())
    with pytest.raises(NotImplementedError, match="Lazy must define forward"):
        Lazy(3)(torch.zeros(1, 3), hood)


class OneArgument(Aggregator):
    def __init__(self, in_dim: int) -> None:
        super().__init__(in_dim)


class WrongWidth(Aggregator):
    def forward(self, h: Tensor, hood: Neighborhood) -> Tensor:
        return torch.cat([gather_mean(h, hood), gather_max(h, hood)], dim=1)


class NoWidth(Aggregator):
    def __init__(self, in_dim: int, hidden_dim: int | None = None, depth: int = 1) -> None:
        torch.nn.Module.__init__(self)


class SampledOnly(Aggregator):
    def forward(self, h: Tensor, hood: Neighborhood) -> Tensor:
        return h[hood.index].mean(dim=1)


class NoForward(Aggregator):
    pass


class OneRow(Aggregator):
    def forward(self, h: Tensor, hood: Neighborhood) -> Tensor:
        return h[:1]


@pytest.fixture
def mine() -> Iterator[None]:
    yield
    AGGREGATORS.pop("mine", None)


@pytest.mark.usefixtures("mine")
@pytest.mark.parametrize(
    ("cls", "message"),
    [
        (OneArgument, r"OneArgument\.__init__ must accept what the encoder passes, \(in_dim, hidden_dim, depth\)"),
        (WrongWidth, r"must return \(R, out_dim\) = \(3, 4\), got \(3, 8\).*set out_dim in __init__"),
        (NoWidth, r"NoWidth\.out_dim must be the width of what forward returns; got None"),
        (SampledOnly, r"\(R, out_dim\) = \(3, 4\), got \(4,\), for all neighbors, where hood\.index is \(E,\)"),
        (NoForward, r"NoForward must define forward\(h, hood\)"),
        (OneRow, r"must return \(R, out_dim\) = \(3, 4\), got \(1, 4\), for sampled neighbors"),
    ],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_a_mistake_in_an_aggregator_is_named_when_the_encoder_is_built(cls: type[Aggregator], message: str) -> None:
    register_aggregator("mine", cls)
    with pytest.raises(ConfigError, match=message):
        Encoder(EncoderConfig(aggregator="mine", dim=6), in_dim=4)


class Noisy(Aggregator):
    """Draws random numbers and has buffers that change in training."""

    def __init__(self, in_dim: int, hidden_dim: int | None = None, depth: int = 1) -> None:
        super().__init__(in_dim)
        self.norm = torch.nn.BatchNorm1d(in_dim)
        self.norm.eval()

    def forward(self, h: Tensor, hood: Neighborhood) -> Tensor:
        return gather_mean(self.norm(h + torch.rand_like(h)), hood)


@pytest.mark.usefixtures("mine")
def test_the_check_leaves_the_random_state_and_the_modules_as_they_were() -> None:
    register_aggregator("mine", Noisy)
    before = torch.get_rng_state()
    made = make_aggregator("mine", 3, None, 1)
    assert torch.equal(torch.get_rng_state(), before)
    assert made.training
    assert isinstance(made, Noisy)
    assert not made.norm.training
    assert made.norm.num_batches_tracked == 0

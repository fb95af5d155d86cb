"""Every strategy equals the plain layer, in values and in gradients: the one contract of `execution/`.

Random graphs have isolated nodes, hubs, self loops and repeated neighbors. On a CPU the strategies run in C and in
torch; on a GPU in Triton (`make test-gpu`).
"""

import copy
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from encoders import encoder_of
from graphs import SEEDS, graphs, normal
from graphsage.execution.fast_encoder import FastEncoder
from graphsage.execution.rows_first import rows_first
from graphsage.execution.strategies import STRATEGIES, Plain, strategy_for
from graphsage.graph.graph import Graph
from graphsage.kernels import backend, buffers
from graphsage.kernels.buffers import Buffers
from graphsage.kernels.gather import gather_mean
from graphsage.kernels.neighborhood import Dense, Hoods, Neighborhood, Ragged
from graphsage.kernels.random import Stream
from graphsage.model.aggregators import AGGREGATORS
from graphsage.model.aggregators.mean import MeanAggregator
from graphsage.model.aggregators.pool import PoolAggregator
from graphsage.model.encoder import NORMALIZES, Encoder, EncoderConfig
from graphsage.model.layer import COMBINES
from graphsage.sampling.minibatch import sample_minibatch, whole_graph, whole_minibatch

DEVICES = [
    "cpu",
    pytest.param("cuda", marks=[pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")]),
]
every_device = pytest.mark.parametrize("device", DEVICES)
every_aggregator = pytest.mark.parametrize("name", list(AGGREGATORS))
WIDTH = 4


@pytest.fixture(params=["fast kernels", "torch kernels"])
def kernels(request: pytest.FixtureRequest) -> Iterator[None]:
    backend.enabled = request.param == "fast kernels"
    with torch.backends.cudnn.flags(enabled=True, allow_tf32=False):  # nn.LSTM rounds to TF32 on a GPU otherwise
        yield
    backend.enabled = True


class Poisoned(Buffers):
    """Every freed matrix is filled with NaN at once: whoever still reads it is found out."""

    def __init__(self) -> None:
        super().__init__()
        self.taken: list[Tensor] = []

    def take(self, rows: int, width: int, dtype: torch.dtype = torch.float32) -> Tensor:
        self.taken.append(super().take(rows, width, dtype))
        return self.taken[-1]

    def give_back(self, *tensors: Tensor) -> None:
        for tensor in tensors:
            if any(tensor.data_ptr() == each.data_ptr() and tensor.shape == each.shape for each in self.taken):
                tensor.detach().numpy().fill(np.nan if tensor.is_floating_point() else 0)
        super().give_back(*tensors)

    def next_step(self) -> None:
        for tensor in self.taken:
            tensor.detach().numpy().fill(np.nan if tensor.is_floating_point() else 0)
        self.taken.clear()
        super().next_step()


@pytest.fixture(autouse=True)
def small_requests_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buffers, "SMALLEST", 1)


@st.composite
def encoders(
    draw: Callable[..., Any], name: str, num_nodes: int, relations: tuple[str, ...] = (), weighted: bool = False
) -> Encoder:
    config = EncoderConfig(
        aggregator=name,
        relations=relations,
        weighted=weighted,
        num_layers=draw(st.integers(1, 3)),
        dim=draw(st.integers(2, 5)),
        hidden_dim=3,
        depth=draw(st.integers(1, 2)),
        combine=draw(st.sampled_from(COMBINES)),
        normalize=draw(st.sampled_from(NORMALIZES)),
        last_activation=draw(st.booleans()),
        bias=draw(st.booleans()),
        layer_norm=draw(st.booleans()),
        residual=draw(st.booleans()),
        dropout=draw(st.sampled_from([0.0, 0.5])),
        identity_dim=draw(st.sampled_from([0, 0, 2])),
    )
    return encoder_of(config, WIDTH, num_nodes, draw(SEEDS))


def weighted(graph: Graph, seed: int) -> Graph:
    """Positive weights for the edges of every relation."""
    graph = graph.with_relations(lambda each: weighted(each, seed))
    return graph.replace(edge_weight=normal(seed, graph.num_stored_edges).abs().to(graph.indices.device) + 0.1)


def minibatch(graph: Graph, targets: Tensor, depth: int, how: str, seed: int) -> tuple[Hoods, ...]:
    keys = Stream(seed, "test").keys(targets)
    if how == "whole":
        return whole_minibatch(graph, torch.unique(targets), depth, lambda rows, k: rows * 7 + k).neighborhoods
    return sample_minibatch(graph, targets, [3, 2, 2][:depth], keys, redraw=how == "redrawn").neighborhoods


def assert_close(
    found: list[Tensor | None], plain: list[Tensor | None], exact: Callable[[], list[Tensor | None]] | None = None
) -> None:
    """Equal but for rounding, which is relative to the largest number of a tensor: scaling short rows to length 1 makes
    large gradients whose parts cancel. Where the plain form is itself further than that from `exact`, the same in
    float64, four times its distance is allowed too."""
    for number, (a, b) in enumerate(zip(found, plain, strict=True)):
        largest = 1.0 if b is None or not b.numel() else max(1.0, float(b.abs().max()))
        allowed = 2e-5 * largest
        if exact is not None and a is not None and b is not None and not torch.allclose(a, b, atol=allowed, rtol=1e-4):
            true = exact()[number]
            assert true is not None
            allowed += 4 * float((b - true).abs().max())
        torch.testing.assert_close(a, b, atol=allowed, rtol=1e-4)


def outcome(encoder: Encoder, compute: Callable[[], Tensor], training: bool) -> list[Tensor | None]:
    """z, and the gradients of all parameters after a random one is sent back."""
    encoder.train(training)
    encoder.zero_grad(set_to_none=True)
    if not training:
        with torch.no_grad():
            return [compute().clone()]
    z = compute()
    kept = z.detach().clone()
    torch.autograd.backward(z, normal(5, *z.shape).to(z.device))
    return [kept, *(None if p.grad is None else p.grad.clone() for p in encoder.parameters())]


@every_device
@every_aggregator
@pytest.mark.parametrize("how", ["redrawn", "reused", "whole"])
@pytest.mark.usefixtures("kernels")
@settings(max_examples=15)
@given(graph=graphs(max_nodes=9, several=True), seed=SEEDS, data=st.data(), training=st.booleans())
def test_a_fast_encoder_equals_the_plain_one(
    device: str, name: str, how: str, graph: Graph, seed: int, data: st.DataObject, training: bool
) -> None:
    graph = (graph.replace(relations={}) if how == "reused" else graph).to(device)  # reuse needs one relation
    if AGGREGATORS[name].reads_weights and data.draw(st.booleans()):
        graph = weighted(graph, seed)
    encoder = data.draw(encoders(name, graph.num_nodes, tuple(graph.relations), graph.weighted)).to(device)
    everyone = torch.arange(graph.num_nodes, device=device)
    targets = everyone[torch.tensor(data.draw(st.lists(st.integers(0, graph.num_nodes - 1), min_size=1, max_size=4)))]
    neighborhoods = minibatch(graph, targets, encoder.config.num_layers, how, seed)
    x = normal(seed, graph.num_nodes, WIDTH).to(device)
    tables, fast = [x[:, :1].contiguous(), x[:, 1:].contiguous()], FastEncoder(encoder, Poisoned())
    plain = outcome(encoder, lambda: encoder(x, neighborhoods, everyone), training)
    precise = copy.deepcopy(encoder).double()
    for _ in range(2):  # the second time in buffers that were used before, and hold NaN
        fast.buffers.next_step()
        found = outcome(encoder, lambda: fast(tables, neighborhoods), training)
        assert_close(
            found, plain, lambda: outcome(precise, lambda: precise(x.double(), neighborhoods, everyone), training)
        )


@every_device
@every_aggregator
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.usefixtures("kernels")
def test_a_fast_encoder_takes_the_neighborhoods_of_a_whole_graph(device: str, name: str, training: bool) -> None:
    graph = Graph.from_edges([[0, 1], [1, 2], [1, 3], [3, 3]], num_nodes=5).to(device)
    encoder = encoder_of(EncoderConfig(aggregator=name, dim=4, hidden_dim=3), WIDTH).to(device)
    x, hoods = normal(1, 5, WIDTH).to(device), whole_graph(graph, 2)
    plain = outcome(encoder, lambda: encoder(x, hoods), training)
    found = outcome(encoder, lambda: FastEncoder(encoder)([x], hoods), training)
    assert_close(found, plain)


@every_device
@pytest.mark.parametrize("name", [name for name, each in AGGREGATORS.items() if each.reduction != "sequence"])
@pytest.mark.usefixtures("kernels")
@settings(max_examples=15)
@given(graph=graphs(max_nodes=9, directed=None), seed=SEEDS, data=st.data())
def test_rows_first_equals_the_plain_layer(
    device: str, name: str, graph: Graph, seed: int, data: st.DataObject
) -> None:
    graph = graph.to(device)
    layer = data.draw(encoders(name, graph.num_nodes)).to(device).layer(1)
    h = normal(seed, graph.num_nodes, layer.in_dim).to(device)
    ((hood,),) = whole_graph(graph, 1, torch.arange(graph.num_nodes, device=device))
    assert isinstance(hood, Ragged)
    first = rows_first(layer)
    if layer.skip is not None and layer.aggregator.includes_self:
        assert first is None
        return
    assert first is not None
    with torch.no_grad():
        expected = layer(h, hood)
        once, finished, combined = (h.new_empty(len(h), width) for width in (first.width, *[expected.shape[1]] * 2))
        first.for_neighbors(h, once)
        first.for_itself(h, finished)
        first.finish(first.reduce(once, hood), finished, h)
        torch.testing.assert_close(finished, expected, atol=2e-5, rtol=1e-4)
        if not first.required:
            first.combine(h, first.reduce(h, hood), combined)
            torch.testing.assert_close(combined, expected, atol=2e-5, rtol=1e-4)


@pytest.mark.parametrize("name", [name for name, each in AGGREGATORS.items() if each.reduction != "sequence"])
@given(graph=graphs(max_nodes=9, directed=None), seed=SEEDS, cut=st.integers(0, 9))
def test_a_reduction_can_be_taken_over_some_source_rows_at_a_time(name: str, graph: Graph, seed: int, cut: int) -> None:
    layer = encoder_of(EncoderConfig(aggregator=name, dim=4, hidden_dim=3), WIDTH, seed=seed).layer(1)
    first = rows_first(layer)
    assert first is not None
    table = normal(seed, graph.num_nodes, first.width)
    table = table.relu() if first.required else table
    combined = torch.full_like(table, -torch.inf if first.partial == "max" else 0.0)
    for low, high in ((0, cut), (cut, graph.num_nodes)):
        for v in range(graph.num_nodes):
            near = [u for u in graph.neighbors(v).tolist() if low <= u < high]
            if near and first.partial == "max":
                combined[v] = torch.maximum(combined[v], table[near].amax(dim=0))
            elif near:
                combined[v] += table[near].sum(dim=0)
    combined[graph.degrees == 0] = 0
    ((hood,),) = whole_graph(graph, 1, torch.arange(graph.num_nodes))
    assert isinstance(hood, Ragged)
    found = first.from_partial(combined, graph.degrees, table)
    torch.testing.assert_close(found, first.reduce(table, hood), atol=1e-5, rtol=1e-5)


class Doubled(MeanAggregator):
    """Computes something else than its base class: no strategy of that may run."""

    def forward(self, h: Tensor, hood: Neighborhood) -> Tensor:
        return 2 * gather_mean(h, hood)


@pytest.mark.parametrize("base", STRATEGIES)
def test_a_strategy_is_chosen_by_the_exact_type(base: type[Any]) -> None:
    mine = type("Mine", (base,), {})
    encoder = encoder_of(EncoderConfig(dim=4, hidden_dim=3), WIDTH)
    layer = encoder.layer(1)
    layer.aggregator = base(WIDTH, 3)
    assert type(strategy_for(layer)) is STRATEGIES[base]
    layer.aggregator = mine(WIDTH, 3)
    assert type(strategy_for(layer)) is Plain
    assert rows_first(layer) is None


def test_a_subclass_that_overrides_forward_is_what_runs() -> None:
    encoder = encoder_of(EncoderConfig(dim=4, num_layers=1, normalize="never", last_activation=False), WIDTH)
    index = torch.tensor([[1, 2]])
    hood = Dense(index, torch.tensor([True]), torch.zeros(1).long(), torch.tensor([0]))
    x = normal(0, 3, WIDTH)
    before = FastEncoder(encoder)([x], ((hood,),))
    encoder.layer(1).aggregator = Doubled(WIDTH)
    after = FastEncoder(encoder)([x], ((hood,),))
    assert not torch.allclose(before, after)
    torch.testing.assert_close(after, encoder(x, ((hood,),)))


class Halved(torch.nn.Linear):
    def forward(self, input: Tensor) -> Tensor:
        return super().forward(input) / 2


@pytest.mark.parametrize(
    "change",
    [
        lambda pool: pool.mlp.__setitem__(1, torch.nn.Tanh()),
        lambda pool: pool.mlp.append(torch.nn.LayerNorm(3)),
        lambda pool: pool.mlp.__setitem__(0, Halved(WIDTH, 3)),
        lambda pool: setattr(pool, "mlp", torch.nn.Linear(WIDTH, 3)),
    ],
    ids=["Tanh", "one more", "own Linear", "no Sequential"],
)
@pytest.mark.parametrize("subclass", [False, True])
def test_a_pool_whose_modules_were_exchanged_runs_as_it_is(change: Callable[[Any], None], subclass: bool) -> None:
    encoder = encoder_of(EncoderConfig(aggregator="pool", dim=4, hidden_dim=3, num_layers=1), WIDTH)
    if subclass:
        encoder.layer(1).aggregator = type("Mine", (PoolAggregator,), {})(WIDTH, 3)
    change(encoder.layer(1).aggregator)
    hood = Dense(torch.tensor([[1, 2]]), torch.tensor([True]), torch.zeros(1).long(), torch.tensor([0]))
    x = normal(0, 3, WIDTH)
    torch.testing.assert_close(FastEncoder(encoder)([x], ((hood,),)), encoder(x, ((hood,),)))


def own_linear_named_as_torchs(width: int, out: int) -> torch.nn.Module:
    linear: torch.nn.Module = type("Linear", (Halved,), {})(width, out)
    return linear


@pytest.mark.parametrize("combine", ["joint", "halves"])
@pytest.mark.parametrize("aggregator", ["mean", "gcn", "pool", "meanpool", "lstm"])
@pytest.mark.parametrize("change", ["weight", "name", "hook"])
def test_a_layer_whose_weight_was_exchanged_runs_as_it_is(aggregator: str, combine: str, change: str) -> None:
    encoder = encoder_of(
        EncoderConfig(aggregator=aggregator, dim=4, hidden_dim=3, num_layers=1, combine=combine), WIDTH
    )
    layer = encoder.layer(1)
    if change == "hook":
        layer.register_forward_hook(lambda module, args, result: result + 1)
    elif isinstance(layer.weight, torch.nn.Linear):
        made = own_linear_named_as_torchs if change == "name" else Halved
        layer.weight = made(layer.weight.in_features, 4)  # type: ignore[assignment]
    else:
        layer.weight.self_weight = own_linear_named_as_torchs(WIDTH, 2) if change == "name" else Halved(WIDTH, 2)
    assert type(strategy_for(layer)) is Plain
    assert rows_first(layer) is None
    hood = Dense(torch.tensor([[1, 2]]), torch.tensor([True]), torch.zeros(1).long(), torch.tensor([0]))
    x = normal(0, 3, WIDTH)
    torch.testing.assert_close(FastEncoder(encoder)([x], ((hood,),)), encoder(x, ((hood,),)))

"""A guard against getting slow, without a clock on the wall: ratios to the plain form in the same process."""

import statistics
import time
from collections.abc import Callable

import pytest
import torch

from graphsage.execution.fast_encoder import FastEncoder
from graphsage.graph.graph import Graph
from graphsage.kernels.buffers import Buffers
from graphsage.kernels.compiled import bindings
from graphsage.kernels.compiled.library import library
from graphsage.kernels.gather import gather_mean
from graphsage.kernels.neighborhood import Ragged
from graphsage.kernels.random import Stream
from graphsage.model.encoder import Encoder, EncoderConfig
from graphsage.sampling.minibatch import sample_minibatch

pytestmark = pytest.mark.slow
NODES, DEGREE, DIM = 60_000, 40, 300


def graph() -> Graph:
    generator = torch.Generator().manual_seed(0)
    indices = torch.randint(NODES, (NODES * DEGREE,), generator=generator, dtype=torch.int32)
    return Graph(torch.arange(NODES + 1) * DEGREE, indices, features=torch.randn(NODES, DIM), direction="in")


def fastest(*calls: Callable[[], object], rounds: int = 7) -> list[float]:
    """The fastest of several runs of each call, taking turns: noise only ever adds."""
    times: list[list[float]] = [[] for _ in calls]
    for _ in range(rounds):
        for call, seen in zip(calls, times, strict=True):
            begin = time.perf_counter()
            call()
            seen.append(time.perf_counter() - begin)
    return [statistics.median(sorted(seen)[:3]) for seen in times]


def test_reading_a_batch_is_much_faster_than_gathering_first_and_averaging_after() -> None:
    torch.set_num_threads(1)
    data = graph()
    assert data.features is not None
    features, targets = data.features, torch.arange(512)
    batch = sample_minibatch(data, targets, (25, 10), Stream(0, "test").keys(targets))
    encoder = FastEncoder(Encoder(EncoderConfig(dim=64), DIM))
    buffer = encoder.read([features], batch.neighborhoods).x

    def plain() -> torch.Tensor:
        return torch.cat([features[batch.rows], features[batch.neighborhoods[0][0].index].mean(dim=1)], dim=1)

    torch.testing.assert_close(encoder.read([features], batch.neighborhoods).x, plain(), atol=1e-5, rtol=1e-5)
    ours, slow = fastest(lambda: encoder.read([features], batch.neighborhoods, buffer), plain)
    assert ours < 0.6 * slow, f"{ours:.4f} s against {slow:.4f} s"


def test_sampling_costs_less_than_reading() -> None:
    torch.set_num_threads(1)
    data = graph()
    assert data.features is not None
    features, targets = data.features, torch.arange(512)
    keys = Stream(0, "test").keys(targets)
    batch = sample_minibatch(data, targets, (25, 10), keys)
    encoder = FastEncoder(Encoder(EncoderConfig(dim=64), DIM))
    buffer = encoder.read([features], batch.neighborhoods).x
    sampling, reading = fastest(
        lambda: sample_minibatch(data, targets, (25, 10), keys),
        lambda: encoder.read([features], batch.neighborhoods, buffer),
    )
    assert sampling < reading, f"{sampling:.4f} s against {reading:.4f} s"


@pytest.mark.skipif(library() is None, reason="there is no compiler")
def test_whole_graphs_are_read_faster_in_panels_than_row_by_row(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.set_num_threads(1)
    data = graph()
    everyone = Ragged(data.indices, data.indptr, torch.empty(NODES), slice(0, NODES))

    def reduced() -> torch.Tensor:
        result = gather_mean(table, everyone, buffers)
        buffers.give_back(result)  # its values stay until the next call takes the memory
        return result

    def row_by_row() -> torch.Tensor:
        with monkeypatch.context() as patch:
            patch.setattr(bindings, "_panels_pay", lambda *_: False)
            return reduced()

    buffers = Buffers()
    table = buffers.take(NODES, DIM).copy_(data.features)
    torch.testing.assert_close(reduced().clone(), row_by_row())
    panels, rows = fastest(reduced, row_by_row)
    assert panels < 0.8 * rows, f"{panels:.4f} s against {rows:.4f} s"

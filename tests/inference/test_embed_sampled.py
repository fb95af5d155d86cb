"""Sampled inference is Algorithm 2 with draws that belong to the node."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from algorithms import algorithm_2, inputs
from encoders import encoder_of
from graphs import neighbor_lists, normal, regular
from graphsage.inference.embed import embed_exact, embed_sampled
from graphsage.kernels.random import Stream
from graphsage.model.encoder import EncoderConfig
from graphsage.sampling.minibatch import SamplingConfig

GRAPH, X = regular(12, 6), normal(0, 12, 3)
SAMPLING = SamplingConfig(sample_sizes=(3, 2))
ENCODER = encoder_of(EncoderConfig(dim=5, hidden_dim=4), 3)


def test_it_equals_algorithm_2() -> None:
    z = embed_sampled(ENCODER, GRAPH, [X], torch.arange(12), SAMPLING, seed=4)
    keys = Stream(4, "inference").keys(torch.arange(12)).tolist()
    x, lists = inputs(ENCODER, [X]), neighbor_lists(GRAPH)
    slow = [algorithm_2(ENCODER, x, lists, SAMPLING.sample_sizes, v, keys[v]) for v in range(12)]
    np.testing.assert_allclose(z.numpy(), np.stack(slow), atol=1e-5, rtol=1e-4)


@given(st.lists(st.integers(0, 11), max_size=9), st.integers(1, 5), st.booleans())
def test_a_vector_does_not_depend_on_what_else_is_asked_for(nodes: list[int], batch_size: int, redraw: bool) -> None:
    sampling = SamplingConfig(sample_sizes=(3, 2), redraw=redraw)
    whole = embed_sampled(ENCODER, GRAPH, [X], torch.arange(12), sampling)
    some = embed_sampled(ENCODER, GRAPH, [X], torch.tensor(nodes, dtype=torch.int64), sampling, batch_size=batch_size)
    torch.testing.assert_close(some, whole[nodes], atol=1e-6, rtol=1e-5)


def test_it_equals_exact_inference_when_every_neighbor_is_drawn() -> None:
    everyone = SamplingConfig(sample_sizes=(6, 6))
    z = embed_sampled(ENCODER, GRAPH, [X], torch.arange(12), everyone)
    torch.testing.assert_close(z, embed_exact(ENCODER, GRAPH, [X]))


def test_another_seed_gives_other_samples() -> None:
    a, b = (embed_sampled(ENCODER, GRAPH, [X], torch.arange(12), SAMPLING, seed=seed) for seed in (0, 1))
    assert not torch.allclose(a, b)


@pytest.mark.parametrize("training", [True, False])
def test_it_leaves_the_encoder_as_it_was(training: bool) -> None:
    encoder = encoder_of(EncoderConfig(dim=5, dropout=0.5), 3).train(training)
    seen: list[tuple[int, int]] = []
    z = embed_sampled(
        encoder, GRAPH, [X], torch.arange(5), SAMPLING, batch_size=2, on_block=lambda *step: seen.append(step)
    )
    assert encoder.training == training
    assert torch.equal(z, embed_sampled(encoder.eval(), GRAPH, [X], torch.arange(5), SAMPLING, batch_size=2))
    assert seen == [(2, 5), (4, 5), (5, 5)]
    assert not z.requires_grad

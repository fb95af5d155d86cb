"""From embeddings to class scores."""

import torch

from graphs import normal
from graphsage.kernels.random import Stream
from graphsage.model.heads import ClassHead


def test_scores_are_a_linear_map_of_z() -> None:
    head, z = ClassHead(3, 5), normal(0, 4, 3)
    torch.testing.assert_close(head(z), z @ head.linear.weight.t() + head.linear.bias)
    assert not head.linear.bias.any()


def test_the_learned_scale_multiplies_z() -> None:
    head, z = ClassHead(3, 5, scale=True), normal(0, 4, 3)
    torch.testing.assert_close(head(z), head.linear(z * torch.tensor(2.0).exp()))


def test_dropout_needs_training_and_keys() -> None:
    head, z = ClassHead(8, 5, dropout=0.5), normal(0, 4, 8)
    keys = Stream(0, "test").keys(torch.arange(4))
    assert torch.equal(head(z), head.linear(z))
    noisy = head(z, keys)
    assert not torch.allclose(noisy, head(z))
    assert torch.equal(noisy, head(z, keys))
    assert torch.equal(head.eval()(z, keys), head.linear(z))

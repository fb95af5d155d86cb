"""The base class of aggregators."""

import pytest
import torch

from graphs import star
from graphsage.model.aggregators.base import Aggregator
from graphsage.sampling.minibatch import whole_graph


def test_an_aggregator_without_forward_says_so() -> None:
    class Empty(Aggregator):
        pass

    with pytest.raises(NotImplementedError, match="Empty must define forward"):
        Empty(3)(torch.zeros(5, 3), whole_graph(star(4), 1)[0][0])

"""AGGREGATE_k of Algorithm 1: one file each, one table of names."""

from collections.abc import Callable

from graphsage.errors import one_of
from graphsage.model.aggregators.base import Aggregator
from graphsage.model.aggregators.gcn import GCNAggregator
from graphsage.model.aggregators.lstm import LSTMAggregator
from graphsage.model.aggregators.mean import MeanAggregator
from graphsage.model.aggregators.pool import MeanPoolAggregator, PoolAggregator

AGGREGATORS: dict[str, type[Aggregator]] = {
    "mean": MeanAggregator,
    "gcn": GCNAggregator,
    "lstm": LSTMAggregator,
    "pool": PoolAggregator,
    "meanpool": MeanPoolAggregator,
}
MAKERS: dict[type[Aggregator], Callable[[int, int | None, int], Aggregator]] = {}
"""What makes an aggregator instead of its class; `execution.user_aggregators` checks those of users."""


def aggregator_named(name: str) -> type[Aggregator]:
    one_of("aggregator", name, AGGREGATORS)
    return AGGREGATORS[name]


def make_aggregator(name: str, in_dim: int, hidden_dim: int | None, depth: int) -> Aggregator:
    cls = aggregator_named(name)
    return MAKERS.get(cls, cls)(in_dim, hidden_dim, depth)

"""AGGREGATE_k of Algorithm 1: one file each, one table of names."""

from graphsage.errors import ConfigError, setting
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
BUILT_IN = frozenset(AGGREGATORS.values())


def aggregator_named(name: str) -> type[Aggregator]:
    if name not in AGGREGATORS:
        raise ConfigError(f"{setting('aggregator')} must be one of {', '.join(AGGREGATORS)}; got {name!r}")
    return AGGREGATORS[name]


def register_aggregator(name: str, aggregator: type[Aggregator]) -> None:
    """Make `aggregator` known by `name` to Config, the command line and bundles loaded in this process."""
    if not (isinstance(aggregator, type) and issubclass(aggregator, Aggregator)):
        raise ConfigError(f"an aggregator must be a subclass of graphsage.Aggregator; got {aggregator!r}")
    if AGGREGATORS.get(name, aggregator) is not aggregator:
        raise ConfigError(f"there is an aggregator {name!r} already; choose another name")
    AGGREGATORS[name] = aggregator


__all__ = ["AGGREGATORS", "BUILT_IN", "Aggregator", "aggregator_named", "register_aggregator"]

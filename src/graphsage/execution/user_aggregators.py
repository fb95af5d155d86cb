"""A user's aggregators: registered by name and checked when an encoder is built, so that a mistake is one sentence."""

import inspect
from functools import partial

import torch

from graphsage.errors import ConfigError
from graphsage.kernels.neighborhood import Dense, Neighborhood, Ragged
from graphsage.model.aggregators import AGGREGATORS, MAKERS
from graphsage.model.aggregators.base import Aggregator

ARGUMENTS = "(in_dim, hidden_dim, depth)"  # of `__init__`: Python's names, whatever the interface


def register_aggregator(name: str, aggregator: type[Aggregator]) -> None:
    """Make `aggregator` known by `name` to Config, the command line and bundles loaded in this process."""
    if not (isinstance(aggregator, type) and issubclass(aggregator, Aggregator)):
        raise ConfigError(f"an aggregator must be a subclass of graphsage.Aggregator; got {aggregator!r}")
    if AGGREGATORS.get(name, aggregator) is not aggregator:
        raise ConfigError(f"there is an aggregator {name!r} already; choose another name")
    AGGREGATORS[name] = aggregator
    MAKERS[aggregator] = partial(_checked, aggregator)


def _checked(cls: type[Aggregator], in_dim: int, hidden_dim: int | None, depth: int) -> Aggregator:
    """An instance of a user's class that passed the check."""
    _check_arguments(cls)
    aggregator = cls(in_dim, hidden_dim, depth)
    _check_results(aggregator, in_dim)
    return aggregator


def _check_arguments(cls: type[Aggregator]) -> None:
    """Refuse a class whose `__init__` does not take what the encoder passes."""
    try:
        inspect.signature(cls).bind(1, None, 1)
    except TypeError as error:
        raise ConfigError(
            f"{cls.__name__}.__init__ must accept what the encoder passes, {ARGUMENTS}: {error}"
        ) from None


@torch.no_grad()
def _check_results(aggregator: Aggregator, in_dim: int) -> None:
    """Call `forward` once for each shape of neighborhood, in evaluation mode. Random numbers are drawn on a copy."""
    name, width = type(aggregator).__name__, getattr(aggregator, "out_dim", None)
    if not isinstance(width, int) or width < 1:
        raise ConfigError(f"{name}.out_dim must be the width of what forward returns; got {width!r}")
    h, rows = torch.zeros(5, in_dim), torch.arange(3)
    dense = Dense(torch.tensor([[1, 2], [0, 4], [2, 2]]), torch.tensor([True, True, False]), rows, rows)
    ragged = Ragged(torch.tensor([1, 2, 4, 0]), torch.tensor([0, 3, 4, 4]), rows, rows)
    modes = {module: module.training for module in aggregator.modules()}
    aggregator.eval()
    try:
        with torch.random.fork_rng(devices=[h.device] if h.is_cuda else []):
            _check(aggregator, h, dense, "sampled neighbors, where hood.index is (R, S)")
            _check(aggregator, h, ragged, "all neighbors, where hood.index is (E,) and hood.offsets is (R + 1,)")
    finally:
        for module, training in modes.items():
            module.training = training


def _check(aggregator: Aggregator, h: torch.Tensor, hood: Neighborhood, case: str) -> None:
    name, expected = type(aggregator).__name__, (hood.num_rows, aggregator.out_dim)
    try:
        found = aggregator(h, hood)
    except Exception as error:
        raise ConfigError(f"{name}.forward fails for {case}; here R = {hood.num_rows}: {error}") from error
    shape = tuple(found.shape) if isinstance(found, torch.Tensor) else type(found).__name__
    if shape != expected:
        raise ConfigError(
            f"{name}.forward must return (R, out_dim) = {expected}, got {shape}, for {case}; "
            "set out_dim in __init__ to the width of what forward returns"
        )

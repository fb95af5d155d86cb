"""Every error a user can cause, in one tree.

GraphSageError
├── ConfigError     a setting is wrong              (also a ValueError)
├── DataError       a file, table or array is wrong (also a ValueError)
│   ├── GraphError  edges, features or labels do not make a graph
│   └── UnknownNodeError  a change or a question names a node that is not there
├── BundleError     a model folder cannot be used   (also a ValueError)
├── StoreError      a live graph's folder is in use, damaged or of another make
├── LostRankError   another rank of a training run died or cannot be reached
└── OutputError     a result cannot be written      (also an OSError)
"""

from collections.abc import Iterable


class GraphSageError(Exception):
    """Base of all errors raised on purpose; the command line turns it into one sentence and exit code 2."""

    told: bool | None = None
    """Whether another process has told the user; None where nobody has thought of it."""


class ConfigError(GraphSageError, ValueError):
    pass


class DataError(GraphSageError, ValueError):
    pass


class GraphError(DataError):
    pass


class UnknownNodeError(DataError):
    pass


class BundleError(GraphSageError, ValueError):
    pass


class StoreError(GraphSageError):
    pass


class LostRankError(GraphSageError):
    pass


class OutputError(GraphSageError, OSError):
    pass


def one_of(name: str, value: object, known: Iterable[str]) -> None:
    """Refuse a setting that is none of those `known`."""
    if value not in (choices := tuple(known)):
        raise ConfigError(f"{name} must be one of {', '.join(choices)}; got {value!r}")


def one_or_more(owner: object, *names: str) -> None:
    """Refuse settings of `owner` below 1."""
    for name in names:
        if getattr(owner, name) < 1:
            raise ConfigError(f"{name} must be 1 or more; got {getattr(owner, name)}")
